"""What a rank's program communicates: each collective with its group, bytes, line, and who needs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from argosy_autoparallel.passes.overlap import total_work
from argosy_autoparallel.passes.tokens import COMMUNICATION, group_of
from argosy_pir import Operation, Program, TensorType
from argosy_tensorcore.dtype import as_dtype

__all__ = ["Collective", "CollectiveReport", "report_collectives"]


class Collective(NamedTuple):
    """A collective or message of a rank's program.

    ``kind`` is its primitive, at the user's ``line``; ``group`` its ranks, none for all of them, None for messages;
    ``type`` that of the operand, or of what is received; ``nbytes`` what this rank sends by ring algorithms (as
    :class:`~argosy_autoparallel.counting.Counts` has it). ``needed_by`` names the operations that it was put in for;
    none where somebody asked for it: by a layout, by ``reshard`` or by the collective itself. ``computed`` numbers are
    computed while it is on its way, none while it is waited for where it starts. ``repeated`` in a loop or branch: it
    counts once, as it is written.
    """

    kind: str
    group: tuple[int, ...] | None
    type: TensorType
    nbytes: float
    line: str
    needed_by: tuple[str, ...]
    computed: int
    repeated: bool

    @property
    def implicit(self) -> bool:
        """Whether nobody asked for it."""
        return bool(self.needed_by)

    def __str__(self) -> str:
        ranks = "" if self.group is None else f" of {_ranks(self.group)}"
        reason = f"for {', '.join(self.needed_by)}" if self.needed_by else "asked for"
        where = f" at {self.line}" if self.line else ""
        hidden = f", {self.computed:,} numbers computed meanwhile" if self.computed else ""
        inside = ", in a loop or branch" if self.repeated else ""
        return f"{self.kind}{ranks}: {self.type}, {self.nbytes:,.0f} bytes, {reason}{where}{hidden}{inside}"


def _ranks(group: tuple[int, ...]) -> str:
    return f"ranks {', '.join(map(str, group))}" if group else "all ranks"


@dataclass(frozen=True)
class CollectiveReport:
    """The ``collectives`` of a rank's program in order; its text is a line for each, and sums by kind."""

    collectives: tuple[Collective, ...]

    @property
    def total_bytes(self) -> float:
        """Bytes that this rank sends in all."""
        return sum(each.nbytes for each in self.collectives)

    @property
    def implicit(self) -> tuple[Collective, ...]:
        """Those that nobody asked for."""
        return tuple(each for each in self.collectives if each.implicit)

    def __str__(self) -> str:
        asked = len(self.collectives) - len(self.implicit)
        kinds = dict.fromkeys(each.kind for each in self.collectives)
        sums = [f"{kind}: {self._sum(kind)}" for kind in kinds]
        total = f"{len(self.collectives)} collectives, {self.total_bytes:,.0f} bytes; {asked} asked for"
        return "\n".join([total, *[f"  {line}" for line in sums], *map(str, self.collectives)])

    __repr__ = __str__

    def _sum(self, kind: str) -> str:
        found = [each.nbytes for each in self.collectives if each.kind == kind]
        return f"{len(found)}, {sum(found):,.0f} bytes"


def report_collectives(program: Program) -> CollectiveReport:
    """What a rank's ``program`` communicates, as :func:`~argosy_autoparallel.partition.partition` gives it."""
    return CollectiveReport(tuple(_collectives(program)))


def _collectives(program: Program) -> Iterator[Collective]:
    block = list(program.block)
    number = {op: at for at, op in enumerate(block)}
    for op in program.walk():
        if op.name in COMMUNICATION and op.name != "prim.wait":
            computed = 0
            if op.name in ("prim.start", "prim.start_recv") and op in number:
                (wait,) = op.results[1].users
                computed = total_work(block[number[op] : number[wait]])
            yield _collective(op, computed, op not in number)


def _collective(op: Operation, computed: int, repeated: bool) -> Collective:
    kind = op.attributes.get("collective", "recv" if op.name == "prim.start_recv" else op.kind)
    given = next((x for x in op.operands if isinstance(x.type, TensorType)), None)
    type = (op.results[0] if given is None else given).type
    assert isinstance(type, TensorType)
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
