"""Trapezoidal sums."""

# mypy: disable-error-code="no-any-return,index,operator"

from __future__ import annotations

from typing import Any

from argosy_phi_ops.declare.composition import compose
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_phi_ops.errors import OperatorError, ShapeError
from argosy_phi_ops.ops.common.arguments import axis_of
from argosy_tensorcore.tensor import Tensor


def _trapezoids(name: str, y: Tensor, x: Tensor | None, dx: Any, axis: int) -> tuple[Tensor, int]:
    if x is not None and dx is not None:
        raise OperatorError(f"{name} takes x or dx, not both")
    at = axis_of(name, axis, y.ndim)
    size = y.shape[at]
    behind, ahead = (op("slice")(y, [at], [i], [size - 1 + i]) for i in (0, 1))
    step: Any = 1.0 if dx is None else dx
    if isinstance(step, Tensor) and step.ndim:
        raise ShapeError(f"{name}: dx should be a number, got shape {list(step.shape)}")
    if x is not None:
        step = op("diff")(x, 1, at if x.ndim == y.ndim else -1)
        if x.ndim == 1 and y.ndim > 1:
            step = op("reshape")(step, [-1 if i == at else 1 for i in range(y.ndim)])
    return step * (behind + ahead) / 2.0, at


@compose()
def trapezoid(y: Tensor, x: Tensor | None = None, dx: Any = None, axis: int = -1) -> Tensor:
    """The integral of ``y`` along ``axis`` by trapezoids, at the places ``x`` or with distance ``dx`` (1)."""
    area, at = _trapezoids("trapezoid", y, x, dx, axis)
    return op("sum")(area, at)


@compose()
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, dx: Any = None, axis: int = -1) -> Tensor:
    """The running integral of ``y`` along ``axis`` by trapezoids; one element shorter."""
    area, at = _trapezoids("cumulative_trapezoid", y, x, dx, axis)
    return op("cumsum")(area, at)
