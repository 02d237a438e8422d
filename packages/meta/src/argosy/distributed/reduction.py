"""How collectives combine values."""

from __future__ import annotations

__all__ = ["ReduceOp", "reduction_name"]

_NAMES = ("sum", "max", "min", "prod", "avg")


class ReduceOp:
    """The reductions of ``all_reduce``, ``reduce`` and ``reduce_scatter``. AVG takes inexact dtypes only."""

    SUM = 0
    MAX = 1
    MIN = 2
    PROD = 3
    AVG = 4


def reduction_name(op: int, kind: str) -> str:
    """The communicator's name of a ReduceOp. Raises ValueError for anything else."""
    if isinstance(op, bool) or not isinstance(op, int) or not 0 <= op < len(_NAMES):
        raise ValueError(f"{kind}: op is one of ReduceOp.SUM, MAX, MIN, PROD, AVG, not {op!r}")
    return _NAMES[op]
