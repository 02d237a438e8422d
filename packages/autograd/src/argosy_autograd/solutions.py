"""Hand-written eager derivatives of what solves systems of equations, on arrays: they complete the table of
:mod:`argosy_autograd.kernels`.

With ``y = x^-1 b``: ``gb = x^-T g`` and ``gx = -gb y^T``; of a determinant d, ``gx = g d x^-T`` (Giles, 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_autograd.kernels import KERNELS, Array, EagerKernel, Saved
from argosy_phi_ops.pivots import SMALL
from argosy_phi_ops.reference.kernels.decomposition import lu, solve, triangular_solve

__all__ = ["KERNELS"]


def _flip(x: Array) -> Array:
    return x.swapaxes(-1, -2)


def _of_inv(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array]:
    y = _flip(saved[1].ndarray)
    return (-np.matmul(np.matmul(y, grads[0]), y),)


def _of_solve(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array | None, Array | None]:
    wants = key[3]
    gy = solve(_flip(saved[0].ndarray), grads[0])
    return -np.matmul(gy, _flip(saved[2].ndarray)) if wants[0] else None, gy if wants[1] else None


class _SolveKernel(EagerKernel):
    __slots__ = ()

    def fits(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        """From the left, of as many systems as matrices."""
        if not super().fits(types, attributes) or not attributes["left"] or len(types) != 2:
            return False
        x, y = types[0][1], types[1][1]
        return len(x) == len(y) and x[:-2] == y[:-2]


def _of_det(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array]:
    """Through LU; pivots that are zero count as tiny, as in the derived program."""
    x = saved[0].ndarray
    packed, pivots, order = lu(x)
    diagonal = np.array(np.diagonal(packed, axis1=-2, axis2=-1))
    if not diagonal.all():
        largest = np.abs(diagonal).max(-1, keepdims=True)
        diagonal = np.where(diagonal == 0, np.where(largest > 0, largest, 1) * SMALL[x.dtype.name], diagonal)
        each = np.arange(x.shape[-1])
        packed[..., each, each] = diagonal
    odd = np.count_nonzero(pivots != np.arange(x.shape[-1]), axis=-1) % 2
    with np.errstate(all="ignore"):
        scale = np.asarray(grads[0] * diagonal.prod(-1) * (1 - 2 * odd), x.dtype)
    return (_transpose_inverse(packed, order, scale),)


def _transpose_inverse(packed: Array, order: Array, scale: Array) -> Array:
    """``scale (P^-1 L U)^-T`` for packed factors, their order of rows, and a number for each matrix."""
    right = np.eye(packed.shape[-1], dtype=packed.dtype) * scale[..., None, None]
    half = triangular_solve(packed, right, lower=False, transpose=True)
    made = triangular_solve(packed, half, lower=True, unit=True, transpose=True)
    result = np.empty_like(made)
    np.put_along_axis(result, order[..., None].astype(np.intp), made, -2)
    return result


class _DetKernel(EagerKernel):
    __slots__ = ()

    def fits(self, types: Sequence[Any], attributes: dict[str, Any]) -> bool:
        """Of matrices that are not expanded by cofactors."""
        return super().fits(types, attributes) and types[0][1][-1] > 3


def _of_slogdet(grads: list[Array], saved: Saved, attributes: Any, key: Any) -> tuple[Array]:
    """The sign is constant."""
    packed, _, order = lu(saved[0].ndarray)
    return (_transpose_inverse(packed, order, np.asarray(grads[0][1])),)


KERNELS["inv"] = EagerKernel(lambda wants: (0, 1), _of_inv)
KERNELS["solve"] = _SolveKernel(lambda wants: (0, 2) if wants[0] else (0,), _of_solve)
KERNELS["det"] = _DetKernel(lambda wants: (0,), _of_det)
KERNELS["slogdet"] = EagerKernel(lambda wants: (0,), _of_slogdet)
