"""Where Paddle has ``reduce`` and its operations, for code that takes them from there."""

from argosy.distributed.collective import reduce
from argosy.distributed.reduction import ReduceOp, reduction_name

__all__ = ["ReduceOp", "_get_reduce_op", "reduce"]


def _get_reduce_op(reduce_op: int, func_name: str) -> int:
    """The operation itself, as collectives take it. Raises ValueError for what is none."""
    reduction_name(reduce_op, func_name)
    return reduce_op
