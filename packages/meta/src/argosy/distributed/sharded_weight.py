"""Parts of weights with what they are parts of: how models describe their states to a checkpoint that is read by other
ranks. A whole weight is one part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy.argument_checks import validate_call
from argosy.distributed.fleet.instance import get_hybrid_communicate_group
from argosy_autoparallel.dist_tensor import is_dist, local_value
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "ShardedStateDict", "ShardedWeight", "ShardedWeightDesc", "build_sharded_state_dict",
    "create_sharded_weight_with_new_local", "make_replicated_sharded_weight", "make_tp_sharded_weight_for_checkpoint",
    "shard_weight",
]  # fmt: skip


@dataclass(frozen=True)
class ShardedWeightDesc:
    """A part of the weight ``key`` without its values: its shape, that of the whole, and where it begins there."""

    key: str
    local_shape: tuple[int, ...]
    global_shape: tuple[int, ...]
    global_offset: tuple[int, ...]
    dtype: str | None = None


class ShardedWeight:
    """A part ``local_tensor`` of the weight ``key``, of shape ``global_shape``, where it begins at ``global_offset``.
    Of a distributed tensor it is this rank's part; ``flattened_range`` is what of a flattened part is there."""

    def __init__(
        self,
        key: str,
        local_tensor: Tensor,
        local_shape: Sequence[int],
        global_shape: Sequence[int],
        global_offset: Sequence[int],
        is_flattened: bool = False,
        flattened_range: slice | None = None,
    ) -> None:
        name = local_tensor.name
        if is_dist(local_tensor):
            local_tensor = local_value(local_tensor)
            local_tensor.name, local_shape = name, local_tensor.shape
        self.key, self.local_tensor, self.local_shape = key, local_tensor, tuple(local_shape)
        self.global_shape, self.global_offset = tuple(global_shape), tuple(global_offset)
        self.is_flattened, self.flattened_range = is_flattened, flattened_range

    def __repr__(self) -> str:
        whole = f"{list(self.local_shape)} at {list(self.global_offset)} of {list(self.global_shape)}"
        return f"ShardedWeight({self.key!r}, {whole}{', flattened' if self.is_flattened else ''})"


ShardedStateDict = dict[str, ShardedWeight]


@validate_call
def shard_weight(key: str, weight: Tensor, axis: int, group: Any) -> ShardedWeight:
    """The part of each rank of ``group``, which have one after the other along ``axis``."""
    shape = list(weight.shape)
    if not 0 <= axis < len(shape):
        raise ValueError(f"shard_weight: axis should be from 0 to {len(shape) - 1} for shape {shape}, got {axis}")
    whole, offset = list(shape), [0] * len(shape)
    whole[axis], offset[axis] = shape[axis] * group.nranks, shape[axis] * max(group.rank, 0)
    return ShardedWeight(key, weight, shape, whole, offset)


@validate_call
def make_tp_sharded_weight_for_checkpoint(key: str, tensor: Tensor, tensor_parallel_axis: int = 0) -> ShardedWeight:
    """The part of a weight that the ranks of tensor parallelism share along an axis."""
    group = get_hybrid_communicate_group().get_model_parallel_group()
    return shard_weight(key, tensor, tensor_parallel_axis, group)


@validate_call
def make_replicated_sharded_weight(key: str, tensor: Tensor) -> ShardedWeight:
    """A weight that every rank has whole."""
    return ShardedWeight(key, tensor, tensor.shape, tensor.shape, [0] * len(tensor.shape))


@validate_call
def build_sharded_state_dict(
    state_dict: Mapping[str, Tensor], shard_rules: Mapping[str, int] | None = None, prefix: str = ""
) -> ShardedStateDict:
    """The state dict with parts under names with ``prefix``: along the axes that ``shard_rules`` has by name, else
    whole."""
    rules = shard_rules or {}
    return {
        prefix + key: make_tp_sharded_weight_for_checkpoint(prefix + key, tensor, rules[key])
        if key in rules
        else make_replicated_sharded_weight(prefix + key, tensor)
        for key, tensor in state_dict.items()
    }


@validate_call
def create_sharded_weight_with_new_local(
    new_key: str, new_local_tensor: Tensor, reference_tensor: ShardedWeight
) -> ShardedWeight:
    """Another tensor as the same part of a weight of the same shape."""
    like = reference_tensor
    if tuple(new_local_tensor.shape) != like.local_shape:
        given = list(new_local_tensor.shape)
        raise ValueError(f"new_local_tensor should have the shape {list(like.local_shape)} of {like.key}, got {given}")
    return ShardedWeight(new_key, new_local_tensor, like.local_shape, like.global_shape, like.global_offset)
