"""Lines of a length with a large prime factor, each a circular convolution of a longer, smooth length (Bluestein, 1970)
that stays in a near cache.

A line times the chirp, filled up with zeros, is a matrix of ``pieces``. It is transformed down its columns and along
its rows (Gentleman and Sande, 1966), multiplied with the transform of the chirp's conjugate, and transformed back along
rows and down columns: what lies between is in no order that anything has to undo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from argosy_cinn.forms.fourier import FourierForm
from argosy_cinn.fourier.butterfly import Number, multiply_numbers
from argosy_cinn.fourier.factors import radices
from argosy_cinn.fourier.memory import ChangedPlace, Place, Scratch, TwiddledPlace, swap_parts
from argosy_cinn.fourier.passes import emit_pass, numbers_table
from argosy_cinn.fourier.roots import chirps, roots
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import I1, I8, LLVM_TYPES, Index, Value, bytes_of, vector, vector_constant
from argosy_cinn.runtime.workers import scratch
from argosy_pir.types import ITEM_SIZES


def emit_convolutions(b: Function, kernel: FourierForm, source: Value, target: Value, begin: Index, end: Index) -> None:
    """The lines from ``begin`` to ``end``."""
    lines = _Convolution(b, kernel)
    lines.clear_tails()
    size = ITEM_SIZES[kernel.source.dtype]
    with b.loop(begin, end) as loop:
        lines.enter(b.gep(source, b.mul(loop.index, kernel.source_steps[1] * size), I8))
        lines.columns(lines.entered, lines.line)
        lines.rows()
        lines.columns(lines.line, lines.line)
        lines.leave(b.gep(target, b.mul(loop.index, kernel.target_steps[1] * size), I8))


@dataclass(frozen=True, slots=True)
class _Every:
    """Every so many numbers of a place."""

    place: Place
    start: Index
    step: int

    def load(self, b: Function, position: Index) -> Number:
        """The number at a position."""
        return self.place.load(b, b.add(b.mul(position, self.step), self.start))

    def store(self, b: Function, position: Index, number: Number) -> None:
        """Write the number at a position."""
        self.place.store(b, b.add(b.mul(position, self.step), self.start), number)


class _Convolution:
    """The stages of a line, and what they work on: the line as it came (its end stays zero), the matrix, and two
    buffers for the passes of rows or columns that lie side by side; tables of factors in the same form."""

    def __init__(self, b: Function, kernel: FourierForm) -> None:
        self.b, self.length, self.pieces = b, kernel.length, kernel.pieces
        self.element = LLVM_TYPES[kernel.real_dtype]
        self.lanes = b.module.target.lanes(self.element)
        self.across = self.pieces[1] // self.lanes
        self._place_numbers()
        self._make_tables(kernel)

    def _place_numbers(self) -> None:
        item = 2 * bytes_of(self.element)
        sizes = [n * item for n in (*[prod(self.pieces)] * 2, *[max(self.pieces) * self.lanes] * 2)]
        memory = scratch(self.b, sum(sizes))
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        self.entered, self.line, *self.buffers = (self._numbers(self.b.gep(memory, start, I8)) for start in starts)

    def _make_tables(self, kernel: FourierForm) -> None:
        (rows, columns), n, lanes = self.pieces, self.length, self.lanes
        chirp, response = chirps(n, rows * columns)
        if kernel.inverse:
            chirp, response = chirp.conj(), np.roll(response[::-1], 1).conj()
        # by blocks of rows, positions and rows of a block; row r holds the frequencies that are r beyond whole rows
        turn = roots(np.outer(np.arange(columns), np.arange(rows)), rows * columns)
        spectrum = (response * kernel.scale).reshape(columns, rows)
        blocks = [x.reshape(columns, rows // lanes, lanes).swapaxes(0, 1).reshape(-1) for x in (turn, spectrum)]
        self.chirp, self.turn, self.spectrum = (
            self._numbers(numbers_table(self.b, x, self.element, lanes))
            for x in (np.pad(chirp, (0, -n % lanes)), *blocks)
        )

    def _numbers(self, base: Value) -> Scratch:
        return Scratch(base, self.element, self.lanes)

    # -- stages

    def clear_tails(self) -> None:
        """Zeros behind the numbers of every line."""
        zero = self.b.zero(vector(self.element, self.lanes))
        with self.b.loop(-(-self.length // self.lanes), prod(self.pieces) // self.lanes) as loop:
            self.entered.store(self.b, loop.index, (zero, zero))

    def enter(self, source: Value) -> None:
        """The numbers of a line times the chirp."""
        b, lanes = self.b, self.lanes
        type = vector(self.element, lanes)
        for i, masks in self._vectors():
            first = b.gep(source, b.mul(i, 2 * lanes), self.element)
            low, high = (
                b.masked_load(type, b.gep(first, part * lanes, self.element), mask) for part, mask in enumerate(masks)
            )
            number = b.shuffle(low, high, range(0, 2 * lanes, 2)), b.shuffle(low, high, range(1, 2 * lanes, 2))
            self.entered.store(b, i, multiply_numbers(b, number, self.chirp.load(b, i)))

    def leave(self, target: Value) -> None:
        """The same on the way out."""
        b, lanes = self.b, self.lanes
        both = [lane + part for lane in range(lanes) for part in (0, lanes)]
        for i, masks in self._vectors():
            number = multiply_numbers(b, swap_parts(b, self.line.load(b, i)), self.chirp.load(b, i))
            for part, mask in enumerate(masks):
                place = b.gep(target, b.add(b.mul(i, 2 * lanes), part * lanes), self.element)
                b.masked_store(b.shuffle(*number, both[part * lanes : (part + 1) * lanes]), place, mask)

    def _vectors(self) -> Iterator[tuple[Index, tuple[Value | None, Value | None]]]:
        """The vectors of a line, with the masks of both halves of a vector's numbers in a tensor: a loop over whole
        ones, and what is left. Code is emitted while this is iterated."""
        whole, left = divmod(self.length, self.lanes)
        with self.b.loop(0, whole) as loop:
            yield loop.index, (None, None)
        if left:
            kept = [vector_constant(I1, [i < 2 * left for i in part]) for part in _halves(self.lanes)]
            yield whole, (kept[0], kept[1])

    def columns(self, source: Scratch, target: Scratch) -> None:
        """Transforms down the columns."""
        with self.b.loop(0, self.across) as loop:
            start, end = (_Every(place, loop.index, self.across) for place in (source, target))
            count = len(radices(self.pieces[0])) - 1
            self._passes(self.pieces[0], [start, *(self.buffers[i % 2] for i in range(count)), end])

    def rows(self) -> None:
        """Rows, transformed, multiplied with the response, and transformed with parts in the place of each other, which
        is the way back."""
        columns = self.pieces[1]
        count = len(radices(columns))
        with self.b.loop(0, self.pieces[0] // self.lanes) as loop:
            turn, spectrum = (self._block_factors(table, loop.index) for table in (self.turn, self.spectrum))
            self._turn_in(loop.index, TwiddledPlace(self.buffers[0], turn))
            places: list[Place] = [self.buffers[i % 2] for i in range(2 * count + 1)]
            middle, last = places[count], places[-1]
            there = [*places[:count], TwiddledPlace(ChangedPlace(middle, swap_parts), spectrum)]
            back = [*places[count:-1], TwiddledPlace(last, turn)]
            self._passes(columns, there)
            self._passes(columns, back)
            self._turn_out(loop.index, last)

    def _block_factors(self, table: Scratch, block: Index) -> Callable[[Index], Number]:
        """Factors of a block of rows by position."""
        start = self.b.mul(block, self.pieces[1])
        return lambda position: table.load(self.b, self.b.add(start, position))

    def _passes(self, n: int, places: Sequence[Place]) -> None:
        done = 1
        for radix, start, end in zip(radices(n), places, places[1:], strict=False):
            emit_pass(self.b, n, done, radix, start, end, self.element, self.lanes)
            done *= radix

    def _turn_in(self, block: Index, target: Place) -> None:
        """A block of rows, side by side."""
        with self.b.loop(0, self.across) as loop:
            numbers = [self._row(block, i).load(self.b, loop.index) for i in range(self.lanes)]
            for k, number in enumerate(self._turn(numbers)):
                target.store(self.b, self.b.add(self.b.mul(loop.index, self.lanes), k), number)

    def _turn_out(self, block: Index, source: Place) -> None:
        """The way back."""
        with self.b.loop(0, self.across) as loop:
            start = self.b.mul(loop.index, self.lanes)
            numbers = [source.load(self.b, self.b.add(start, k)) for k in range(self.lanes)]
            for i, number in enumerate(self._turn(numbers)):
                self._row(block, i).store(self.b, loop.index, number)

    def _row(self, block: Index, i: int) -> _Every:
        row = self.b.add(self.b.mul(block, self.lanes), i)
        return _Every(self.line, self.b.mul(row, self.across), 1)

    def _turn(self, numbers: list[Number]) -> list[Number]:
        re, im = (self.b.transpose([x[part] for x in numbers]) for part in (0, 1))
        return list(zip(re, im, strict=True))


def _halves(lanes: int) -> tuple[range, range]:
    return range(lanes), range(lanes, 2 * lanes)
