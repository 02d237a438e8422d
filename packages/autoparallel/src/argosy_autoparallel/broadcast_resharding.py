"""Broadcasts made again: where a broadcast value is needed in another layout, its small source may be moved instead.

A bias that is split over ranks, spread over a batch that is split as well, would otherwise move whole activations.
"""

from __future__ import annotations

from argosy_autoparallel.placement import Placement, Replicate, Shard
from argosy_pir import Operation, Value
from argosy_pir.values import OpResult

__all__ = ["broadcast_of", "source_placement"]


def broadcast_of(value: Value) -> Operation | None:
    """The broadcast that makes ``value`` from something smaller; None when it comes from elsewhere."""
    if not isinstance(value, OpResult) or value.op.name != "prim.broadcast":
        return None
    return value.op


def source_placement(op: Operation, wanted: Placement) -> Placement | None:
    """How the operand of the broadcast ``op`` must be placed for a result placed so; None for a partial result."""
    if wanted.is_partial():
        return None
    axes = tuple(op.attributes["axes"])
    if isinstance(wanted, Shard) and wanted.dim in axes:
        axis = axes.index(wanted.dim)
        if op.operand(0).shape[axis] == op.result.shape[wanted.dim]:
            return wanted.with_dim(axis)
    return Replicate()
