"""Sums that free more than they make, moved up to where their operands are read last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from argosy_autoparallel.value_layouts import bytes_of
from argosy_pir import Operation, Program
from argosy_pir.passes import Pass, register_pass
from argosy_pir.values import OpResult

__all__ = ["ShrinkLiveRanges"]

_Places = Mapping[Operation, tuple[int, int]]


@register_pass("shrink-live-ranges")
@dataclass(frozen=True)
class ShrinkLiveRanges(Pass):
    """Moves sums whose results are no larger than the operands that they read last up to where those are read before.

    A captured step sums gradients of biases after the backward pass, and adds those of several batches up there: until
    then all their terms would be held whole, and nothing of them communicated. Sums alone are moved, since what is not
    linear needs gradients to be summed over ranks.
    """

    def run(self, program: Program) -> bool:
        """True where anything moves."""
        block = list(program.block)
        places = {op: (at, 0) for at, op in enumerate(block)}
        behind: dict[int, Operation] = {}  # what was moved last behind the operation of a number
        for op in block:
            before = _last_before(op, places)
            if before is None or places[before][0] == places[op][0] - 1:
                continue
            number, count = places[before][0], places[behind.get(places[before][0], before)][1]
            op.move_after(behind.get(number, before))
            places[op], behind[number] = (number, count + 1), op
        return bool(behind)


def _last_before(op: Operation, places: _Places) -> Operation | None:
    """The operation behind which ``op`` frees what it reads; None where it frees less than it makes."""
    if op.name not in ("prim.add", "prim.reduce_sum"):
        return None
    read = [x for x in op.operands if isinstance(x, OpResult)]
    users = {x: [u for u in x.users if u is not op] for x in read}
    ended = [x for x, others in users.items() if all(u in places and places[u] < places[op] for u in others)]
    if not ended or sum(map(bytes_of, op.results)) > sum(map(bytes_of, ended)):
        return None
    return max([*(x.op for x in read), *(u for x in ended for u in users[x])], key=places.__getitem__)
