"""The largest singular value by power iteration, and the vectors it keeps between calls."""

from __future__ import annotations

from typing import Any

from argosy_autograd.modes import no_grad
from argosy_phi_ops.eager.dispatch import write

__all__ = ["as_matrix", "largest_singular_value"]


def as_matrix(weight: Any, dim: int) -> Any:
    """``weight`` with ``dim`` as rows and everything else as columns."""
    order = [dim, *(axis for axis in range(weight.ndim) if axis != dim)]
    return weight.transpose(order).reshape([weight.shape[dim], -1])


def largest_singular_value(weight: Any, u: Any, v: Any, dim: int, iterations: int, epsilon: float) -> Any:
    """``u @ weight @ v`` after ``iterations`` steps, 0-D; ``u`` [rows] and ``v`` [columns] are updated in place.

    No gradient flows through the iteration (Miyato et al., 2018).
    """
    matrix = as_matrix(weight, dim)
    left, right = u.detach(), v.detach()
    with no_grad():
        still = matrix.detach()
        for _ in range(iterations):
            right = _unit(still.t() @ left, epsilon)
            left = _unit(still @ right, epsilon)
        if iterations:
            write(u, left)
            write(v, right)
    return (left.detach() * (matrix @ right.detach())).sum()


def _unit(vector: Any, epsilon: float) -> Any:
    return vector / ((vector * vector).sum().sqrt() + epsilon)
