"""What an order is to a plan: rows of keys, cut into chunks."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from argosy_cinn.shapes import at_least_one, ceil_div, count, estimate, larger, sizes
from argosy_pir.core import Operation
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value

#: Elements that a chunk should at least have: some hundred microseconds of work.
_CHUNK_ELEMENTS = 1 << 13
_MOST_CHUNKS = 256
#: Vector instructions for each byte of an element's keys, roughly.
_WORK = 8


@dataclass(slots=True)
class OrderKernel:
    """``order`` along the middle one of three axes (outer, length, inner) of the ``keys``, the first of which counts
    most."""

    keys: list[Value]
    order: Value
    outer: int
    length: int
    inner: int
    descending: bool
    first: int
    """How many of each row's positions are wanted."""

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

    def slots(self) -> dict[Value, int]:
        """The place of each buffer in the kernel's table."""
        return {v: i for i, v in enumerate(dict.fromkeys([*self.keys, self.order]))}

    def text(self) -> str:
        """What the code depends on."""
        slots = self.slots()
        keys = [(slots[k], k.dtype) for k in self.keys]
        return f"order {keys} {self.outer} {self.length} {self.inner} {self.descending} {self.first}"

    def summary(self) -> str:
        """A line for `explain`."""
        direction = " descending" if self.descending else ""
        first = "" if self.first == self.length else f"first {self.first} of the "
        return (
            f"{first}order of {self.rows} rows of {self.length} by {', '.join(k.dtype for k in self.keys)}{direction}"
        )

    def work(self) -> tuple[int, int, int]:
        """Bytes read and written, and operations."""
        key_bytes = sum(ITEM_SIZES[k.dtype] for k in self.keys)
        cells = count(self.keys[0])
        return cells * key_bytes, count(self.order) * ITEM_SIZES[self.order.dtype], cells * key_bytes * _WORK


def lower_order(op: Operation) -> OrderKernel:
    """The kernel of a ``cinn.order``."""
    axis, shape = op.attributes["axis"], sizes(op.operand(0))
    return OrderKernel(
        list(op.operands), op.result, prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]),
        op.attributes["descending"], sizes(op.result)[axis],
    )  # fmt: skip
