"""A panel of places, what is cached at them, and how rows pass over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from argosy_cinn.paged_attention.memory import STREAMS, Memory
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import I64, Index, Value

#: The first place of a panel that rows see, and the one behind the last; None where they see all of it.
Seen: TypeAlias = "tuple[Index, Index] | None"


class Cache(NamedTuple):
    """Keys or values of ``width`` used numbers: ``head`` gives those of a head in the first place, from which others
    are as far as ``offsets`` says for each number of a panel. ``ahead``: the offsets of what is to be asked for, those
    of the next panel's keys or of this one's values; None where values are read as keys. ``scales``: the same of
    their factors, or None."""

    head: Callable[[Value], Value]
    element: str
    width: int
    offsets: Value
    ahead: Value | None
    scales: Cache | None


class Strip(NamedTuple):
    """Some numbers of a panel's places, from ``start`` on and before ``end``."""

    start: Value
    end: Index


class Heads(NamedTuple):
    """``size`` heads from the ``first`` one on and before ``end``, whose caches lie side by side."""

    first: Value
    size: Index
    end: Index


class Rule(NamedTuple):
    """What makes weights of products, the least and largest position of the run, and where its places end."""

    scale: float
    window: int
    softcap: float
    low: Value
    high: Value
    end: Index


class Panel:
    """Some places of one sequence that begin at ``start``, for all rows of a run and one head; ``position`` gives that
    of a row."""

    def __init__(
        self,
        b: Function,
        memory: Memory,
        rule: Rule,
        start: Value,
        position: Callable[[Index], Value],
        head: Value,
        heads: Heads,
    ) -> None:
        self.b, self.memory, self.rule, self.start, self.position = b, memory, rule, start, position
        self.head, self.heads, self.lanes, self.real = head, heads, memory.lanes, memory.real

    def _entry(self, cache: Cache, offsets: Value, number: Index) -> Value:
        b = self.b
        return b.gep(cache.head(self.head), b.load(I64, b.gep(offsets, number, I64)), cache.element)

    def scored(self) -> Index:
        """Where the numbers of places before the last one end, as whole vectors."""
        b, lanes = self.b, self.lanes
        left = b.minimum(b.sub(self.rule.end, self.start), self.memory.panel // STREAMS)
        return b.mul(b.ceil_div(b.mul(left, STREAMS), lanes), lanes)

    def seen(self) -> Index:
        """Where the numbers of places that any row sees end."""
        return self._numbers(self._bounds(self.rule.high, self.rule.high)[1])

    def _numbers(self, behind: Index) -> Index:
        """Where the numbers of the places before the ``behind``-th end."""
        b = self.b
        return b.mul(b.minimum(behind, self.memory.panel // STREAMS), STREAMS)

    def _place(self, number: int) -> int:
        """The place in the panel that has a number: numbers go through the panel's parts in turns."""
        return number % STREAMS * (self.memory.panel // STREAMS) + number // STREAMS

    def _bounds(self, low: Value, high: Value) -> tuple[Index, Index]:
        """The panel's places that positions from ``low`` to ``high`` all see."""
        b, width = self.b, self.memory.panel
        first: Index = 0
        if self.rule.window:
            first = b.minimum(b.maximum(b.sub(b.sub(high, self.rule.window - 1), self.start), 0), width)
        behind = b.minimum(b.add(low, 1), self.rule.end)
        return first, b.minimum(b.maximum(b.sub(behind, self.start), 0), width)

    def _tiles(self, rows: Index, build: Callable[[Index, int], None]) -> None:
        """``build`` for tiles of rows and their height, which changes no sum."""
        b, height = self.b, self.memory.height
        at = b.mul(b.div(rows, height), height)
        with b.loop(0, at, height) as loop:
            build(loop.index, height)
        while height > 1:
            height //= 2
            some = b.mul(b.rem(b.div(rows, height), 2), height)
            if isinstance(some, Value):
                with b.if_then(b.icmp("ne", some, 0)):
                    build(at, height)
            elif some:
                build(at, height)
            at = b.add(at, some)

    def _tile_count(self, rows: Index) -> Index:
        """Tiles of so many rows, at least: smaller ones at their end count as one."""
        return self.b.ceil_div(rows, self.memory.height)
