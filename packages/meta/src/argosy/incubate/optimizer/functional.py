"""Minima of functions of one vector by quasi-Newton steps (Nocedal and Wright, 2006, algorithms 6.1 and 7.4).

The steps are computed on the host in float64; the function and its gradient in the dtype asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy.optimizer.line_search import strong_wolfe
from argosy_autograd.engine import grad
from argosy_autograd.modes import enable_grad
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor

__all__ = ["minimize_bfgs", "minimize_lbfgs"]

Vector = np.ndarray[Any, Any]


class _Objective:
    """The function on the host: ``at(x)`` gives value and gradient; ``calls`` counts."""

    def __init__(self, name: str, function: Callable[[Tensor], Tensor], dtype: str) -> None:
        self.name, self.function, self.dtype, self.calls = name, function, dtype, 0

    def at(self, x: Vector) -> tuple[float, Vector]:
        self.calls += 1
        position = Tensor(x.astype(self.dtype))
        position.stop_gradient = False
        with enable_grad():
            value = self.function(position)
            if value.size != 1:
                raise ValueError(f"{self.name}: objective_func should give one number, got shape {list(value.shape)}")
            found = grad(value, position, allow_unused=True)[0]
        gradient = np.zeros(len(x)) if found is None else to_numpy(found).astype(np.float64)
        return float(value), gradient


class _DenseInverse:
    """The inverse Hessian as a matrix."""

    def __init__(self, first: Vector) -> None:
        self.matrix = first

    def direction(self, gradient: Vector) -> Vector:
        found: Vector = -(self.matrix @ gradient)
        return found

    def learn(self, step: Vector, change: Vector) -> None:
        curvature = float(change @ step)
        if curvature <= 0:
            return
        left = np.eye(len(step)) - np.outer(step, change) / curvature
        self.matrix = left @ self.matrix @ left.T + np.outer(step, step) / curvature


class _Recent:
    """The inverse Hessian as the last ``size`` steps and changes of the gradient tell about it."""

    def __init__(self, first: Vector, size: int) -> None:
        self.first, self.size = first, size
        self.pairs: list[tuple[Vector, Vector]] = []

    def direction(self, gradient: Vector) -> Vector:
        q, factors = gradient, []
        for step, change in reversed(self.pairs):
            factors.append(float(step @ q) / float(change @ step))
            q = q - factors[-1] * change
        q = self.first @ q
        for (step, change), factor in zip(self.pairs, reversed(factors), strict=True):
            q = q + step * (factor - float(change @ q) / float(change @ step))
        return -q

    def learn(self, step: Vector, change: Vector) -> None:
        if float(change @ step) > 0:
            self.pairs = [*self.pairs, (step, change)][-self.size :]


def minimize_bfgs(
    objective_func: Callable[[Tensor], Tensor],
    initial_position: Tensor,
    max_iters: int = 50,
    tolerance_grad: float = 1e-7,
    tolerance_change: float = 1e-9,
    initial_inverse_hessian_estimate: Tensor | None = None,
    line_search_fn: str = "strong_wolfe",
    max_line_search_iters: int = 50,
    initial_step_length: float = 1.0,
    dtype: str = "float32",
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """(converged, calls of the function, position [n], value, gradient [n], inverse Hessian [n, n]).

    ``objective_func`` takes a vector and gives a number. It ends when no gradient exceeds ``tolerance_grad``, when
    neither value nor position change by more than ``tolerance_change``, or after ``max_iters`` steps. Raises ValueError
    for a first estimate that is not symmetric and positive definite, NotImplementedError for another line search.
    """
    this = "minimize_bfgs"
    start, first = _check(this, initial_position, initial_inverse_hessian_estimate, line_search_fn, dtype)
    model = _DenseInverse(first)
    limits = (max_iters, tolerance_grad, tolerance_change, max_line_search_iters, initial_step_length)
    results = _minimize(_Objective(this, objective_func, dtype), start, model, limits)
    return (*results, Tensor(model.matrix.astype(dtype)))


def minimize_lbfgs(
    objective_func: Callable[[Tensor], Tensor],
    initial_position: Tensor,
    history_size: int = 100,
    max_iters: int = 50,
    tolerance_grad: float = 1e-8,
    tolerance_change: float = 1e-8,
    initial_inverse_hessian_estimate: Tensor | None = None,
    line_search_fn: str = "strong_wolfe",
    max_line_search_iters: int = 50,
    initial_step_length: float = 1.0,
    dtype: str = "float32",
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """:func:`minimize_bfgs` with the last ``history_size`` steps in place of the matrix, which is not returned."""
    this = "minimize_lbfgs"
    if history_size < 1:
        raise ValueError(f"{this}: history_size should be positive, got {history_size}")
    start, first = _check(this, initial_position, initial_inverse_hessian_estimate, line_search_fn, dtype)
    limits = (max_iters, tolerance_grad, tolerance_change, max_line_search_iters, initial_step_length)
    return _minimize(_Objective(this, objective_func, dtype), start, _Recent(first, history_size), limits)


def _check(name: str, position: Any, estimate: Any, search: str, dtype: str) -> tuple[Vector, Vector]:
    """(the first position, the first inverse Hessian) on the host."""
    if dtype not in ("float32", "float64"):
        raise ValueError(f"{name}: dtype should be 'float32' or 'float64', got {dtype!r}")
    if search != "strong_wolfe":
        raise NotImplementedError(f"{name}: line_search_fn is 'strong_wolfe', got {search!r}")
    if not isinstance(position, Tensor) or position.ndim != 1:
        shown = list(position.shape) if isinstance(position, Tensor) else type(position).__name__
        raise ValueError(f"{name}: initial_position should be a vector, got {shown}")
    if position.dtype.name != dtype:
        raise ValueError(f"{name}: initial_position is {position.dtype.name}, dtype is {dtype}")
    if estimate is None:
        return to_numpy(position).astype(np.float64), np.eye(position.shape[0])
    matrix = to_numpy(estimate).astype(np.float64)
    size = position.shape[0]
    fits = matrix.shape == (size, size) and np.allclose(matrix, matrix.T)
    if not fits or np.linalg.eigvalsh(matrix).min(initial=1.0) <= 0:
        raise ValueError(
            f"{name}: initial_inverse_hessian_estimate should be symmetric and positive definite [{size}, {size}], got "
            f"{matrix.tolist()}"
        )
    return to_numpy(position).astype(np.float64), matrix


def _minimize(
    objective: _Objective, x: Vector, model: _DenseInverse | _Recent, limits: tuple[int, float, float, int, float]
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    max_iters, tolerance_grad, tolerance_change, search_limit, length = limits
    value, gradient = objective.at(x)
    converged = bool(np.abs(gradient).max(initial=0.0) <= tolerance_grad)
    for _ in range(max_iters):
        if converged:
            break
        direction = model.direction(gradient)
        slope = float(gradient @ direction)
        if not slope < 0:
            break
        before, origin, along = value, x, direction
        value, new, t = strong_wolfe(
            lambda t, origin=origin, along=along: objective.at(origin + t * along),  # type: ignore[misc]
            direction, length, value, gradient, slope, tolerance_change, limit=search_limit,
        )  # fmt: skip
        step, change = t * direction, new - gradient
        x, gradient = x + step, new
        model.learn(step, change)
        still = np.abs(step).max(initial=0.0) <= tolerance_change and abs(value - before) <= tolerance_change
        converged = bool(np.abs(gradient).max(initial=0.0) <= tolerance_grad or still)
    dtype = objective.dtype
    return (
        Tensor([converged]), Tensor([objective.calls], "int64"), Tensor(x.astype(dtype)), Tensor(value, dtype),
        Tensor(gradient.astype(dtype)),
    )  # fmt: skip
