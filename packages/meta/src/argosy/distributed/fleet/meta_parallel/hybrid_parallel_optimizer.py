"""``HybridParallelOptimizer``: what ``fleet.distributed_optimizer`` makes of an optimizer on a grid of ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from argosy.distributed.buffers import read_values
from argosy.distributed.captured_collectives import is_capturing
from argosy.distributed.collective import all_reduce
from argosy.distributed.fleet.layers.mpu.mp_ops import sum_of
from argosy.distributed.fleet.meta_parallel.parallel_layers.pp_layers import complete_stages
from argosy.distributed.fleet.meta_parallel.sharding_optimizer import (
    DygraphShardingOptimizer,
    DygraphShardingOptimizerV2,
    WrappedOptimizer,
    group_or_none,
    inner_optimizer,
    shared_parameters,
)
from argosy.distributed.fleet.meta_parallel.stage_sharding import sharding_of_stages
from argosy.distributed.fleet.strategy import FieldsOfConfigs
from argosy.distributed.group import Group
from argosy.distributed.parameter_owners import publish_updates
from argosy.distributed.reduction import ReduceOp
from argosy.distributed.sharded_optimizer import shard_optimizer
from argosy.distributed.wrapped_layer import ExpertRanks, is_expert
from argosy.nn.clip import ClipGradByGlobalNorm, Pairs
from argosy.nn.meshes import first_mesh, on_mesh
from argosy.optimizer.checkpoint import owner_of
from argosy.optimizer.optimizer import Optimizer
from argosy_autograd.modes import no_grad
from argosy_autoparallel.api import shard_tensor
from argosy_autoparallel.bucketing import all_reduce_buckets
from argosy_autoparallel.placement import Replicate
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "HybridParallelClipGrad", "HybridParallelOptimizer", "average", "average_gradients", "clip_over_ranks",
]  # fmt: skip

_BUCKET = 25 << 20


def average(tensors: Sequence[Tensor], group: Group) -> list[Any]:
    """The means of tensors over the ranks of a group, as arrays."""
    arrays = [read_values(x, "average") for x in tensors]
    return [np.asarray(mean) for mean in all_reduce_buckets(arrays, group.communicator, "avg", _BUCKET)]


def average_gradients(parameters: Sequence[Tensor], groups: Sequence[Group]) -> None:
    """Replace gradients by their means over the ranks of each group; all members must have the same ones."""
    held: list[tuple[Tensor, Any]] = [(p, p.grad) for p in parameters if not p.stop_gradient and p.grad is not None]
    for group in groups:
        if group.nranks == 1:
            continue
        if is_capturing():
            for _, grad in held:
                all_reduce(grad, ReduceOp.AVG, group)
            continue
        means = average([p.grad for p, _ in held], group)  # type: ignore[misc]
        for (parameter, _), mean in zip(held, means, strict=True):
            parameter._grad = Tensor._wrap(StridedArray(mean))


class HybridParallelClipGrad(ClipGradByGlobalNorm):
    """Clipping by the norm of the gradients of all ranks. Those of split layers (``is_distributed``) are added up over
    ``parts``, of the others every rank there has the same; each of ``owners`` has gradients of its own, of which the
    squares meet on the mesh of the first of all ``parameters``. Gradients of parameters that are this rank's own
    (``no_sync``, as experts are) are added up over ``experts``."""

    def __init__(
        self, clip: ClipGradByGlobalNorm, parts: Group | None, owners: Group | None = None,
        parameters: Sequence[Tensor] = (), experts: Group | None = None,
    ) -> None:  # fmt: skip
        super().__init__(clip.clip_norm, clip.group_name, clip.auto_skip_clip)
        self._parts, self._owners, self._parameters, self._experts = parts, owners, parameters, experts

    def __call__(self, params_grads: Pairs) -> list[tuple[Tensor, Tensor | None]]:
        """The pairs with clipped gradients."""
        if not any(g is not None and getattr(p, "need_clip", True) for p, g in params_grads):
            self._square_total([])  # the others' norms are to be added up all the same
        return super().__call__(params_grads)

    def _square_total(self, pairs: Pairs, beside: Any = None) -> Any:
        if self._experts is None:
            return self._shared_total(pairs)
        own, mesh = [pair for pair in pairs if is_expert(pair[0])], first_mesh(self._parameters)
        squares = super()._square_total(own) if own else _zero(mesh)
        shared = self._shared_total([pair for pair in pairs if not is_expert(pair[0])])
        return on_mesh(mesh, shared) + sum_of(on_mesh(mesh, squares), self._experts)

    def _shared_total(self, pairs: Pairs) -> Any:
        parts = self._parts
        split = [pair for pair in pairs if parts is not None and getattr(pair[0], "is_distributed", False)]
        whole = [pair for pair in pairs if parts is None or not getattr(pair[0], "is_distributed", False)]
        found = []
        if split:
            assert parts is not None
            found.append(sum_of(super()._square_total(split), parts))
        if whole:
            found.append(super()._square_total(whole, *found))
        mesh = first_mesh(self._parameters)
        total = sum(found[1:], found[0]) if found else _zero(mesh)
        if self._owners is None:
            return total
        return sum_of(on_mesh(mesh, total).cast("float64"), self._owners)


def _zero(mesh: Any) -> Any:
    """The sum of nothing, where the others have theirs: on the first mesh of a pipeline's parameters."""
    made = get_operator("full")([], 0, "float32")
    return made if mesh is None else shard_tensor(made, mesh, [Replicate()] * mesh.ndim)


class HybridParallelOptimizer(WrappedOptimizer):
    """An optimizer of a model whose layers, states or stages lie on several ranks. ``step`` averages gradients over the
    copies (a pipeline has done that), clips by the norm of all ranks, and where states are split over ranks (ZeRO 1)
    lets each rank update its parameters, which the others then have; that is the ``DygraphShardingOptimizer`` within.
    With an ``ep_degree`` the parameters with ``no_sync``, those of experts, are this rank's own: their gradients
    are the sums over the ranks with the same experts, divided by the number of ranks, as if one rank had all tokens;
    of ranks with parts of the same layers only where the parameters are not marked as ones of split sequences.
    Otherwise it acts as ``optimizer``.
    """

    def __init__(self, optimizer: Any, hcg: Any = None, strategy: Any = None) -> None:
        base = inner_optimizer(optimizer, type(self).__name__)
        piped = hcg is not None and hcg.get_pipe_parallel_world_size() > 1
        if piped:
            complete_stages(base, hcg.get_pipe_parallel_group())
        shards = None if hcg is None else group_or_none(hcg.get_sharding_parallel_group())
        sharding = None if hcg is None else sharding_of_stages(hcg, strategy)
        if sharding is not None:
            shard_optimizer(base, sharding)
        parts = None if hcg is None else group_or_none(hcg.get_model_parallel_group())
        experts = None if hcg is None else group_or_none(hcg.get_expert_parallel_group())
        self._own = [] if experts is None else [p for p in base._parameter_list if is_expert(p)]
        self._shared = shared_parameters(base, experts)
        owners = shards if sharding is None else None  # the meshes of stages know all parts of gradients
        clip_over_ranks(base, parts, owners, self._shared, experts)
        super().__init__(optimizer if shards is None else _sharded(optimizer, hcg, strategy))
        self._copies = None if hcg is None or piped else hcg.get_dp_sep_parallel_group()
        self._expert_ranks: ExpertRanks | None = None if hcg is None or piped else hcg.expert_ranks()
        self._hcg, self._strategy = hcg, strategy
        # What trainers ask for that average gradients themselves, and then call _step().
        self._dp_enable = self._copies is not None and hcg.get_data_parallel_world_size() > 1
        self._sep_enable = self._copies is not None and hcg.get_sep_parallel_world_size() > 1
        self._sharding_enable = shards is not None

    def step(self) -> None:
        """Update every parameter that has a gradient, by the mean over the copies."""
        if self._sharding_enable:
            self._inner_opt.reduce_gradients(self._shared, self._hcg)
        if self._copies is not None:
            average_gradients(self._updated(self._shared), [self._copies])
        self._step(self._shared)

    def _step(self, parameters_list: Any) -> None:
        """Update by gradients that are averaged already, but for those of experts."""
        self._average_experts()
        self._inner_opt.step()
        publish_updates(self._inner_opt._parameter_list)  # of pipelines, whose ranks find owners of what they hold

    def _updated(self, parameters: Sequence[Tensor]) -> Sequence[Tensor]:
        """What this rank updates of the parameters."""
        return self._inner_opt.filter_parameters(parameters, self._hcg) if self._sharding_enable else parameters

    def state_dict(self) -> dict[str, Any]:
        """What this rank has of the states: of parameters of other stages nothing."""
        return _held_states(self._inner_opt.state_dict(), self._inner_opt._parameter_list)

    def _average_experts(self) -> None:
        """Make the gradients of experts means over the tokens of all ranks."""
        if self._expert_ranks is None:
            return
        average_gradients(self._own, [self._expert_ranks.alike])
        with no_grad():
            for parameter in self._own:
                if parameter.grad is not None:
                    parameter._grad = parameter.grad / self._expert_ranks.divisor(parameter)


def clip_over_ranks(
    optimizer: Optimizer, parts: Group | None, owners: Group | None, parameters: Sequence[Tensor],
    experts: Group | None = None,
) -> None:  # fmt: skip
    """Let an optimizer that clips by the global norm clip by that of all ranks, see :class:`HybridParallelClipGrad`."""
    clip = optimizer._grad_clip
    if type(clip) is ClipGradByGlobalNorm and (parts or owners or experts) is not None:
        optimizer._grad_clip = HybridParallelClipGrad(clip, parts, owners, parameters, experts)


def _held_states(states: Mapping[str, Any], parameters: Sequence[Tensor]) -> dict[str, Any]:
    """States without those of parameters of which this rank holds nothing."""
    held = {p.name: getattr(p.payload, "is_held", True) for p in parameters}
    found = {k: _held_states(x, parameters) if k == "master_weights" else x for k, x in states.items()}
    return {k: x for k, x in found.items() if held.get(owner_of(f"{k}_", held) or "", True)}


def _sharded(optimizer: Any, hcg: Any, strategy: Any) -> DygraphShardingOptimizer | DygraphShardingOptimizerV2:
    """The optimizer with its states split over ranks: by parameters, or by slices of these (``split_param``)."""
    configs = FieldsOfConfigs() if strategy is None else strategy.hybrid_configs["sharding_configs"]
    if not configs.split_param or hcg.get_pipe_parallel_world_size() > 1:
        return DygraphShardingOptimizer(optimizer, hcg)
    return DygraphShardingOptimizerV2(optimizer, hcg, int((configs.comm_buffer_size_MB or 256) * (1 << 20)))
