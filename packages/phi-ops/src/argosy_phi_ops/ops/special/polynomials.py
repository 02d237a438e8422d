"""Polynomials by Horner's rule, of which special functions are made."""

from __future__ import annotations

from collections.abc import Sequence

from argosy_phi_ops import prim
from argosy_tensorcore.tensor import Tensor


def polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """The polynomial with these coefficients, lowest first, by Horner's rule; for ``|x| < 1``."""
    total = prim.constant(coefficients[-1], x.dtype, x.shape)
    for c in reversed(coefficients[:-1]):
        total = prim.add(prim.mul(total, x), c)
    return total
