"""What a rank's program communicates: each collective with its group, bytes, line, and who needs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from argosy_autoparallel.counting import Collective, CollectiveReport, Counts
from argosy_autoparallel.passes.overlap import total_work
from argosy_autoparallel.passes.tokens import COMMUNICATION, group_of
from argosy_pir import Operation, Program, TensorType
from argosy_tensorcore.dtype import as_dtype

__all__ = ["report_collectives"]


def report_collectives(program: Program | Counts) -> CollectiveReport:
    """What a rank's ``program`` communicates, as :func:`~argosy_autoparallel.partition.partition` gives it; or what was
    communicated in a block of :func:`~argosy_autoparallel.counting.count_collectives`."""
    return program.report if isinstance(program, Counts) else CollectiveReport(tuple(_collectives(program)))


def _collectives(program: Program) -> Iterator[Collective]:
    block = list(program.block)
    number = {op: at for at, op in enumerate(block)}
    for op in program.walk():
        if op.name in COMMUNICATION and op.name != "prim.wait":
            computed = 0
            if op.name in ("prim.start", "prim.start_recv") and op in number:
                (wait,) = op.results[1].users
                computed = total_work(block[number[op] : number[wait]])
            for type in _types(op):
                yield _collective(op, type, computed, op not in number)


def _types(op: Operation) -> Sequence[TensorType]:
    """What is communicated, or received: each tensor is a collective of its own, coalesced or not."""
    given = [x.type for x in op.operands if isinstance(x.type, TensorType)]
    return given or [x.type for x in op.results if isinstance(x.type, TensorType)]


def _collective(op: Operation, type: TensorType, computed: int, repeated: bool) -> Collective:
    kind = op.attributes.get("collective", "recv" if op.name == "prim.start_recv" else op.kind)
    kind = kind.removesuffix("_coalesced")
    size = prod(n for n in type.shape if isinstance(n, int)) * as_dtype(type.dtype).itemsize
    line = "" if op.location.is_unknown else str(op.location)
    sent = size * _share(kind, op.attributes)
    return Collective(kind, group_of(op), type, sent, line, op.annotations.get("needed_by", ()), computed, repeated)


def _share(kind: str, attributes: Mapping[str, Any]) -> float:
    """Of the bytes of its operand: what a rank sends."""
    n = attributes.get("size") or 1
    shares = {
        "all_reduce": 2 * (n - 1) / n, "all_gather": n - 1, "reduce_scatter": (n - 1) / n, "all_to_all": (n - 1) / n,
        "broadcast_rank": 1, "recv": 0,
    }  # fmt: skip
    return float(shares.get(kind, 1))
