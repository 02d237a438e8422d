"""Transforms as matrix products, for machines that multiply matrices faster than they exchange numbers of a line.

A line of ``a b`` numbers is a matrix whose columns are transformed by a product with the ``a`` roots of unity, turned,
and whose rows are transformed in the same way (Cooley and Tukey, 1965; as products: Li, Cheng and Lin, "tcFFT", 2021).
Lengths with large prime factors are convolved with a chirp (Bluestein, 1970).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy_cinn.fourier.lengths import Lines, exchange
from argosy_cinn.fourier.rewrite import is_known, replace_axes
from argosy_cinn.fourier.roots import chirps, roots
from argosy_cinn.shapes import sizes
from argosy_phi_ops import prim
from argosy_phi_ops.primitives.checks import REAL_OF
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.values import Value

#: The largest factor that is taken off a length, and the longest line that is one product where it has none.
_FACTOR, _LONGEST = 32, 256


@register_pass("transforms-to-products")
@dataclass(frozen=True)
class TransformsToProducts(Pass):
    """Rewrites every ``prim.fft`` of known sizes as products, multiplications and changes of shape."""

    def run(self, program: Program) -> bool:
        """Rewrite the program's own block; True where anything changed."""
        found = [op for op in program.block if op.name == "prim.fft" and is_known(op)]
        for op in found:
            replace_axes(op, _ProductLines, _LONGEST)
        return bool(found)


def factor_of(n: int) -> int:
    """What is taken off a length: its largest divisor up to 32; where it has none, itself if short, else 0."""
    if n <= _FACTOR:
        return n
    found = next((d for d in range(_FACTOR, 1, -1) if n % d == 0), 0)
    return found or (n if n <= _LONGEST else 0)


class _ProductLines(Lines):
    """Lines whose transforms are products."""

    def complex_transform(self, x: Value, axis: int) -> Value:
        """Complex lines to complex lines."""
        last = len(x.shape) - 1
        return exchange(self._transform(exchange(x, axis, last), self.inverse), axis, last)

    def _transform(self, x: Value, inverse: bool) -> Value:
        """The transform along the last axis."""
        *outer, n = sizes(x)
        a = factor_of(n)
        if not a:
            return self._convolve(x, inverse)
        b, rank = n // a, len(outer)
        columns = prim.reshape(x, shape=(*outer, a, b))
        matrix = self._roots(np.outer(np.arange(a), np.arange(a)), a, inverse, x)
        columns = prim.dot_general(columns, matrix, lhs_contract=(rank,), rhs_contract=(0,))  # [..., b, a]
        if b > 1:
            columns = prim.mul(columns, self._roots(np.outer(np.arange(b), np.arange(a)), n, inverse, columns, outer))
            columns = self._transform(exchange(columns, rank, rank + 1), inverse)  # [..., a, b]
            columns = exchange(columns, rank, rank + 1)
        return prim.reshape(columns, shape=(*outer, n))  # type: ignore[no-any-return]

    def _convolve(self, x: Value, inverse: bool) -> Value:
        """The transform as a convolution with a chirp, by transforms of a power of two."""
        *outer, n = sizes(x)
        length = 1 << (2 * n - 2).bit_length()
        chirp, around = chirps(n, length)
        if inverse:
            chirp, around = chirp.conj(), np.conj(np.roll(around[::-1], 1))
        short, long = (self._numbers(numbers, x, outer) for numbers in (chirp, around))
        x = self._transform(self._pad(prim.mul(x, short), len(outer), length), False)
        x = self._transform(prim.mul(x, long), True)
        rank = len(outer) + 1
        limit = (*outer, n)
        return prim.mul(prim.slice(x, start=(0,) * rank, limit=limit, stride=(1,) * rank), short)  # type: ignore[no-any-return]

    def _roots(self, exponents: Any, n: int, inverse: bool, like: Value, outer: Any = ()) -> Value:
        found = roots(exponents, n)
        return self._numbers(found.conj() if inverse else found, like, outer)

    def _numbers(self, numbers: Any, like: Value, outer: Any) -> Value:
        """A constant of the complex dtype of ``like``, broadcast along ``outer`` axes."""
        parts = [self._constant(part.astype(REAL_OF[like.dtype]), part.shape) for part in (numbers.real, numbers.imag)]
        shape = (*outer, *numbers.shape)
        return prim.complex(*[prim.broadcast_to(part, shape=shape) for part in parts])  # type: ignore[no-any-return]
