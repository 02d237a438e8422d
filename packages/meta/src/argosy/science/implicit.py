"""Functions given by equations: linear systems by products, roots, fixed points; derivatives by the implicit function
theorem, without going through the iterations that found the solution.

Where F(x, a) = 0 defines x(a), a cotangent g of x gives ``-(dF/da)^T w`` with ``(dF/dx)^T w = g`` (Griewank and
Walther, Evaluating Derivatives, 2008, chapter 15). The linear solve is differentiated in the same way, so that
derivatives of any order follow; captured, from the third on through the steps of the solve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy.science.checks import check_floating, held_to_shape
from argosy.static.control_flow import while_loop
from argosy_autograd.engine import grad
from argosy_autograd.modes import enable_grad, no_grad
from argosy_autograd.pylayer import PyLayer
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["fixed_point", "linear_solve", "root"]

Function = Callable[..., Any]


def linear_solve(matvec: Function, b: Tensor, *args: Any, tolerance: float = 1e-10, iterations: int = 1000) -> Any:
    """x with ``matvec(x, *args) = b``, where ``matvec`` is linear in x: by BiCGSTAB (van der Vorst, 1992).

    Stops when the residual is ``tolerance`` times the norm of b, or after ``iterations``. Derivatives by ``b`` and the
    tensors among ``args`` (what ``matvec`` reads otherwise counts as constant) need one solve with the transposed
    products each, which are made by reverse mode. Where there is no solution, x is where that ended, or NaN. Raises
    ``TypeError`` for a ``b`` that is no floating tensor, ``ValueError`` for products that have not its shape.
    Returns a tensor of the shape of ``b``.
    """
    check_floating("linear_solve", b=b)
    return _solve(held_to_shape("linear_solve", matvec), _Limits(tolerance, iterations, 0), b, *args)


class _Limits(NamedTuple):
    tolerance: float
    iterations: int
    depth: int


_DEPTH = 2
"""While capturing, derivatives are recorded together with what they are of, so their order must be bounded."""


def _solve(matvec: Function, limits: _Limits, b: Any, *args: Any) -> Any:
    if active_tracer() is not None and limits.depth > _DEPTH:  # the others are those of the steps
        with enable_grad():
            return _bicgstab(lambda v: matvec(v, *args), b, limits)
    return _Solve.apply(matvec, limits, b, *args)


def root(func: Function, x0: Tensor, *args: Any, tolerance: float = 1e-10, iterations: int = 50) -> Any:
    """x with ``func(x, *args) = 0`` (of the shape of x), by Newton's method from ``x0`` with products alone.

    Stops when the norm of a step is ``tolerance`` times that of x (plus one), or after ``iterations``: where there is
    no root, x is where that ended, or NaN. Derivatives by the tensors among ``args``, none by ``x0``. Raises
    ``TypeError`` for an ``x0`` that is no floating tensor, ``ValueError`` for values that have not its shape.
    Returns a tensor of the shape of ``x0``.
    """
    check_floating("root", x0=x0)
    func = held_to_shape("root", func)

    def solve(*values: Any) -> Any:
        def step(x: Any) -> Any:
            moving = _as_leaf(x)
            with enable_grad():
                value = func(moving, *values)
            return x - linear_solve(_products(func), value.detach(), moving.detach(), *values, tolerance=1e-12)

        return _iterate(step, x0, tolerance, iterations)

    return _Implicit.apply(func, solve, *args)


def fixed_point(func: Function, x0: Tensor, *args: Any, tolerance: float = 1e-10, iterations: int = 1000) -> Any:
    """x with ``x = func(x, *args)``, by iterating from ``x0`` until a step is ``tolerance`` times x (plus one).

    Derivatives by the tensors among ``args``, none by ``x0``. Raises ``TypeError`` for an ``x0`` that is no floating
    tensor, ``ValueError`` for values that have not its shape. Returns a tensor of the shape of ``x0``.
    """
    check_floating("fixed_point", x0=x0)
    func = held_to_shape("fixed_point", func)
    solve = lambda *values: _iterate(lambda x: func(x, *values), x0, tolerance, iterations)  # noqa: E731
    return _Implicit.apply(lambda x, *values: x - func(x, *values), solve, *args)


class _Implicit(PyLayer):
    """x of F(x, *args) = 0, found by ``solve(*args)``."""

    @staticmethod
    def forward(ctx: Any, residual: Function, solve: Function, *args: Any) -> Tensor:
        """Run the solver."""
        x: Tensor = solve(*args)
        ctx.residual, ctx.args, ctx.x = residual, args, x
        return x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Solve the adjoint system."""
        residual = ctx.residual
        w = linear_solve(_pull_back(residual), g, ctx.x, *ctx.args, tolerance=1e-12)
        return _negate(_partials(residual, ctx.x, ctx.args, w))


class _Solve(PyLayer):
    """x of matvec(x, *args) = b."""

    @staticmethod
    def forward(ctx: Any, matvec: Function, limits: _Limits, b: Tensor, *args: Any) -> Any:
        """Iterate."""
        with no_grad():
            x = _bicgstab(lambda v: matvec(v, *args).detach(), b.detach(), limits)
        ctx.matvec, ctx.limits, ctx.x, ctx.args = matvec, limits, x, args
        return x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """The transposed system; ``-w x^T`` for the matrix, by the arguments."""
        deeper = ctx.limits._replace(depth=ctx.limits.depth + 1)
        w = _solve(_transpose(ctx.matvec, ctx.x), deeper, g, *ctx.args)
        return (w, *_negate(_partials(ctx.matvec, ctx.x, ctx.args, w)))


def _transpose(matvec: Function, like: Tensor) -> Function:
    """w -> matvec^T w, by reverse mode at zero."""

    def apply(w: Any, *args: Any) -> Any:
        moving = _as_leaf(get_operator("zeros_like")(like))
        with enable_grad():
            made = matvec(moving, *args)
        return grad(made, moving, w, create_graph=True)[0]

    return apply


def _pull_back(residual: Function) -> Function:
    """(w, x, *args) -> (dF/dx)^T w."""

    def apply(w: Any, x: Any, *args: Any) -> Any:
        with enable_grad():
            moving = _copy(x)
            made = residual(moving, *args)
        return grad(made, moving, w, create_graph=True)[0]

    return apply


def _products(residual: Function) -> Function:
    """(v, x, *args) -> dF/dx v: the transpose of the transpose."""

    def apply(v: Any, x: Any, *args: Any) -> Any:
        seed = _as_leaf(get_operator("zeros_like")(x))
        with enable_grad():
            moving = _copy(x)
            pulled: Any = grad(residual(moving, *args), moving, seed, create_graph=True)[0]
        return grad(pulled, seed, v, create_graph=True)[0]

    return apply


def _partials(residual: Function, x: Any, args: Sequence[Any], w: Any) -> list[Any]:
    """(dF/da)^T w for each tensor among ``args``, None where it does not matter."""
    with enable_grad():
        copies = [_copy(a) if _is_floating(a) else a for a in args]
        made = residual(x, *copies)
        moving = [c for c in copies if _is_floating(c)]
        found = iter(grad(made, moving, w, create_graph=True, allow_unused=True) if moving else ())
    return [next(found) if _is_floating(a) else None for a in args if type(a) is Tensor]


def _negate(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(None if v is None else -v for v in values)


def _is_floating(x: Any) -> bool:
    return type(x) is Tensor and x.dtype.kind in "fc"


def _as_leaf(x: Any) -> Any:
    """A constant copy of ``x`` to differentiate by."""
    return _copy(x.detach())


def _copy(x: Any) -> Any:
    """A copy in the graph of ``x``: what is differentiated by it does not go on to ``x``."""
    made = get_operator("assign")(x)
    if made.payload.is_traced:
        made.payload.active = True
    made.stop_gradient = False
    return made


def _iterate(step: Function, x0: Tensor, tolerance: float, iterations: int) -> Any:
    """x = step(x) until it moves no more."""

    def goes_on(count: Any, x: Any, moved: Any, size: Any) -> Any:
        return get_operator("logical_and")(count < iterations, moved > tolerance * (size + 1))

    def body(count: Any, x: Any, moved: Any, size: Any) -> list[Any]:
        after = step(x).detach()
        return [count + 1, after, _norm(after - x), _norm(after)]

    with no_grad():
        size = _norm(x0.detach())
        count = get_operator("full")([], 0, "int64")
        return while_loop(goes_on, body, [count, x0.detach(), size * 0 + float("inf"), size])[1]


def _bicgstab(product: Function, b: Any, limits: _Limits) -> Any:
    floor = 1e-300 if b.dtype.name in ("float64", "complex128") else 1e-37
    size, shadow = _norm(b), b

    def goes_on(count: Any, x: Any, r: Any, p: Any, rho: Any) -> Any:
        return get_operator("logical_and")(count < limits.iterations, _norm(r) > limits.tolerance * size)

    def body(count: Any, x: Any, r: Any, p: Any, rho: Any) -> list[Any]:
        v = product(p)
        alpha = rho / _kept_from_zero(_dot(shadow, v), floor)
        s = r - alpha * v
        t = product(s)
        omega = _dot(t, s) / _kept_from_zero(_dot(t, t), floor)
        x = x + alpha * p + omega * s
        r = s - omega * t
        following = _dot(shadow, r)
        beta = following / _kept_from_zero(rho, floor) * (alpha / _kept_from_zero(omega, floor))
        return [count + 1, x, r, r + beta * (p - omega * v), following]

    start = [get_operator("full")([], 0, "int64"), get_operator("zeros_like")(b), b, b, _dot(b, b)]
    return while_loop(goes_on, body, start)[1]


def _dot(x: Any, y: Any) -> Any:
    product = get_operator("conj")(x) * y if x.dtype.kind == "c" else x * y
    return get_operator("sum")(product)


def _norm(x: Any) -> Any:
    return get_operator("sqrt")(get_operator("sum")(get_operator("abs")(x) ** 2))


def _kept_from_zero(x: Any, floor: float) -> Any:
    return get_operator("where")(get_operator("abs")(x) < floor, x * 0 + floor, x)
