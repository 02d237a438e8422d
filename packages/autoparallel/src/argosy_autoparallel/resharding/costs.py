"""What a change of placement on one mesh dimension costs: bytes that each rank sends.

For ``size`` bytes of the tensor along this mesh dimension (what its ranks hold together) and ``n`` ranks; ring
algorithms, as in the literature on collectives (Thakur, Rabenseifner, Gropp, 2005).
"""

from __future__ import annotations

from argosy_autoparallel.placement import Partial, Placement, ReduceType, Shard

__all__ = ["has_step", "step_cost"]


def step_cost(source: Placement, target: Placement, size: float, n: int) -> float:
    """Bytes that a rank sends to go from ``source`` to ``target``; by way of Replicate where there is no one step."""
    if source == target or n == 1:
        return 0.0
    share = size * (n - 1) / n
    if source.is_replicated():
        return 0.0
    if isinstance(source, Shard):
        if isinstance(target, Shard) and has_step(source, target):
            return share / n
        return 0.0 if isinstance(target, Partial) and target.reduce_type() is ReduceType.kRedSum else share
    return share if isinstance(target, Shard) else 2 * share


def has_step(source: Placement, target: Placement) -> bool:
    """Whether one step of communication (or none) leads from ``source`` to ``target``."""
    if source.is_replicated():
        return True
    if isinstance(source, Shard) and (
        source.split_factor > 1 or (isinstance(target, Shard) and target.split_factor > 1)
    ):
        return target.is_replicated()
    if not isinstance(target, Partial):
        return True
    return isinstance(source, Shard) and target.reduce_type() is ReduceType.kRedSum
