"""Orders of long rows on work-groups: a group sorts short runs of a row by counting, and merges neighbours until one is
left.

Positions are moved, never keys. An item makes a part of a merged run: where that begins in both is found by halving.
No two elements are equal, for positions decide among equal keys, so that there is one order, whatever items do first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from argosy_cinn.forms.order import OrderForm
from argosy_cinn.loops.elementwise import load_element
from argosy_cinn.loops.sort_keys import ordered_bits
from argosy_cinn.printers.types import I32, I64, LLVM_TYPES, Value
from argosy_cinn.printers.types import Index as MachineIndex
from argosy_cinn.printers.work_groups import WorkGroupInstructions

#: Work-items of a group, and elements of the runs that are sorted by counting.
ITEMS = 256
_RUN = 32
#: Elements of a merged run that an item makes, one after the other.
_PART = 2 * _RUN


def emit_merges(b: WorkGroupInstructions, form: OrderForm, slots: Mapping[Any, int]) -> None:
    """Fill the kernel of an order of long rows: a group for each."""
    _Merges(b, form, slots).emit()


class _Merges:
    def __init__(self, b: WorkGroupInstructions, form: OrderForm, slots: Mapping[Any, int]) -> None:
        self.b, self.form, self.length = b, form, form.length
        self.row, self.item = b.group_id(), b.local_id()
        self.outer, self.column = b.div(self.row, form.inner), b.rem(self.row, form.inner)
        self.base = b.add(b.mul(self.outer, form.length * form.inner), self.column)
        self.keys = [(b.buffers[slots[key]], key.dtype) for key in form.keys]
        self.order, self.memory = b.buffers[slots[form.order]], b.buffers[slots[form.runs]]

    def emit(self) -> None:
        """Sort runs, merge them, and store the positions that are wanted."""
        b, length = self.b, self.length
        self._each(self._count, length)
        passes = max(0, (-(-length // _RUN) - 1).bit_length())
        with b.loop(0, passes, 1, [b.index(_RUN)]) as loop:
            side, width = b.rem(loop.index, 2), loop.carry[0]
            self._each(lambda number: self._merge(number, side, width), -(-length // _PART))
            loop.yield_values(b.index(b.mul(width, 2)))
        form = self.form
        with b.loop(self.item, form.first, ITEMS) as loop:
            to = b.add(b.add(b.mul(self.outer, form.first * form.inner), self.column), b.mul(loop.index, form.inner))
            position = b.load(I32, self._place(passes % 2, loop.index))
            b.store(position, b.gep(self.order, to, I32))

    def _each(self, body: Callable[[Value], None], count: int) -> None:
        """For all elements or parts of the row, before anything else goes on."""
        with self.b.loop(self.item, count, ITEMS) as loop:
            body(loop.index)
        self.b.barrier("GLOBAL")

    def _place(self, side: MachineIndex, t: MachineIndex) -> Value:
        b, rows = self.b, self.form.rows
        row = b.add(b.mul(side, rows), self.row)
        return b.gep(self.memory, b.add(b.mul(row, self.length), t), I32)

    def _read(self, side: MachineIndex, t: MachineIndex) -> Value:
        return self.b.convert("sext", self.b.load(I32, self._place(side, t)), I64)

    def _write(self, side: MachineIndex, t: MachineIndex, position: Value) -> None:
        self.b.store(self.b.convert("trunc", position, I32), self._place(side, t))

    def _count(self, t: Value) -> None:
        """The place of element ``t`` in its run."""
        b = self.b
        start = b.mul(b.div(t, _RUN), _RUN)
        with b.loop(start, b.minimum(b.add(start, _RUN), self.length), 1, [b.index(0)]) as loop:
            loop.yield_values(b.index(b.add(loop.carry[0], b.convert("zext", self._precedes(loop.index, t), I64))))
        self._write(0, b.add(start, loop.results[0]), t)

    def _merge(self, number: Value, side: MachineIndex, width: Value) -> None:
        """A part of the row where runs of ``width`` and their neighbours are one."""
        b = self.b
        begin = b.index(b.mul(number, _PART))
        start = b.mul(b.div(begin, b.mul(width, 2)), b.mul(width, 2))
        middle = b.minimum(b.add(start, width), self.length)
        end = b.minimum(b.add(middle, width), self.length)
        first = self._split(side, b.sub(begin, start), start, middle, end)
        left, right = b.add(start, first), b.add(middle, b.sub(b.sub(begin, start), first))
        stop = b.minimum(b.add(begin, _PART), self.length)
        with b.loop(begin, stop, 1, [b.index(left), b.index(right)]) as loop:
            i, j = loop.carry
            x, y = self._read_within(side, i), self._read_within(side, j)
            takes = b.binary("or", b.icmp("sge", j, b.index(end)), self._precedes(x, y))
            takes = b.binary("and", b.icmp("slt", i, b.index(middle)), takes)
            self._write(b.sub(1, side), loop.index, b.select(takes, x, y))
            loop.yield_values(b.select(takes, b.index(b.add(i, 1)), i), b.select(takes, j, b.index(b.add(j, 1))))

    def _split(
        self, side: MachineIndex, taken: MachineIndex, start: MachineIndex, middle: MachineIndex, end: MachineIndex
    ) -> Value:
        """How many of the first ``taken`` elements of a merged run are of the left one (Green, McColl and Bader,
        "GPU merge path", 2012)."""
        b = self.b
        low = b.index(b.maximum(b.sub(taken, b.sub(end, middle)), 0))
        high = b.index(b.minimum(taken, b.sub(middle, start)))
        with b.loop(0, self.length.bit_length(), 1, [low, high]) as loop:
            first, last = loop.carry
            at = b.index(b.div(b.add(first, last), 2))
            x = self._read_within(side, b.add(start, at))
            y = self._read_within(side, b.maximum(b.add(middle, b.sub(b.sub(taken, at), 1)), 0))
            searching, before = b.icmp("slt", first, last), self._precedes(x, y)
            onward = b.select(b.binary("and", searching, before), b.index(b.add(at, 1)), first)
            loop.yield_values(onward, b.select(b.binary("or", b.icmp("sge", first, last), before), last, at))
        return loop.results[0]

    def _read_within(self, side: MachineIndex, t: MachineIndex) -> Value:
        """A position, or any where the row has ended."""
        return self._read(side, self.b.minimum(t, self.length - 1))

    def _precedes(self, i: Value, j: Value) -> Value:
        """Whether the element at position ``i`` of the row comes before that at ``j``."""
        b = self.b
        before = b.icmp("slt", i, j)
        for buffer, dtype in reversed(self.keys):
            x, y = (self._bits(buffer, dtype, at) for at in (i, j))
            first = b.icmp("ugt" if self.form.descending else "ult", x, y)
            before = b.binary("or", first, b.binary("and", b.icmp("eq", x, y), before))
        return before

    def _bits(self, buffer: Value, dtype: str, at: Value) -> Value:
        b, memory = self.b, LLVM_TYPES[dtype]
        place = b.gep(buffer, b.add(self.base, b.mul(at, self.form.inner)), memory)
        return ordered_bits(b, load_element(b, b.load(memory, place), dtype), dtype)
