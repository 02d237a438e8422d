"""Operands of a skinny product, and how terms of k are multiplied: `FloatTerms` in the type of the sums.

`pairs.PairTerms` does the same in pairs of bfloat16.
"""

from __future__ import annotations

from typing import Protocol

from argosy_cinn.contraction.packing import convert_element, read_strided
from argosy_cinn.contraction.problem import Cells, Contraction, Matrix, origin
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import Index, Value, bytes_of, is_float, vector


class Operands:
    """The wide operand and the skinny vectors of these ``numbers``: where they are, and their elements.

    ``few_rows``: the wide one is B. ``products`` are those that read it.
    """

    def __init__(
        self, b: Function, problem: Contraction, few_rows: bool, numbers: list[Index], batch: tuple[Index, ...]
    ) -> None:
        self.b, self.few_rows, self.numbers, self.batch = b, few_rows, numbers, batch
        self.count = len(numbers)
        self.products = (problem, *problem.siblings)
        self.compute, self.k = problem.compute, problem.k
        self.wide, self.skinny = (problem.b, problem.a) if few_rows else (problem.a, problem.b)
        self.wide_origin, self.skinny_origin = (origin(b, m, batch) for m in (self.wide, self.skinny))
        self.wide_rows = problem.n if few_rows else problem.m
        self.skinny_stride = self.skinny.column if few_rows else self.skinny.row
        self.skinny_step = self.skinny.row if few_rows else self.skinny.column

    def wide_of(self, product: Contraction) -> Matrix:
        """The wide operand as a product sees it."""
        return product.b if self.few_rows else product.a

    def number(self, t: Index) -> Index:
        """The number of skinny vector ``t`` of these."""
        if isinstance(t, int):
            return self.numbers[t]
        return self.b.minimum(self.b.add(self.numbers[0], t), self.numbers[-1])

    def tail_mask(self, k: Index, lanes: int) -> Value | None:
        """Which of ``lanes`` terms from k on there are; None for all of them, whatever k is."""
        if isinstance(self.k, int) and self.k % lanes == 0:
            return None
        return self.b.tail_mask(self.b.sub(self.k, k), lanes)

    def skinny_vector(self, t: Index, k: Index, lanes: int, mask: Value | None) -> Value:
        """Terms of skinny vector ``t`` of these from k on, converted and given to their prologue."""
        return self.apply_prologue(self.skinny, self.skinny_elements(t, k, lanes, mask))

    def skinny_elements(self, t: Index, k: Index, lanes: int, mask: Value | None) -> Cells:
        """Terms of skinny vector ``t`` of these from k on, as they are in memory."""
        number = self.number(t)
        row, column = (number, k) if self.few_rows else (k, number)
        return self._load(self.skinny, self.skinny_origin, row, column, int(self.few_rows), lanes, mask)

    def wide_vector(self, r: Index, k: Index, along_k: bool, lanes: int, mask: Value | None) -> Cells:
        """Elements of the wide operand from (r, k) on, along k or along r, as they are in memory."""
        row, column = (k, r) if self.few_rows else (r, k)
        axis = int(along_k != self.few_rows)
        return self._load(self.wide, self.wide_origin, row, column, axis, lanes, mask)

    def scales_vector(self, scales: Matrix, group: Index, r: Index, lanes: int, mask: Value | None) -> Value:
        """Factors of a group for wide rows from r on, converted."""
        return self.apply_prologue(scales, self._load(scales, scales.pointer, group, r, 1, lanes, mask))

    def wide_place(self, r: Index, k: Index) -> Value:
        """The address of an element of the wide operand."""
        b, wide = self.b, self.wide
        r_step, k_step = (wide.column, wide.row) if self.few_rows else (wide.row, wide.column)
        return b.gep(self.wide_origin, b.add(b.mul(r, r_step), b.mul(k, k_step)), wide.element)

    def _load(
        self, matrix: Matrix, origin: Value, row: Index, column: Index, axis: int, lanes: int, mask: Value | None
    ) -> Cells:
        b = self.b
        stride = matrix.column if axis == 1 else matrix.row
        place = b.gep(origin, b.add(b.mul(row, matrix.row), b.mul(column, matrix.column)), matrix.element)
        value = read_strided(b, place, matrix.element, stride, lanes, mask)
        return Cells(self.batch, row, column, [value], [mask], axis)

    def apply_prologue(self, matrix: Matrix, cells: Cells) -> Value:
        """What an operand's prologue, or a conversion, makes of loaded elements."""
        if matrix.prologue is not None:
            return matrix.prologue(self.b, cells)
        return convert_element(self.b, cells.values[0], self.compute, matrix.unsigned)


class Terms(Protocol):
    """How ``width`` terms of k are multiplied at a time, into a vector of sums for each pair of a wide row (as a
    product sees it) and a skinny vector."""

    width: int
    #: Terms of k whose sums have a factor (`group_scale`) where there are no groups; 0 for none.
    block: int
    #: Registers with what all rows need, and those of each wide row beside its sums.
    registers: int
    registers_of_row: int
    #: Whether sums of some skinny vectors may overflow that would not in the type of the sums, and once these are
    #: prepared of which, a bit each; None for no one.
    may_overflow: bool
    unsafe: Value | None

    @property
    def bytes_of_term(self) -> int:
        """Bytes of a term of a skinny vector, as it is read again and again."""
        ...

    @property
    def units(self) -> list[float]:
        """What the sums of each product have to be multiplied by, together with the scale of a group."""
        ...

    def group_scale(self, t: Index, k: Index) -> Value | None:
        """What else the sums of skinny vector ``t`` over the group, or block, from k on have to be multiplied by, in
        every lane; None for nothing."""
        ...

    def start(self, t: int, k: Index) -> Value:
        """What sums of skinny vector ``t`` begin with at the group, or block, from k on; without these k is 0. They
        may be integers until one ends."""
        ...

    def bytes(self) -> Index:
        """Memory that `prepare` needs."""
        ...

    def prepare(self, memory: Value) -> None:
        """Copy the skinny vectors to where steps read them, unless they can be used in place."""
        ...

    def step(self, rows: list[Index], k: Index, mask: Value | None, sums: list[Value]) -> list[Value]:
        """``sums`` plus the terms from k on."""
        ...


class FloatTerms:
    """One vector of the type of the sums at a time (floats, or integers); `place` tells where skinny vectors are: with
    ``side_by_side`` copies of all, a step after the other, for rows of a power of two would share few sets of the
    cache."""

    block = 0
    may_overflow = False
    unsafe: Value | None = None

    def __init__(self, operands: Operands, lanes: int, side_by_side: bool = False) -> None:
        self.operands, self.width = operands, lanes
        self.registers, self.registers_of_row = 0, len(operands.products)
        self.type = vector(operands.compute, lanes)
        skinny, stride = operands.skinny, operands.skinny_stride
        plain = skinny.prologue is None and skinny.element == operands.compute
        self._side_by_side = side_by_side and operands.count > 1
        self._in_place = plain and isinstance(stride, int) and stride == 1 and not self._side_by_side
        self._vectors, self._between = operands.skinny_origin, operands.skinny_step

    @property
    def bytes_of_term(self) -> int:
        """See `Terms`."""
        return bytes_of(self.operands.compute)

    @property
    def units(self) -> list[float]:
        """See `Terms`."""
        return [1.0] * len(self.operands.products)

    def group_scale(self, t: Index, k: Index) -> None:
        """See `Terms`."""

    def start(self, t: int, k: Index) -> Value:
        """See `Terms`."""
        return self.operands.b.zero(self.type)

    def _padded_depth(self) -> Index:
        b = self.operands.b
        return b.add(b.mul(b.ceil_div(self.operands.k, self.width), self.width), 16)

    def bytes(self) -> Index:
        """See `Terms`."""
        return (
            0 if self._in_place else self.operands.b.mul(self._padded_depth(), self.operands.count * self.bytes_of_term)
        )

    def prepare(self, memory: Value) -> None:
        """See `Terms`."""
        if self._in_place:
            return
        x, b = self.operands, self.operands.b
        self._vectors, self._between = memory, self._padded_depth()
        for t in range(x.count):
            with b.loop(0, x.k, self.width) as k:
                mask = x.tail_mask(k.index, self.width)
                b.store(x.skinny_vector(t, k.index, self.width, mask), self.place(t, k.index))

    def place(self, t: int, k: Index) -> Value:
        """The address of a term of a skinny vector; side by side ``k`` is where a step begins."""
        x, b = self.operands, self.operands.b
        if self._side_by_side:
            return b.gep(self._vectors, b.add(b.mul(k, x.count), t * self.width), x.compute)
        number = x.numbers[t] if self._in_place else t
        return b.gep(self._vectors, b.add(b.mul(number, self._between), k), x.compute)

    def step(self, rows: list[Index], k: Index, mask: Value | None, sums: list[Value]) -> list[Value]:
        """See `Terms`."""
        b = self.operands.b
        found, count = list(sums), self.operands.count
        wide = [vector for row in rows for vector in self._wide_terms(row, k, mask)]
        for t in range(count):  # of the skinny vectors one is in a register at a time
            x = b.masked_load(self.type, self.place(t, k), mask)
            for place in range(t, len(found), count):
                found[place] = self.multiply_add(wide[place // count], x, found[place])
        return found

    def _wide_terms(self, row: Index, k: Index, mask: Value | None) -> list[Value]:
        """What each of the products makes of a vector of the wide operand, which is loaded once."""
        x, b = self.operands, self.operands.b
        loaded = x.wide_vector(row, k, True, self.width, mask)
        found = []
        for product in x.products:
            wide = x.apply_prologue(x.wide_of(product), loaded)
            blank = mask is not None and x.wide.prologue is not None
            found.append(b.select(mask, wide, b.zero(self.type)) if blank else wide)  # type: ignore[arg-type]
        return found

    def multiply_add(self, x: Value, y: Value, total: Value) -> Value:
        """``x * y + total``, in one rounding where these are floats."""
        b = self.operands.b
        if is_float(self.operands.compute):
            return b.fma(x, y, total)
        return b.binary("add", b.binary("mul", x, y), total)
