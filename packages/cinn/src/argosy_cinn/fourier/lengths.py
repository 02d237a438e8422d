"""Transforms of any length by those that there are steps for.

Lines that are too long to be transformed at once, or are convolved, are turned to lie in one piece; real ones are
complex ones; a spectrum that is too short for its result is filled up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_cinn.fourier.factors import LONGEST_CONVOLVED, has_radices, split
from argosy_cinn.shapes import sizes
from argosy_phi_ops import prim
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_pir.attributes import Dense
from argosy_pir.builder import Builder
from argosy_pir.types import TensorType
from argosy_pir.values import Value


def has_transform(n: int, longest: int) -> bool:
    """Whether `Lines` takes lines of ``n`` numbers apart to what there are steps for."""
    if has_radices(n):
        return n <= longest or split(n, 1, longest) is not None
    return n <= LONGEST_CONVOLVED


class Lines:
    """Transforms along one axis, with a builder's operations; ``longest`` is the length that is done at once."""

    def __init__(self, builder: Builder, inverse: bool, longest: int) -> None:
        self.builder, self.inverse, self.longest = builder, inverse, longest

    def complex_transform(self, x: Value, axis: int) -> Value:
        """Complex lines to complex lines."""
        n, last = sizes(x)[axis], len(x.shape) - 1
        if (n > self.longest or not has_radices(n)) and axis != last:  # taken apart where they lie in one piece
            return exchange(self.complex_transform(exchange(x, axis, last), last), axis, last)
        found: Value = prim.fft(x, axes=(axis,), kind="c2c", inverse=self.inverse)
        return found

    def from_real(self, x: Value, axis: int) -> Value:
        """Real lines to the half of their spectra."""
        zero = self._constant(np.zeros((), numpy_dtype(x.dtype)), x.shape)
        spectrum = self.complex_transform(prim.complex(x, zero), axis)
        return _part(spectrum, axis, 0, sizes(x)[axis] // 2 + 1)

    def to_real(self, x: Value, axis: int, length: int) -> Value:
        """Halves of spectra to real lines of ``length``; imaginary parts of the first and last frequency do not count,
        and frequencies that are not there are zero."""
        half = length // 2 + 1
        held = min(sizes(x)[axis], half)
        x = self._pad(_part(x, axis, 0, held), axis, half)
        if length > 2:
            mirrored = prim.conj(prim.reverse(_part(x, axis, 1, (length + 1) // 2), axes=(axis,)))
            x = prim.concat(x, mirrored, axis=axis)
        found: Value = prim.real(self.complex_transform(x, axis))
        return found

    def _pad(self, x: Value, axis: int, length: int) -> Value:
        missing = length - sizes(x)[axis]
        if not missing:
            return x
        rank = len(x.shape)
        high = tuple(missing if i == axis else 0 for i in range(rank))
        zero = self._constant(np.zeros((), numpy_dtype(x.dtype)), ())
        found: Value = prim.pad(x, zero, low=(0,) * rank, high=high, interior=(0,) * rank)
        return found

    def _constant(self, numbers: np.ndarray[Any, Any], shape: Any) -> Value:
        type = TensorType(tuple(shape), numbers.dtype.name)
        value = Dense(type, numbers.tobytes())
        return self.builder.create("builtin.constant", (), {"value": value}, (type,)).result


def _part(x: Value, axis: int, start: int, limit: int) -> Value:
    shape = sizes(x)
    if (start, limit) == (0, shape[axis]):
        return x
    low = tuple(start if i == axis else 0 for i in range(len(shape)))
    high = tuple(limit if i == axis else n for i, n in enumerate(shape))
    found: Value = prim.slice(x, start=low, limit=high, stride=(1,) * len(shape))
    return found


def exchange(x: Value, a: int, b: int) -> Value:
    """Two axes in each other's place."""
    if a == b:
        return x
    order = list(range(len(x.shape)))
    order[a], order[b] = b, a
    found: Value = prim.transpose(x, permutation=tuple(order))
    return found
