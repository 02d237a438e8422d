"""``fully_shard``: a layer whose parameters are split over ranks, and with them gradients and optimizer states (ZeRO 3;
Rajbhandari et al., 2020; FSDP; Zhao et al., 2023)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from argosy.distributed.fleet.base.topology import groups
from argosy.distributed.group import Group, world_group
from argosy.distributed.semi_auto import get_mesh, shard_tensor
from argosy.distributed.sharded_optimizer import ShardingStage3
from argosy.distributed.sharding.group_sharded import ShardedLayer
from argosy.distributed.sharding.parameter_gather import ParameterGather
from argosy.nn.layer import Layer
from argosy_autoparallel import ProcessMesh, Replicate, Shard
from argosy_tensorcore.dtype import DType
from argosy_tensorcore.tensor import Tensor

__all__ = ["MixedPrecisionPolicy", "OffloadPolicy", "fully_shard"]

Placing = Callable[[Tensor], "Shard | None"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Types of parameters where they are used, of sums of gradients, of results: none but their own so far."""

    param_dtype: DType | str | None = None
    reduce_dtype: DType | str | None = None
    output_dtype: DType | str | None = None
    cast_forward_inputs: bool = True


@dataclass(frozen=True)
class OffloadPolicy:
    """Parts that nobody uses lie in host memory, as they do anyway."""

    pin_memory: bool = True


def fully_shard(
    module: Layer, *, mesh: ProcessMesh | None = None, reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Placing | None = None, mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None, ignored_params: Iterable[Tensor] | None = None,
    enable_tensor_fusion_and_overlap: bool = True,
) -> Layer:  # fmt: skip
    """``module`` with its parameters split over ranks; an optimizer, made before or after, has states of the parts.

    With a ``mesh`` (or that of ``set_mesh``) parameters become distributed tensors in place, split along the mesh's
    first dimension, and inputs are distributed tensors, too; the module itself is returned. Without one each rank gives
    ordinary tensors of its own batch to what is returned: parameters begin as the first rank's, are whole where an
    operator uses them, and get the mean of all ranks' gradients, over fleet's sharding group or all ranks.

    shard_placement_fn: ``Shard(axis)`` for a parameter, or None to keep it whole; by default the first axis is split
    that has as many elements as there are ranks. ignored_params: parameters that stay whole. reshard_after_forward:
    False keeps whole parameters for the backward pass, otherwise they are gathered again; with a mesh that is decided
    by the optimizer's stage and the strategy of a captured step. ``offload_policy`` and
    ``enable_tensor_fusion_and_overlap`` change nothing: parameters lie in host memory, and captured steps overlap by
    their strategy.

    Raises TypeError for what is no layer, ValueError for a placement that does not split the parameter,
    NotImplementedError for a policy with dtypes.
    """
    if not isinstance(module, Layer):
        raise TypeError(f"fully_shard takes a Layer, not {type(module).__name__}")
    _check_policy(mp_policy)
    group = None
    chosen = mesh or get_mesh()
    if chosen is None:
        group = _sharding_group()
        chosen = ProcessMesh(list(group.ranks), ["sharding"])
        made: Layer = _FullyShardedLayer(module, group, chosen, reshard_after_forward in (False, 0))
    else:
        made = module
    ignored = {id(x) for x in ignored_params or ()}
    for parameter in module.parameters():
        _split(parameter, chosen, id(parameter) in ignored, shard_placement_fn)
    return made


class _FullyShardedLayer(ShardedLayer):
    """A layer of split parameters that each rank gives ordinary tensors of a batch of its own."""

    def __init__(self, layer: Layer, group: Group, mesh: ProcessMesh, keeps_whole: bool) -> None:
        super().__init__(layer, group, sync_buffers=False)
        self._gathering = ParameterGather(mesh, keeps_whole)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What ``layers`` gives for this rank's inputs."""
        with self._gathering.gather_parameters():
            return super().forward(*inputs, **kwargs)


def _sharding_group() -> Group:
    made = groups.value
    return world_group() if made is None else made.get_sharding_parallel_group()


def _split(parameter: Any, mesh: ProcessMesh, is_ignored: bool, placing: Placing | None) -> None:
    """Make a parameter a distributed tensor, in place."""
    if is_ignored or placing is not None:
        placement = None if is_ignored or placing is None else placing(parameter)
        if placement is not None and not (
            isinstance(placement, Shard) and -parameter.ndim <= placement.get_dim() < parameter.ndim
        ):
            raise ValueError(f"fully_shard: {placement!r} does not split {parameter.name} of shape {parameter.shape}")
        rest = [Replicate()] * (mesh.ndim - 1)
        shard_tensor(parameter, mesh, [placement or Replicate(), *rest])
    else:
        ShardingStage3(0, mesh).place(parameter)


def _check_policy(policy: MixedPrecisionPolicy | None) -> None:
    if policy is not None and any((policy.param_dtype, policy.reduce_dtype, policy.output_dtype)):
        raise NotImplementedError(f"fully_shard: {policy} is not implemented; amp.decorate makes parameters of 16 bits")
