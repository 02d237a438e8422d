"""Transforms of a few numbers in registers.

Composite sizes by Cooley and Tukey (1965), odd primes by sums and differences of mirrored numbers (Singleton, 1969).
A number is a pair of vectors, real and imaginary part: a lane for each line that is transformed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from argosy_cinn.fourier.roots import root
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import Value

#: Real and imaginary part.
Number: TypeAlias = tuple[Value, Value]


def add_numbers(b: Function, x: Number, y: Number) -> Number:
    """``x + y``."""
    return b.fadd(x[0], y[0]), b.fadd(x[1], y[1])


def subtract_numbers(b: Function, x: Number, y: Number) -> Number:
    """``x - y``."""
    return b.fsub(x[0], y[0]), b.fsub(x[1], y[1])


def multiply_numbers(b: Function, x: Number, w: Number) -> Number:
    """``x w``."""
    return (
        b.fma(x[0], w[0], b.fneg(b.fmul(x[1], w[1]))),
        b.fma(x[0], w[1], b.fmul(x[1], w[0])),
    )


def rotate_quarter(b: Function, x: Number) -> Number:
    """``-i x``."""
    return x[1], b.fneg(x[0])


def rotate(b: Function, x: Number, k: int, n: int) -> Number:
    """``exp(-2 pi i k / n) x``."""
    quarters, rest = divmod(4 * (k % n), n)
    for _ in range(quarters):
        x = rotate_quarter(b, x)
    if rest == 0:
        return x
    w = root(rest, 4 * n)
    if 2 * rest == n:  # an eighth
        c = w.real
        return b.fmul(b.fadd(x[0], x[1]), c), b.fmul(b.fsub(x[1], x[0]), c)
    return (
        b.fma(x[1], -w.imag, b.fmul(x[0], w.real)),
        b.fma(x[0], w.imag, b.fmul(x[1], w.real)),
    )


def transform(b: Function, x: Sequence[Number]) -> list[Number]:
    """The transform of the numbers: sums of ``x[j] exp(-2 pi i j k / n)``."""
    n = len(x)
    if n == 1:
        return list(x)
    if n == 2:
        return [add_numbers(b, *x), subtract_numbers(b, *x)]
    if n == 4:
        return _four(b, x)
    first = 4 if n % 4 == 0 else next(p for p in range(2, n + 1) if n % p == 0)
    return _odd_butterfly(b, x) if first == n else _composite(b, x, first)


def _four(b: Function, x: Sequence[Number]) -> list[Number]:
    even, odd = add_numbers(b, x[0], x[2]), add_numbers(b, x[1], x[3])
    across, turn = subtract_numbers(b, x[0], x[2]), subtract_numbers(b, x[1], x[3])
    return [
        add_numbers(b, even, odd),
        (b.fadd(across[0], turn[1]), b.fsub(across[1], turn[0])),
        subtract_numbers(b, even, odd),
        (b.fsub(across[0], turn[1]), b.fadd(across[1], turn[0])),
    ]


def _composite(b: Function, x: Sequence[Number], first: int) -> list[Number]:
    n = len(x)
    second = n // first
    columns = [transform(b, x[j::second]) for j in range(second)]
    found: list[Number] = [x[0]] * n
    for k in range(first):
        row = [rotate(b, columns[j][k], j * k, n) for j in range(second)]
        found[k::first] = transform(b, row)
    return found


def _odd_butterfly(b: Function, x: Sequence[Number]) -> list[Number]:
    n = len(x)
    half = range(1, n // 2 + 1)
    sums = {j: add_numbers(b, x[j], x[n - j]) for j in half}
    differences = {j: subtract_numbers(b, x[j], x[n - j]) for j in half}
    total = x[0]
    for j in half:
        total = add_numbers(b, total, sums[j])
    found: list[Number] = [total] * n
    for k in half:
        even, odd = list(x[0]), [b.fmul(part, -root(k, n).imag) for part in differences[1]]
        for j in half:
            w = root(j * k, n)
            for part in (0, 1):
                even[part] = b.fma(sums[j][part], w.real, even[part])
                odd[part] = odd[part] if j == 1 else b.fma(differences[j][part], -w.imag, odd[part])
        re, im = odd
        found[k] = b.fadd(even[0], im), b.fsub(even[1], re)
        found[n - k] = b.fsub(even[0], im), b.fadd(even[1], re)
    return found
