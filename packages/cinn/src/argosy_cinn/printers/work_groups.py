"""Instructions of work-groups: what work-items share, beside the straight-line code of each.

A sub-group is a run of items that follow each other. What a machine has no instruction for is defined here by local
memory and barriers, so that a schedule which uses it runs everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.llvm import Loop
from argosy_cinn.printers.types import Index, Value, bytes_of, element_of, lanes_of
from argosy_cinn.target import Target
from argosy_pir.dims import SymExpr

__all__ = ["SimtTarget", "UnprintableError", "WorkGroupInstructions"]

#: Most items of a group that shares by local memory what sub-groups have no instructions for.
_MOST_ITEMS = 256


class SimtTarget(Target):
    """Machines of work-groups, as kernel builders ask about them.

    A work-item has vectors of ``lanes`` numbers; a group that may have any number of items gets about ``group_items``.
    Items of a sub-group of ``sub_group`` read each other's registers (1: none do), by an instruction where the machine
    has ``shuffles``. With ``matrix_tiles`` they multiply matrices together. Results of ``l3_bytes`` are stored past the
    caches. An item has ``registers`` for such vectors.
    """

    __slots__ = ("group_items", "matrix_tiles", "shuffles", "sub_group")
    schedules = "simt"
    has_float16 = False

    def __init__(
        self, lanes: int = 4, group_items: int = 1, sub_group: int = 1, shuffles: bool = False,
        matrix_tiles: bool = False, l3_bytes: int = 8 << 20, registers: int = 16,
    ) -> None:  # fmt: skip
        super().__init__("spir64-unknown-unknown", "generic", "+fma", l3_bytes=l3_bytes)
        self.vector_bits, self.registers = 32 * lanes, registers
        self.group_items, self.sub_group = group_items, sub_group
        self.shuffles, self.matrix_tiles = shuffles, matrix_tiles


class UnprintableError(NotImplementedError):
    """An instruction that a printer has no text for."""


class WorkGroupInstructions(Instructions):
    """The interface of printers for machines of work-groups, which know the address spaces of pointers: a kernel with
    addresses of device memory, ``buffers``, and ``sizes`` that are known at run time, each a parameter after these."""

    module: Any
    buffers: list[Value]
    sizes: dict[SymExpr, Value]
    _exchange: dict[tuple[int, int], Value]

    def __init__(self, name: str, target: Target, buffers: int) -> None:
        raise NotImplementedError

    def text(self) -> str:
        """The kernel's definition."""
        raise NotImplementedError

    def loop(
        self, start: Index, stop: Index, step: Index = 1, carry: Sequence[Value] = ()
    ) -> AbstractContextManager[Loop]:
        """See `printers.llvm.Function`."""
        raise NotImplementedError

    def global_id(self) -> Value:
        """The number of the work-item."""
        raise NotImplementedError

    def local_id(self) -> Value:
        """Its number in its work-group."""
        raise NotImplementedError

    def group_id(self) -> Value:
        """The number of its work-group."""
        raise NotImplementedError

    def barrier(self, memory: str = "LOCAL") -> None:
        """All work-items of the group come here before any goes on, and see what was written to ``LOCAL`` or ``GLOBAL``
        memory."""
        raise NotImplementedError

    def local_memory(self, element: str, count: int) -> Value:
        """Memory of a work-group for ``count`` elements."""
        raise NotImplementedError

    def sub_group_shuffle(self, x: Value, item: Index) -> Value:
        """The value ``x`` (a number or a vector) of another item of the sub-group, the ``item``-th; all items of the
        work-group come here."""
        own, lanes, element = self.local_id(), lanes_of(x.type), element_of(x.type)
        size = self.module.target.sub_group
        first = self.sub(own, self.rem(own, size))
        memory = self._exchange_memory(element, lanes)
        self.store(x, self.gep(memory, self.mul(own, lanes), element))
        self.barrier()
        found = self.load(x.type, self.gep(memory, self.mul(self.add(first, item), lanes), element))
        self.barrier()
        return found

    def mma(self, left: Sequence[Value], right: Sequence[Value], sums: Value) -> Value:
        """``sums`` and the product of two tiles, each of whose columns lie one in each item of the sub-group.

        With ``m`` rows and a sub-group of ``n`` items, the item ``j`` gives column ``j`` of the left tile [m, n] and of
        the right one [n, n], and gets column ``j`` of the sums [m, n], a vector. All are of one type; terms are added
        in order, each with one rounding. All items of the work-group come here.
        """
        rows, own, element = len(left), self.local_id(), element_of(sums.type)
        memory = self._exchange_memory(element, rows)
        for i, x in enumerate(left):
            self.store(x, self.gep(memory, self.add(self.mul(own, rows), i), element))
        self.barrier()
        first = self.mul(self.sub(own, self.rem(own, len(right))), rows)
        for k, y in enumerate(right):
            column = self.load(sums.type, self.gep(memory, self.add(first, k * rows), element))
            sums = self.fma(column, self.splat(y, rows), sums)
        self.barrier()
        return sums

    def _exchange_memory(self, element: str, count: int) -> Value:
        """Local memory of ``count`` elements for each item, one for all uses of that size: barriers are around them."""
        key = bytes_of(element), count
        if key not in self._exchange:
            self._exchange[key] = self.local_memory(element, _MOST_ITEMS * count)
        return self._exchange[key]
