"""Transforms of any length by those that there are steps for.

A length with a large prime factor is a circular convolution of a longer, smooth length (Bluestein, 1970); real lines
that are too long to be transformed at once are complex ones; a spectrum that is too short for its result is filled up.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from argosy_cinn.fourier.factors import cost, has_radices, split
from argosy_cinn.fourier.roots import roots
from argosy_cinn.plan.shapes import sizes
from argosy_phi_ops import prim
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_pir.attributes import Dense
from argosy_pir.builder import Builder
from argosy_pir.types import TensorType
from argosy_pir.values import Value

#: Numbers of the longest table of a convolution that is part of the code; libraries are faster where it is longer.
_LONGEST_TABLE = 1 << 15


def has_transform(n: int, longest: int) -> bool:
    """Whether `Lines` takes lines of ``n`` numbers apart to what there are steps for."""
    if has_radices(n):
        return n <= longest or split(n, 1, longest) is not None
    return 2 * n <= _LONGEST_TABLE


class Lines:
    """Transforms along one axis, with a builder's operations; ``longest`` is the length that is done at once."""

    def __init__(self, builder: Builder, inverse: bool, longest: int) -> None:
        self.builder, self.inverse, self.longest = builder, inverse, longest

    def complex(self, x: Value, axis: int) -> Value:
        """Complex lines to complex lines."""
        n, last = sizes(x)[axis], len(x.shape) - 1
        length = n if has_radices(n) else smooth(2 * n - 1)
        if length > self.longest and axis != last:  # long lines are taken apart where they lie in one piece
            return _exchanged(self.complex(_exchanged(x, axis, last), last), axis, last)
        return self._transformed(x, axis, self.inverse) if length == n else self._convolved(x, axis, length)

    def from_real(self, x: Value, axis: int) -> Value:
        """Real lines to the half of their spectra."""
        zero = self._constant(np.zeros((), numpy_dtype(x.dtype)), x.shape)
        spectrum = self.complex(prim.complex(x, zero), axis)
        return _part(spectrum, axis, 0, sizes(x)[axis] // 2 + 1)

    def to_real(self, x: Value, axis: int, length: int) -> Value:
        """Halves of spectra to real lines of ``length``; imaginary parts of the first and last frequency do not count,
        and frequencies that are not there are zero."""
        half = length // 2 + 1
        held = min(sizes(x)[axis], half)
        x = self._padded(_part(x, axis, 0, held), axis, half)
        if length > 2:
            mirrored = prim.conj(prim.reverse(_part(x, axis, 1, (length + 1) // 2), axes=(axis,)))
            x = prim.concat(x, mirrored, axis=axis)
        found: Value = prim.real(self.complex(x, axis))
        return found

    def _convolved(self, x: Value, axis: int, length: int) -> Value:
        """By ``j k = (j^2 + k^2 - (k - j)^2) / 2``: a product, a convolution of ``length`` numbers, a product."""
        n = sizes(x)[axis]
        chirp, response = chirps(n, length)
        if self.inverse:
            chirp, response = chirp.conj(), np.roll(response[::-1], 1).conj()
        factor = self._along(chirp, x, axis)
        spectrum = self._transformed(self._padded(prim.mul(x, factor), axis, length), axis, False)
        product = prim.mul(spectrum, self._along(response, spectrum, axis))
        found: Value = prim.mul(_part(self._transformed(product, axis, True), axis, 0, n), factor)
        return found

    @staticmethod
    def _transformed(x: Value, axis: int, inverse: bool) -> Value:
        found: Value = prim.fft(x, axes=(axis,), kind="c2c", inverse=inverse)
        return found

    def _padded(self, x: Value, axis: int, length: int) -> Value:
        missing = length - sizes(x)[axis]
        if not missing:
            return x
        rank = len(x.shape)
        high = tuple(missing if i == axis else 0 for i in range(rank))
        zero = self._constant(np.zeros((), numpy_dtype(x.dtype)), ())
        found: Value = prim.pad(x, zero, low=(0,) * rank, high=high, interior=(0,) * rank)
        return found

    def _along(self, numbers: np.ndarray[Any, Any], like: Value, axis: int) -> Value:
        """Numbers along an axis, repeated to the shape of a value."""
        table = self._constant(numbers.astype(numpy_dtype(like.dtype)), numbers.shape)
        found: Value = prim.broadcast(table, shape=like.shape, axes=(axis,))
        return found

    def _constant(self, numbers: np.ndarray[Any, Any], shape: Any) -> Value:
        type = TensorType(tuple(shape), numbers.dtype.name)
        value = Dense(type, numbers.tobytes())
        return self.builder.create("builtin.constant", (), {"value": value}, (type,)).result


@cache
def smooth(least: int) -> int:
    """The length from ``least`` on whose transform is cheapest."""
    most = 1 << (least - 1).bit_length()
    step = max(1, most // 64)  # of all lengths of small factors these are close enough
    lengths = [n for n in range(-(-least // step) * step, most + 1, step) if has_radices(n)]
    return min(lengths, key=lambda n: (n * (1 + cost(n)), n))


def chirps(n: int, length: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The factors ``exp(-pi i k^2 / n)``, and the transform of their conjugates around 0 over ``length``."""
    k = np.arange(n, dtype=np.int64)
    chirp = roots(k * k % (2 * n), 2 * n)
    around = np.zeros(length, np.complex128)
    around[:n] = chirp.conj()
    around[length - n + 1 :] = chirp[1:].conj()[::-1]
    return chirp, np.fft.fft(around) / length


def _part(x: Value, axis: int, start: int, limit: int) -> Value:
    shape = sizes(x)
    if (start, limit) == (0, shape[axis]):
        return x
    low = tuple(start if i == axis else 0 for i in range(len(shape)))
    high = tuple(limit if i == axis else n for i, n in enumerate(shape))
    found: Value = prim.slice(x, start=low, limit=high, stride=(1,) * len(shape))
    return found


def _exchanged(x: Value, a: int, b: int) -> Value:
    order = list(range(len(x.shape)))
    order[a], order[b] = b, a
    found: Value = prim.transpose(x, permutation=tuple(order))
    return found
