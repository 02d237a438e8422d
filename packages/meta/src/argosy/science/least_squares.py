"""Nonlinear least squares by Levenberg and Marquardt's damped Gauss-Newton steps, with products alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy.jit import to_static
from argosy.science.checks import check_floating
from argosy_autograd.functional import jvp, vjp
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["Fit", "levenberg_marquardt"]


class Fit(NamedTuple):
    """What :func:`levenberg_marquardt` found: the parameters, half the sum of squares there, and the steps it took."""

    x: Tensor
    cost: float
    steps: int


def levenberg_marquardt(
    residuals: Callable[[Tensor], Any],
    x0: Tensor,
    steps: int = 100,
    damping: float = 1e-3,
    tolerance: float = 1e-10,
    inner: int = 100,
    compiled: bool = True,
) -> Fit:
    """x that makes ``sum(residuals(x)**2) / 2`` small, near ``x0``; ``residuals`` gives a tensor of any shape.

    Each step solves ``(J^T J + damping) d = -J^T r`` by at most ``inner`` conjugate gradients with products of J and
    its transpose; the damping falls after a step that helps and grows until one does (Levenberg, 1944; Marquardt,
    1963). With damping 0 this is Gauss-Newton. Ends when the gradient is ``tolerance`` times the cost (plus one), or
    no step helps. With ``compiled`` the products are captured programs. Raises ``TypeError`` for an ``x0`` that is no
    floating tensor or residuals that are not real, ``ValueError`` for an option below its least.
    """
    check_floating("levenberg_marquardt", x0=x0)
    _check_options(steps=(steps, 0), damping=(damping, 0), tolerance=(tolerance, 0), inner=(inner, 1))

    def checked_residuals(x: Any) -> Any:
        r = residuals(x)
        check_floating("levenberg_marquardt", residuals=r)
        if r.dtype.kind == "c":
            raise TypeError("levenberg_marquardt(): residuals should be real; give real and imaginary parts, stacked")
        return r

    def gradient(x: Any) -> Any:
        r, g = vjp(checked_residuals, x, checked_residuals(x.detach()).detach())
        return (r * r).sum() / 2, g

    def curvature(x: Any, v: Any) -> Any:
        return vjp(checked_residuals, x, jvp(checked_residuals, x, v)[1])[1]

    def cost_at(x: Any) -> Any:
        r = checked_residuals(x)
        return (r * r).sum() / 2

    if compiled:
        gradient, curvature = to_static(gradient, full_graph=True), to_static(curvature, full_graph=True)
        cost_at = to_static(cost_at, full_graph=True)
    x: Any = x0.detach()
    for number in range(steps):
        cost, g = gradient(x)
        before = float(cost)
        if float(get_operator("abs")(g).max()) <= tolerance * (before + 1):
            return Fit(x, before, number)
        while True:
            moved = x + _direction(partial(curvature, x), g, damping, inner)
            after = float(cost_at(moved))
            if after < before:
                break
            damping = max(10 * damping, 1e-12)
            if damping > 1e12:
                return Fit(x, before, number)
        x, damping = moved.detach(), damping / 10
    return Fit(x, float(cost_at(x)), steps)


def _check_options(**options: tuple[float, int]) -> None:
    """Raise for an option that is below the least one there is."""
    for name, (value, least) in options.items():
        if not value >= least:
            raise ValueError(f"levenberg_marquardt(): {name} should be {least} or more, got {value}")


def _direction(product: Callable[[Any], Any], g: Any, damping: float, inner: int) -> Any:
    """d of ``(product + damping) d = -g`` by conjugate gradients (Hestenes and Stiefel, 1952)."""
    d = g * 0
    r = p = -g
    size = start = float((r * r).sum())
    for _ in range(inner):
        if size <= 1e-20 * start or size == 0:
            break
        q = product(p) + damping * p
        alpha = size / float((p * q).sum())
        d, r = d + alpha * p, r - alpha * q
        following = float((r * r).sum())
        p, size = r + following / size * p, following
    return d.detach()
