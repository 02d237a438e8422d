"""``group_sharded_parallel``: optimizer states ("os"), gradients ("os_g") and parameters ("p_g_os") split over the
ranks of a group, each of which has a batch of its own (ZeRO; Rajbhandari et al., 2020)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np

from argosy.amp import GradScaler
from argosy.distributed.call_checks import agree
from argosy.distributed.captured_collectives import is_capturing
from argosy.distributed.collective import all_reduce, barrier, broadcast
from argosy.distributed.fleet.meta_parallel.hybrid_parallel_optimizer import clip_over_ranks
from argosy.distributed.fleet.meta_parallel.sharding_optimizer import OwnerOptimizer, group_or_none, inner_optimizer
from argosy.distributed.group import Group, world_group
from argosy.distributed.objects import all_gather_object
from argosy.distributed.reduction import ReduceOp
from argosy.distributed.semi_auto import shard_tensor
from argosy.distributed.sharded_optimizer import ShardingStage3, shard_optimizer
from argosy.distributed.sharded_scaler import shard_scaler
from argosy.distributed.sharding.parameter_gather import ParameterGather
from argosy.distributed.wrapped_layer import WrappedLayer, equalize
from argosy.framework.serialization import save_together
from argosy.nn.layer import Layer
from argosy.optimizer.optimizer import Optimizer
from argosy_autograd.hooks import JointHook
from argosy_autoparallel import Placement, ProcessMesh
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "GroupShardedOptimizerStage2", "GroupShardedScaler", "GroupShardedStage2", "GroupShardedStage3",
    "ShardedLayer", "group_sharded_parallel", "save_group_sharded_model",
]  # fmt: skip

_LEVELS = ("os", "os_g", "p_g_os")


def group_sharded_parallel(
    model: Layer, optimizer: Optimizer, level: str, scaler: GradScaler | None = None, group: Group | None = None,
    offload: bool = False, sync_buffers: bool = False, buffer_max_size: int = 1 << 23, segment_size: int = 1 << 20,
    sync_comm: bool = False, dp_group: Group | None = None, exclude_layer: Sequence[Any] | None = None,
) -> tuple[Layer, Any, GradScaler | None]:  # fmt: skip
    """``model``, ``optimizer`` and ``scaler`` for training on the ranks of ``group`` (default: all).

    Gradients are means over the group, and over ``dp_group``, whose members have copies. At levels "os" and "os_g" each
    rank updates some of the parameters, has states and gradients of those alone, and gives them to the others; at most
    ``buffer_max_size`` numbers travel together. At "p_g_os" parameters of at least ``segment_size`` numbers, of layers
    that ``exclude_layer`` does not name (by class or ``id``), become distributed tensors, whole only where they are
    used. ``sync_buffers``: buffers are the first rank's in each forward pass. ``offload`` and ``sync_comm`` change
    nothing: parameters are in host memory, collectives end where they are called.

    Raises ValueError for another level, TypeError for what is no layer, optimizer or scaler.
    """
    if level not in _LEVELS:
        raise ValueError(f"group_sharded_parallel: level is one of {list(_LEVELS)}, not {level!r}")
    if not isinstance(model, Layer) or not isinstance(optimizer, Optimizer):
        raise TypeError(
            f"group_sharded_parallel takes a Layer and an Optimizer, not {type(model).__name__} and "
            f"{type(optimizer).__name__}"
        )
    made: Layer
    sharded: Any = optimizer
    if level == "p_g_os":
        made = GroupShardedStage3(
            model, optimizer, group, sync_buffers, segment_size=segment_size, dp_group=dp_group,
            exclude_layer=exclude_layer,
        )  # fmt: skip
    else:
        sharded = GroupShardedOptimizerStage2(optimizer._parameter_list, optimizer, group, dp_group=dp_group)
        made = GroupShardedStage2(model, sharded, group, sync_buffers, buffer_max_size, dp_group=dp_group)
    return made, sharded, None if scaler is None else GroupShardedScaler(scaler)


def GroupShardedScaler(scaler: GradScaler) -> GradScaler:
    """The ``scaler``, which skips a step on every rank where a gradient of any overflows."""
    return shard_scaler(scaler)


class GroupShardedOptimizerStage2(OwnerOptimizer):
    """An optimizer each of whose ranks has the states of some parameters, and their gradients: ``step`` updates those
    and gives them to the others. Otherwise it acts as ``optim``.

    params: taken as Paddle takes it, the parameters are those of ``optim``. group: the ranks; ``dp_group``: see
    :class:`GroupShardedStage2`. ``offload``, ``device``, ``pertrain_sync_models`` and other ``options`` change nothing.
    """

    def __init__(
        self, params: Sequence[Tensor], optim: Any, group: Group | None = None, offload: bool = False,
        device: str = "cpu", pertrain_sync_models: bool = True, dp_group: Group | None = None, **options: Any,
    ) -> None:  # fmt: skip
        base, shards = inner_optimizer(optim, type(self).__name__), world_group() if group is None else group
        clip_over_ranks(base, None, group_or_none(shards), base._parameter_list)
        super().__init__(optim, base._parameter_list, shards)

    @property
    def _optim(self) -> Any:
        return self._inner_opt


class _ToOwners(JointHook):
    """Gives each owner the mean of its gradients at the end of a backward pass; the other ranks keep none."""

    def __init__(self, layers: Layer, optimizer: GroupShardedOptimizerStage2, copies: Group | None) -> None:
        self._owners, self._copies = optimizer._owners, copies
        self._numbers = {id(x): number for number, x in enumerate(layers.parameters())}

    def __call__(self, leaves: Sequence[Tensor], gradients: Sequence[Tensor]) -> Sequence[Tensor | None]:
        owners = self._owners
        numbers = [self._numbers[id(x)] for x in leaves]
        order = sorted(range(len(numbers)), key=numbers.__getitem__)  # whatever the order of the backward pass
        if not is_capturing():
            agree(
                owners.group.communicator, "GroupShardedStage2", gradients=f"{len(order)} of {len(self._numbers)}",
                of=crc32(str(sorted(numbers)).encode()),
            )  # fmt: skip
        made: list[Tensor | None] = [None] * len(order)
        means = owners.means([leaves[i] for i in order], [gradients[i] for i in order])
        for i, mean in zip(order, means, strict=True):
            if mean is not None and self._copies is not None:
                all_reduce(mean, ReduceOp.AVG, self._copies)
            made[i] = mean
        return made


class ShardedLayer(WrappedLayer):
    """A layer whose ranks begin with the first one's values."""

    def __init__(self, layers: Layer, group: Group | None, sync_buffers: bool) -> None:
        super().__init__(layers)
        self._group, self._sync_buffers = world_group() if group is None else group, sync_buffers
        if not self._group.is_member():
            raise ValueError(f"{type(self).__name__}: this rank is not a member of {self._group!r}")
        equalize(layers, self._group, split_too=True)

    @property
    def _layer(self) -> Layer:
        return self._layers

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What ``layers`` gives."""
        if self._sync_buffers:
            for buffer in self._layers.buffers():
                broadcast(buffer, self._group.ranks[0], self._group)
        return self._layers(*inputs, **kwargs)


class GroupShardedStage2(ShardedLayer):
    """A layer whose gradients go, as means over the group, to the owners of their parameters.

    layer, sharding_optimizer: the model, and the optimizer that says who owns what. sync_buffers: buffers are the first
    rank's in each forward pass. buffer_max_size: how many numbers travel together. dp_group: ranks that have copies,
    over which gradients are averaged as well. ``auto_refresh_trainable`` and ``device`` change nothing.
    """

    def __init__(
        self, layer: Layer, sharding_optimizer: GroupShardedOptimizerStage2, group: Group | None = None,
        sync_buffers: bool = False, buffer_max_size: int = 1 << 23, auto_refresh_trainable: bool = True,
        device: str = "cpu", dp_group: Group | None = None,
    ) -> None:  # fmt: skip
        super().__init__(layer, group, sync_buffers)
        copies = dp_group if dp_group is not None and dp_group.nranks > 1 else None
        if copies is not None:
            equalize(layer, copies, split_too=True)
        sharding_optimizer._owners.limit = buffer_max_size * 4
        hook = _ToOwners(layer, sharding_optimizer, copies)
        hook.register(x for x in layer.parameters() if not x.stop_gradient)


class GroupShardedStage3(ShardedLayer):
    """A layer whose parameters are split over the ranks: each is gathered where it is used, forward and backward, and
    given up afterwards; its gradient goes, as a mean over the group, to the ranks that have the parts.

    layer, optimizer: the model, and its optimizer, whose states are split as well. sync_buffers: buffers are the first
    rank's in each forward pass. segment_size: the least size of a parameter that is split. exclude_layer: layers, by
    class or ``id``, whose parameters stay whole. dp_group: ranks that have copies of this one's parts, over which
    gradients are averaged as well. ``device``, ``pretrain_sync_models``, ``offload`` and ``sync_comm`` change nothing.

    Raises ValueError where members of ``dp_group`` are at other places of their groups.
    """

    def __init__(
        self, layer: Layer, optimizer: Optimizer, group: Group | None = None, sync_buffers: bool = False,
        device: str = "cpu", segment_size: int = 1 << 20, pretrain_sync_models: bool = True, offload: bool = False,
        sync_comm: bool = False, dp_group: Group | None = None, exclude_layer: Sequence[Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(layer, group, sync_buffers)
        copies = None if dp_group is None else group_or_none(dp_group)
        if copies is not None:
            equalize(layer, copies, split_too=True)
        mesh = _mesh_of(self._group, copies)
        excluded = {id(p) for each in _find_layers(layer, exclude_layer or ()) for p in each.parameters()}
        shard_optimizer(optimizer, _LargeParameterSharding(mesh, segment_size, excluded))
        for parameter in layer.parameters():
            if parameter.process_mesh is None:
                shard_tensor(parameter, mesh, [])
        self._gathering = ParameterGather(mesh)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What ``layers`` gives for this rank's inputs."""
        with self._gathering.gather_parameters():
            return super().forward(*inputs, **kwargs)

    def get_all_parameters(self, convert2cpu: bool = False) -> None:
        """Let every rank have all parameters whole, to save them, say. All ranks call it."""
        for parameter in self._layers.parameters():
            shard_tensor(parameter, self._gathering.mesh, [])


def _mesh_of(group: Group, copies: Group | None) -> ProcessMesh:
    """The ranks that train together: those of the group, or of all groups that are copies, one behind the other."""
    if copies is None:
        return ProcessMesh(list(group.ranks), ["sharding"])
    lines: list[list[int]] = []
    grids: list[Any] = []
    all_gather_object(lines, list(copies.ranks), group)
    all_gather_object(grids, np.transpose(lines).tolist() if len({*map(len, lines)}) == 1 else None, copies)
    if grids[0] is None or any(grid != grids[0] for grid in grids):
        raise ValueError(
            f"GroupShardedStage3: dp_group says that ranks {lines} have the parts of ranks {list(group.ranks)}; these "
            "are no copies of a group in its order"
        )
    return ProcessMesh(grids[0], ["dp", "sharding"])


class _LargeParameterSharding(ShardingStage3):
    """Splits parameters of at least ``least`` numbers, but for those ``excluded`` by identity."""

    def __init__(self, mesh: ProcessMesh, least: int, excluded: set[int]) -> None:
        super().__init__("sharding", mesh)
        self._least, self._excluded = least, excluded

    def split(self, param: Any) -> list[Placement]:
        """See :class:`ShardingStage1`."""
        if param.size < self._least or id(param) in self._excluded:
            return list(param.placements)
        return super().split(param)


def _find_layers(model: Layer, chosen: Sequence[Any]) -> list[Layer]:
    """The layers of a model whose class or identity is among ``chosen``."""
    return [each for each in model.sublayers(include_self=True) if {type(each).__name__, id(each)} & {*chosen}]


def save_group_sharded_model(model: Layer, output: str, optimizer: Any = None) -> None:
    """Write the whole model to ``output/model.pdmodel``, and the states of what :func:`group_sharded_parallel` gave as
    ``optimizer`` to ``output/model.pdopt``, both at once: :func:`~argosy.load` reads the old ones or the new ones,
    whenever this is interrupted. All ranks of the group call it, its first one writes.

    Raises ValueError for a model of another kind, and where ``output`` is a file.
    """
    if not isinstance(model, ShardedLayer):
        raise ValueError(f"save_group_sharded_model takes what group_sharded_parallel gave, not {type(model).__name__}")
    if os.path.isfile(output):
        raise ValueError(f"save_group_sharded_model: {output!r} should be a folder, but is a file")
    if isinstance(model, GroupShardedStage3):
        model.get_all_parameters()
    group = model._group
    states = None if optimizer is None else _states(optimizer, group)
    if group.rank == 0:
        written = {"model.pdmodel": model._layers.state_dict()} | ({} if states is None else {"model.pdopt": states})
        save_together({os.path.join(output, name): value for name, value in written.items()})
    barrier(group)


def _states(optimizer: Any, group: Group) -> dict[str, Any]:
    """The states of all ranks: those of parameters from their owners, of distributed tensors the whole."""
    own = {name: _gather_values(value) for name, value in optimizer.state_dict().items()}
    if not isinstance(optimizer, GroupShardedOptimizerStage2):
        return own
    parts: list[dict[str, Any]] = []
    all_gather_object(parts, own, group)
    whole = {name: x for part in parts for name, x in part.items()}
    masters = {name: x for part in parts for name, x in part.get("master_weights", {}).items()}
    return {**whole, "master_weights": masters} if masters else whole


def _gather_values(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _gather_values(x) for name, x in value.items()}
    return Tensor._wrap(StridedArray(np.array(value.payload.to_host()))) if isinstance(value, Tensor) else value
