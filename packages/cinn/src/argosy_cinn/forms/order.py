"""Orders: the positions that sort rows of keys, which are cut into chunks."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

from argosy_cinn.forms.form import Form, Scratch
from argosy_cinn.forms.nest import identifier
from argosy_cinn.shapes import at_least_one, ceil_div, count, estimate, larger
from argosy_phi_ops.primitives.cost import Cost
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value

#: Elements that a chunk should at least have: some hundred microseconds of work.
_CHUNK_ELEMENTS = 1 << 13
_MOST_CHUNKS = 256
#: Vector instructions for each byte of an element's keys, roughly.
_WORK = 8


@dataclass(slots=True)
class OrderForm(Form):
    """``order`` along the middle one of three axes (outer, length, inner) of the ``keys``, the first of which counts
    most."""

    kind: ClassVar[str] = "order"

    keys: list[Value]
    order: Value
    outer: int
    length: int
    inner: int
    descending: bool
    first: int
    """How many of each row's positions are wanted."""
    merges: bool = False
    """Whether its schedule merges runs, in memory for all positions twice."""

    @property
    def runs(self) -> Scratch:
        """The memory of runs: 32-bit positions, two of each element."""
        return Scratch(self.order, "sorted runs")

    def buffers(self) -> dict[Hashable, int]:
        """Runs, where they are merged."""
        return {self.runs: 8 * self.rows * self.length} if self.merges else {}

    @property
    def rows(self) -> int:
        """How many rows are sorted, each by itself."""
        return self.outer * self.inner

    @property
    def chunk_rows(self) -> int:
        """Rows of a chunk."""
        return larger(ceil_div(self.rows, _MOST_CHUNKS), -(-_CHUNK_ELEMENTS // at_least_one(estimate(self.length))))

    @property
    def chunks(self) -> int:
        """Chunks of rows."""
        return ceil_div(self.rows, self.chunk_rows)

    def key(self, slots: dict[Any, int]) -> str:
        """Keys and sizes."""
        for buffer in (*self.keys, self.order, *self.buffers()):
            slots.setdefault(buffer, len(slots))
        keys = [(slots[k], k.dtype) for k in self.keys]
        return f"order {keys} {self.outer} {self.length} {self.inner} {self.descending} {self.first}"

    def name(self) -> str:
        """Rows and their length."""
        return identifier("order", self.rows, self.length)

    def summary(self) -> str:
        """Rows, and what they are ordered by."""
        direction = " descending" if self.descending else ""
        first = "" if self.first == self.length else f"first {self.first} of the "
        return (
            f"{first}order of {self.rows} rows of {self.length} by {', '.join(k.dtype for k in self.keys)}{direction}"
        )

    def reads(self) -> set[Any]:
        """The keys."""
        return set(self.keys)

    def cost(self) -> Cost:
        """The bytes of all keys, several times."""
        key_bytes = sum(ITEM_SIZES[k.dtype] for k in self.keys)
        cells = count(self.keys[0])
        return Cost(cells * key_bytes, count(self.order) * ITEM_SIZES[self.order.dtype], cells * key_bytes * _WORK)
