"""Repeated runs of operations: blocks that follow each other and are the same, as equal layers of a network are."""

from __future__ import annotations

from typing import NamedTuple

from argosy_pir.attributes import attributes_key
from argosy_pir.values import OpResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence, Set
    from typing import Any

    from argosy_pir.core import Operation

__all__ = ["Repeat", "find_repeats"]

_PERIODS = 16  # candidates that are looked at
_NEAR = 16  # farther operands' distances are not looked at: residuals of a backward pass lie farther in each layer


class Repeat(NamedTuple):
    """``times`` blocks of ``period`` operations each, from that with the number ``start``."""

    start: int
    period: int
    times: int

    @property
    def stop(self) -> int:
        """The number of the first operation behind them."""
        return self.start + self.period * self.times

    def blocks(self, ops: Sequence[Operation]) -> Iterator[list[Operation]]:
        """The operations of each block."""
        for at in range(self.start, self.stop, self.period):
            yield list(ops[at : at + self.period])


def find_repeats(ops: Sequence[Operation], shortest: int = 8, ignored: Set[str] = frozenset()) -> list[Repeat]:
    """Runs of at least two blocks of at least ``shortest`` operations, in order, apart from each other.

    Operations are alike whose names, types, attributes (but those ``ignored``) and near operands' distances are: that
    blocks do the same is for the caller to check, who knows what they take from outside. What covers most is taken
    first, of several periods that cover as much the shortest.
    """
    numbers = _signatures(ops, ignored)
    runs = [run for period in _periods(numbers, shortest) for run in _runs(numbers, period)]
    taken: list[Repeat] = []
    for run in sorted(runs, key=lambda run: (-run.period * run.times, run.period)):
        if all(run.stop <= other.start or other.stop <= run.start for other in taken):
            taken.append(run)
    return sorted(taken)


def _signatures(ops: Sequence[Operation], ignored: Set[str]) -> list[int]:
    """A number for each operation, equal for those that are alike."""
    place = {op: at for at, op in enumerate(ops)}
    known: dict[Any, int] = {}
    return [known.setdefault(_signature(op, at, place, ignored), len(known)) for at, op in enumerate(ops)]


def _signature(op: Operation, at: int, place: dict[Operation, int], ignored: Set[str]) -> Any:
    attributes = {key: value for key, value in op.attributes.items() if key not in ignored}
    distances = [min(at - place.get(x.op, -_NEAR), _NEAR) if isinstance(x, OpResult) else _NEAR for x in op.operands]
    types = *[x.type for x in op.operands], *[x.type for x in op.results]
    return op.name, attributes_key(attributes), tuple(distances), types


def _periods(numbers: Sequence[int], shortest: int) -> list[int]:
    """Distances between operations that are alike, by how much they would cover."""
    last: dict[int, int] = {}
    counts: dict[int, int] = {}
    for at, number in enumerate(numbers):
        distance = at - last.get(number, at)
        if distance >= shortest:
            counts[distance] = counts.get(distance, 0) + 1
        last[number] = at
    return sorted(counts, key=lambda distance: (-counts[distance], distance))[:_PERIODS]


def _runs(numbers: Sequence[int], period: int) -> Iterator[Repeat]:
    begin = 0
    for at in range(len(numbers) - period + 1):
        if at == len(numbers) - period or numbers[at] != numbers[at + period]:
            if at - begin >= period:
                yield Repeat(begin, period, 1 + (at - begin) // period)
            begin = at + 1
