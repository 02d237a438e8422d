"""What parts of a ``Strategy`` do to the programs of a ``DistModel``."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from argosy.amp.casting import auto_cast
from argosy.distributed.sharded_optimizer import ShardingStage1, ShardingStage2, ShardingStage3, shard_optimizer
from argosy.distributed.strategy import AMP, Sharding, Strategy
from argosy.optimizer.optimizer import Optimizer

__all__ = ["GradientMerge", "merging_of", "precision_of", "shard_states"]

_STAGES = {1: ShardingStage1, 2: ShardingStage2, 3: ShardingStage3}


class GradientMerge(NamedTuple):
    """Gradients of ``steps`` batches make one update, of their mean or their sum."""

    steps: int
    mean: bool


def merging_of(strategy: Strategy, optimizer: Optimizer | None) -> GradientMerge:
    """What ``gradient_merge`` says, or ``shard_optimizer(gradient_accumulation_steps)``."""
    merge = strategy.gradient_merge
    if merge.enable:
        return GradientMerge(merge.k_steps, merge.avg)
    return GradientMerge(getattr(optimizer, "_merged_steps", 1), True)


def precision_of(amp: AMP) -> AbstractContextManager[Any]:
    """The block in which forward passes are captured."""
    if not amp.enable:
        return nullcontext()
    return auto_cast(True, amp.custom_white_list or None, amp.custom_black_list or None, amp.level.upper(), amp.dtype)


def shard_states(optimizer: Optimizer, sharding: Sharding) -> None:
    """Split the optimizer's states along the mesh dimension of ``degree`` ranks, as ``stage`` says.

    Raises ValueError where no parameter is distributed, or no dimension of its mesh has so many ranks.
    """
    mesh = next((p.process_mesh for p in optimizer._parameter_list if p.process_mesh is not None), None)
    if mesh is None:
        raise ValueError("Strategy.sharding: no parameter is distributed; shard_layer(model, mesh) puts them on a mesh")
    if sharding.degree not in mesh.shape:
        raise ValueError(f"Strategy.sharding.degree={sharding.degree}: no dimension of {mesh!r} has so many ranks")
    shard_optimizer(optimizer, _STAGES[sharding.stage](mesh.shape.index(sharding.degree)))
