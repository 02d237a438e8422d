"""Lines of a square number of complex numbers, transformed whole in registers.

Such a line is a square matrix whose rows are vectors, or parts of vectors that hold rows of several lines: a butterfly
down its columns, roots, a transposition, and a butterfly down what were its rows (the four-step method; Bailey, "FFTs
in external or hierarchical memory", 1990). Memory is read once and written once, in its own order.
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from argosy_cinn.forms.fourier import FourierForm
from argosy_cinn.fourier.butterfly import Number, multiply_numbers, transform
from argosy_cinn.fourier.memory import LINE, Scratch, scale_numbers, store_vector, swap_parts
from argosy_cinn.fourier.passes import roots_table
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import LLVM_TYPES, Index, Value, bytes_of, lanes_of, vector


def emit_squares(b: Function, kernel: FourierForm, source: Value, target: Value, begin: Index, end: Index) -> None:
    """The groups of lines from ``begin`` to ``end``."""
    element = LLVM_TYPES[kernel.real_dtype]
    lanes = b.module.target.lanes(element)
    side = isqrt(kernel.length)
    beside = lanes // side
    across = -(-kernel.lanes // beside)
    streaming = kernel.streaming and 2 * side >= lanes and lanes * bytes_of(element) == LINE
    with b.loop(begin, end) as groups:
        outer, group = b.div(groups.index, across), b.rem(groups.index, across)
        lane = b.minimum(b.mul(group, beside), kernel.lanes - beside)
        reads, writes = (
            _places(
                b, [b.gep(base, _start(b, steps, outer, b.add(lane, i)), element) for i in range(beside)], side, element
            )
            for base, steps in ((source, kernel.source_steps), (target, kernel.target_steps))
        )
        rows = [_split_parts(b, *(b.load(vector(element, lanes), place) for place in row)) for row in reads]
        found = [_interleave(b, row) for row in _transform(b, kernel, rows, element, lanes)]
        pairs = [list(zip(row, places, strict=True)) for row, places in zip(found, writes, strict=True)]
        ordered = pairs if beside == 1 else zip(*pairs, strict=True)  # as memory is: half the time of any other order
        for vectors in ordered:
            for value, place in vectors:
                store_vector(b, value, place, streaming)


def _start(b: Function, steps: tuple[int, int, int], outer: Index, line: Index) -> Index:
    """Elements before a line of complex numbers."""
    return b.mul(b.add(b.mul(outer, steps[0]), b.mul(line, steps[1])), 2)


def _places(b: Function, lines: list[Value], side: int, element: str) -> list[tuple[Value, Value]]:
    """Where the two vectors of each row are: of one line behind each other, or of two lines."""
    lines = lines if len(lines) == 2 else [lines[0], b.gep(lines[0], side, element)]
    return [(b.gep(lines[0], 2 * side * i, element), b.gep(lines[1], 2 * side * i, element)) for i in range(side)]


def _transform(b: Function, kernel: FourierForm, rows: list[Number], element: str, lanes: int) -> list[Number]:
    """The matrices whose rows are given, as lines."""
    side = len(rows)
    if kernel.inverse:
        rows = [swap_parts(b, x) for x in rows]
    rows = transform(b, rows)
    exponents = np.outer(np.arange(side), np.arange(lanes) % side)
    table = Scratch(roots_table(b, exponents, kernel.length, element, lanes), element, lanes)
    rows = [rows[0], *(multiply_numbers(b, x, table.load(b, i)) for i, x in enumerate(rows) if i)]
    real, imaginary = (b.transpose([x[part] for x in rows]) for part in (0, 1))
    rows = transform(b, list(zip(real, imaginary, strict=True)))
    if kernel.scale != 1.0:
        rows = [scale_numbers(kernel.scale)(b, x) for x in rows]
    return [swap_parts(b, x) for x in rows] if kernel.inverse else rows


def _split_parts(b: Function, low: Value, high: Value) -> Number:
    """Real and imaginary parts of the numbers in two vectors."""
    lanes = lanes_of(low.type)
    return b.shuffle(low, high, range(0, 2 * lanes, 2)), b.shuffle(low, high, range(1, 2 * lanes, 2))


def _interleave(b: Function, x: Number) -> Number:
    """The way back."""
    lanes = lanes_of(x[0].type)
    both = [lane + part for lane in range(lanes) for part in (0, lanes)]
    return b.shuffle(*x, both[:lanes]), b.shuffle(*x, both[lanes:])
