"""Transforms of whole lines, a radix a pass, from one place to the next (Stockham's, 1966: no reordering), and lines
that lie behind each other in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from argosy_cinn.fourier.butterfly import Number, multiply_numbers, transform
from argosy_cinn.fourier.memory import Place, Rows, ask_for, store_vector
from argosy_cinn.fourier.roots import roots
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import I1, PTR, Index, Value, vector, vector_constant

_DTYPES = {"float": "float32", "double": "float64"}


def number_at(b: Function, base: Value, position: Index, element: str, lanes: int) -> Number:
    """A complex number of a table for all lines."""
    first = b.gep(base, b.mul(position, 2), element)
    parts = b.load(element, first), b.load(element, b.gep(first, 1, element))
    return b.splat(parts[0], lanes), b.splat(parts[1], lanes)


def roots_table(
    b: Function, exponents: np.ndarray[Any, np.dtype[np.int64]], n: int, element: str, lanes: int = 1
) -> Value:
    """A table of powers of the root of unity, shared by what asks for the same: numbers, or ``lanes`` of them in a pair
    of vectors."""
    return numbers_table(b, roots(exponents, n), element, lanes)


def numbers_table(b: Function, numbers: np.ndarray[Any, Any], element: str, lanes: int) -> Value:
    """A table of complex numbers in the same form."""
    powers = numbers.reshape(-1, lanes)
    values = np.stack([powers.real, powers.imag], 1).astype(_DTYPES[element]).tobytes()
    name = b.module.shared_function(("bytes", values), "roots", lambda name: b.module.constant_bytes(name, values))
    return Value(PTR, f"@{name}")


def emit_pass(
    b: Function, n: int, done: int, radix: int, source: Place, target: Place, element: str, lanes: int
) -> None:
    """One pass over lines of ``n``: ``done`` is the product of the radices before it."""
    left = n // done  # the length of the transforms that are still to do
    blocks = left // radix
    base = None
    if blocks > 1:
        powers = np.arange(blocks)[:, None] * np.arange(1, radix)[None, :]
        base = roots_table(b, powers, left, element)

    def butterfly(p: Index, q: Index) -> None:
        place = b.add(b.mul(p, done), q)
        x = [source.load(b, b.add(place, k * (n // radix))) for k in range(radix)]
        y = transform(b, x)
        to = b.add(b.mul(p, done * radix), q)
        for k, number in enumerate(y):
            if k and base is not None:
                number = multiply_numbers(
                    b, number, number_at(b, base, b.add(b.mul(p, radix - 1), k - 1), element, lanes)
                )
            target.store(b, b.add(to, done * k), number)

    _loop_over(b, blocks, lambda p: _loop_over(b, done, lambda q: butterfly(p, q)))


def _loop_over(b: Function, count: int, body: Callable[[Index], None]) -> None:
    """A loop, or its one iteration."""
    if count == 1:
        body(0)
        return
    with b.loop(0, count) as loop:
        body(loop.index)


def transposed_in(b: Function, rows: Rows, count: int, target: Place) -> None:
    """Read ``count`` numbers of each line."""
    width, lanes = 1 + rows.pairs, rows.lanes
    type = vector(rows.element, lanes)

    def block(start: Index, kept: int) -> None:
        mask = _mask(kept * width, lanes)
        places = [_place(b, rows, start, line) for line in range(lanes)]
        for place in places if rows.ahead else ():
            ask_for(b, place, rows.element, rows.ahead, lanes)
        across = b.transpose([b.masked_load(type, place, mask) for place in places])
        for k in range(kept):
            im = across[width * k + 1] if rows.pairs else b.zero(type)
            target.store(b, b.add(start, k), (across[width * k], im))

    _blocks(b, count, lanes // width, block)


def write_transposed(b: Function, rows: Rows, count: int, source: Place) -> None:
    """Write ``count`` numbers of each line; of lines of single real numbers the real parts."""
    width, lanes = 1 + rows.pairs, rows.lanes

    def block(start: Index, kept: int) -> None:
        numbers = [source.load(b, b.add(start, k)) for k in range(kept)]
        parts = [part for number in numbers for part in number[:width]]
        parts += [parts[0]] * (lanes - len(parts))
        for line, values in enumerate(b.transpose(parts)):
            place = _place(b, rows, start, line)
            if rows.streaming:
                store_vector(b, values, place, True)
            else:
                if rows.ahead:
                    ask_for(b, place, rows.element, rows.ahead, lanes, write=True)
                b.masked_store(values, place, _mask(kept * width, lanes))

    _blocks(b, count, lanes // width, block)


def _place(b: Function, rows: Rows, start: Index, line: int) -> Value:
    return b.gep(rows.base, b.add(b.mul(start, 1 + rows.pairs), rows.stride * line), rows.element)


def _mask(elements: int, lanes: int) -> Value | None:
    """The lanes of a block that has fewer elements than a vector."""
    return None if elements == lanes else vector_constant(I1, [i < elements for i in range(lanes)])


def _blocks(b: Function, count: int, size: int, block: Callable[[Index, int], None]) -> None:
    """``block(start, kept)`` over a line: whole blocks, the last of which may overlap the one before."""
    if count < size:
        block(0, count)
        return
    whole = count // size
    if whole == 1:
        block(0, size)
    else:
        with b.loop(0, whole * size, size) as loop:
            block(loop.index, size)
    if count % size:
        block(count - size, size)


__all__ = ["emit_pass", "number_at", "numbers_table", "roots_table", "transposed_in", "write_transposed"]
