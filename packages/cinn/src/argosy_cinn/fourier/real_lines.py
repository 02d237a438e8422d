"""Real lines as complex ones of half the length (Cooley, Lewis and Welch, 1970): even elements are real parts, odd ones
imaginary parts. Lines of odd length are complex ones without imaginary parts, half of whose spectrum is kept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from argosy_cinn.fourier.butterfly import Number, add_numbers, multiply_numbers, subtract_numbers
from argosy_cinn.fourier.memory import Place, conjugate
from argosy_cinn.fourier.passes import number_at, roots_table
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import Index


def emit_taken_apart(b: Function, half: int, source: Place, target: Place, element: str, lanes: int) -> None:
    """From transforms of ``half`` complex numbers to the ``half + 1`` first frequencies of twice as many real ones."""
    re, im = source.load(b, 0)
    nothing = b.zero(re.type)
    target.store(b, 0, (b.fadd(re, im), nothing))
    target.store(b, half, (b.fsub(re, im), nothing))

    def emit_pair(k: Index, x: Number, y: Number, w: Number) -> None:
        even, odd = _mirror(b, x, y)
        even = b.fmul(even[0], 0.5), b.fmul(even[1], 0.5)
        turn = multiply_numbers(b, odd, (b.fmul(w[1], 0.5), b.fmul(w[0], -0.5)))  # -i w / 2
        target.store(b, k, add_numbers(b, even, turn))
        target.store(b, b.sub(half, k), conjugate(b, subtract_numbers(b, even, turn)))

    _pairs(b, half, source, element, lanes, emit_pair)
    if half % 2 == 0:
        target.store(b, half // 2, conjugate(b, source.load(b, half // 2)))


def emit_put_together(b: Function, half: int, source: Place, target: Place, element: str, lanes: int) -> None:
    """The way back: what has to be transformed, with the other sign, to get pairs of real numbers. Imaginary parts of
    the first and last frequency do not count."""
    first, last = source.load(b, 0)[0], source.load(b, half)[0]
    target.store(b, 0, (b.fadd(first, last), b.fsub(first, last)))

    def emit_pair(k: Index, x: Number, y: Number, w: Number) -> None:
        even, odd = _mirror(b, x, y)
        turn = multiply_numbers(b, odd, (w[1], w[0]))  # i times the conjugate of w
        target.store(b, k, add_numbers(b, even, turn))
        target.store(b, b.sub(half, k), conjugate(b, subtract_numbers(b, even, turn)))

    _pairs(b, half, source, element, lanes, emit_pair)
    if half % 2 == 0:
        re, im = source.load(b, half // 2)
        target.store(b, half // 2, (b.fmul(re, 2.0), b.fmul(im, -2.0)))


def _mirror(b: Function, x: Number, y: Number) -> tuple[Number, Number]:
    """The sum and the difference of ``x`` and the conjugate of ``y``."""
    y = conjugate(b, y)
    return add_numbers(b, x, y), subtract_numbers(b, x, y)


def _pairs(
    b: Function,
    half: int,
    source: Place,
    element: str,
    lanes: int,
    emit_pair: Callable[[Index, Number, Number, Number], None],
) -> None:
    """``emit_pair(k, number k, number half - k, root k)`` for the pairs below the middle."""
    if half < 3:
        return
    base = roots_table(b, np.arange((half + 1) // 2), 2 * half, element)
    with b.loop(1, (half + 1) // 2) as loop:
        k = loop.index
        emit_pair(k, source.load(b, k), source.load(b, b.sub(half, k)), number_at(b, base, k, element, lanes))


def emit_kept(b: Function, length: int, source: Place, target: Place) -> None:
    """Copy the frequencies of a real line of odd length."""
    with b.loop(0, length // 2 + 1) as loop:
        target.store(b, loop.index, source.load(b, loop.index))


def emit_completed(b: Function, length: int, source: Place, target: Place) -> None:
    """The whole spectrum of a real line of odd length."""
    re, _ = source.load(b, 0)
    target.store(b, 0, (re, b.zero(re.type)))
    with b.loop(1, length // 2 + 1) as loop:
        number = source.load(b, loop.index)
        target.store(b, loop.index, number)
        target.store(b, b.sub(length, loop.index), conjugate(b, number))
