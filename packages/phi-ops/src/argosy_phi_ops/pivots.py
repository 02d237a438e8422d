"""Pivots that are exactly zero, and derivatives at singular matrices.

The determinant is a polynomial, but its derivative through LU divides by pivots. Where one is zero, both the operator
``det`` and the derivative rule of ``lu`` go on with the same tiny number in its place, which cancels: the result is the
adjugate of a matrix that is as near as rounding.
"""

from __future__ import annotations

from typing import Any

from argosy_phi_ops import prim

__all__ = ["SMALL", "zero_pivots"]

SMALL = {"float32": 2.0**-40, "float64": 2.0**-70, "complex64": 2.0**-40, "complex128": 2.0**-70}
"""What counts in place of a zero pivot, against the largest of its matrix."""


def zero_pivots(diagonal: Any) -> Any:
    """What to add to the pivots [..., n] of matrices: zero where they are not zero, else tiny against the largest."""
    size = prim.abs(prim.stop_gradient(diagonal))
    largest = prim.reduce_max(size, axes=(size.ndim - 1,))
    scale = prim.select(prim.gt(largest, 0.0), largest, 1.0)
    each = prim.broadcast(scale, shape=size.shape, axes=tuple(range(scale.ndim)))
    tiny = prim.select(prim.eq(size, 0.0), prim.mul(each, SMALL.get(size.dtype, 2.0**-40)), 0.0)
    return tiny if tiny.dtype == diagonal.dtype else prim.cast(tiny, dtype=diagonal.dtype)
