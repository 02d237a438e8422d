"""``odeint``: initial value problems of ordinary differential equations, with derivatives through every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy.science.adaptive import Tolerances, solve
from argosy.science.checks import check_floating, held_to_shape
from argosy.science.loops import scan
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["odeint"]

Field = Callable[..., Any]


def _euler(f: Field, t: Any, y: Any, h: Any) -> Any:
    return y + h * f(t, y)


def _midpoint(f: Field, t: Any, y: Any, h: Any) -> Any:
    return y + h * f(t + h / 2, y + h / 2 * f(t, y))


def _rk4(f: Field, t: Any, y: Any, h: Any) -> Any:
    a = f(t, y)
    b = f(t + h / 2, y + h / 2 * a)
    c = f(t + h / 2, y + h / 2 * b)
    return y + h / 6 * (a + 2 * b + 2 * c + f(t + h, y + h * c))


METHODS = {"euler": _euler, "midpoint": _midpoint, "rk4": _rk4}
"""Explicit Runge-Kutta methods of order 1, 2 and 4 (Hairer, Norsett, Wanner, 1993, section II.1)."""


def odeint(
    func: Field,
    y0: Tensor,
    t: Tensor,
    *args: Any,
    method: str = "rk4",
    substeps: int = 1,
    rtol: float = 1e-6,
    atol: float = 1e-8,
    max_steps: int = 10_000,
) -> Tensor:
    """The solution of ``dy/dt = func(t, y, *args)`` with ``y(t[0]) = y0`` at the times ``t`` [n]: [n, *y0.shape].

    Fixed steps: every interval of ``t`` (increasing or decreasing) is ``substeps`` equal steps of ``method``: "euler",
    "midpoint" or "rk4". Derivatives by ``y0``, ``t``, ``args`` and whatever ``func`` reads go through the steps, so
    they are exactly those of what was computed; of any order. Captured, the steps are one loop.

    Adaptive steps: ``method="dopri5"`` keeps the error of each step below ``atol + rtol |y|``, with at most
    ``max_steps`` tried between two times (NaN from there on). Derivatives by ``y0``, ``t``, the tensors among ``args``
    and the parameters of ``func`` where it is a layer come from the adjoint equation, which has its own: of any order,
    captured up to the second, as exact as the tolerances; what ``func`` reads otherwise counts as constant.

    Raises ``TypeError`` for a ``y0`` or ``t`` that is no floating tensor, ``ValueError`` for slopes that have not the
    shape of y, and for options outside of their ranges.
    """
    if method not in METHODS and method != "dopri5":
        raise ValueError(f"odeint(): method {method!r} is unknown; there are {', '.join(METHODS)} and dopri5")
    check_floating("odeint", y0=y0, t=t)
    if t.ndim != 1 or t.shape[0] < 1 or substeps < 1:
        raise ValueError(f"odeint(): t should be of shape [n], substeps positive; got {list(t.shape)} and {substeps}")
    if rtol < 0 or atol < 0 or rtol + atol == 0 or max_steps < 1:
        raise ValueError(
            f"odeint(): rtol {rtol} and atol {atol} should not be negative, max_steps {max_steps} positive"
        )
    func = held_to_shape("odeint", func, 1)
    if method == "dopri5":
        found: Tensor = solve(func, y0, t, args, Tolerances(rtol, atol, max_steps))
        return found
    advance = METHODS[method]

    def interval(carried: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
        (y,), (start, end) = carried, slices
        h = (end - start) / substeps
        for k in range(substeps):
            y = advance(lambda s, z: func(s, z, *args), start + k * h, y, h)
        return [y], [y]

    found = get_operator("unsqueeze")(y0, 0)
    if t.shape[0] > 1:
        _, (path,) = scan(interval, [y0], [t[:-1], t[1:]])
        found = get_operator("concat")([found, path], 0)
    return found
