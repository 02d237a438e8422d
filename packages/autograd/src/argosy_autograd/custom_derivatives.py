"""``custom_vjp`` and ``custom_jvp``: functions with a derivative of the user's own, given as functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argosy_autograd.engine import grad
from argosy_autograd.errors import DifferentiationError
from argosy_autograd.modes import enable_grad
from argosy_autograd.pylayer import PyLayer
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["custom_jvp", "custom_vjp"]

Function = Callable[..., Any]
_DEPTH = 4
"""While capturing, a rule that calls its own function is traced into itself this often: derivatives up to this order
are the rule's, further ones those of the body."""


class _Custom:
    """A function that is called like the one it wraps."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self.depth = 0

    def _missing_rule(self, method: str) -> DifferentiationError:
        return DifferentiationError(f"{type(self).__name__} function {self.__name__}: call {method} before using it")


class custom_vjp(_Custom):
    """Decorator: ``f.defvjp(forward, backward)`` gives the function ``f`` its own reverse derivative.

    ``forward(*args)`` returns the results and residuals (any structure of tensors); ``backward(residuals, g)`` gets
    one cotangent for each result (a tuple of them where there are several) and returns one gradient, or None, for
    each argument. Arguments are positional. Higher derivatives follow from ``forward`` and ``backward``, which are
    themselves differentiated. Eager and captured. A gradient of another number or shape than its argument raises
    :class:`DifferentiationError`.
    """

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.forward: Function | None = None
        self.backward: Function | None = None

    def defvjp(self, forward: Function, backward: Function) -> None:
        """Set both functions."""
        self.forward, self.backward = forward, backward

    def __call__(self, *args: Any) -> Any:
        """The results of the function. Raises :class:`DifferentiationError` before :meth:`defvjp`."""
        if self.forward is None:
            raise self._missing_rule("defvjp")
        return _Reverse.apply(self, *args)


class _Reverse(PyLayer):
    @staticmethod
    def forward(ctx: Any, rule: custom_vjp, *args: Any) -> Any:
        """Run the rule's forward function; recorded, because residuals have derivatives of their own."""
        assert rule.forward is not None
        with enable_grad():
            pair = rule.forward(*args)
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise DifferentiationError(
                    f"custom_vjp function {rule.__name__}: forward should return (results, residuals), got "
                    f"{_describe(pair)}"
                )
            made, residuals = pair
        ctx.rule, ctx.residuals, ctx.arguments = rule, residuals, args
        return _separate(made)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Run the rule's backward function."""
        found = ctx.rule.backward(ctx.residuals, grads[0] if len(grads) == 1 else grads)
        given = _list(found)
        if len(given) != len(ctx.arguments):
            raise DifferentiationError(
                f"custom_vjp function {ctx.rule.__name__}: backward gave {len(given)} gradients for "
                f"{len(ctx.arguments)} arguments; return one for each, None where there is none"
            )
        for i, (g, x) in enumerate(zip(given, ctx.arguments, strict=True)):
            _check_shape(ctx.rule, f"the gradient of argument {i}", g, _shape(x))
        return tuple(g for g, x in zip(given, ctx.arguments, strict=True) if type(x) is Tensor)


class custom_jvp(_Custom):
    """Decorator: ``f.defjvp(rule)`` gives the function ``f`` its own forward derivative.

    ``rule(primals, tangents)`` returns the results and their tangents, which are linear in ``tangents``; both
    arguments are tuples with one entry for each argument of ``f`` (the tangent of what is no floating tensor is None).
    Reverse mode is the transpose of the rule; higher derivatives differentiate it. Eager and captured.
    """

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.rule: Function | None = None

    def defjvp(self, rule: Function) -> Function:
        """Set the rule; usable as a decorator."""
        self.rule = rule
        return rule

    def __call__(self, *args: Any) -> Any:
        """The results of the function. Raises :class:`DifferentiationError` before :meth:`defjvp`."""
        if self.rule is None:
            raise self._missing_rule("defjvp")
        if self.depth >= _DEPTH:
            return self.function(*args)
        return _Forward.apply(self, *args)


class _Forward(PyLayer):
    @staticmethod
    def forward(ctx: Any, rule: custom_jvp, *args: Any) -> Any:
        """Run the function."""
        made = rule.function(*args)
        ctx.rule, ctx.arguments, ctx.shapes = rule, args, [_shape(y) for y in _list(made)]
        return _separate(made)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Transpose the rule: it is linear in its tangents, so its gradient by them is the product."""
        rule: custom_jvp = ctx.rule
        tangents = tuple(_zero_tangent(x) for x in ctx.arguments)
        moving = [t for t in tangents if t is not None]
        rule.depth += active_tracer() is not None
        try:
            with enable_grad():
                _, moved = rule.rule(ctx.arguments, tangents)  # type: ignore[misc]
        finally:
            rule.depth -= active_tracer() is not None
        ends = _list(moved)
        if len(ends) != len(ctx.shapes):
            raise DifferentiationError(
                f"custom_jvp function {rule.__name__}: the rule gave {len(ends)} tangents for {len(ctx.shapes)} results"
            )
        for i, (tangent, shape) in enumerate(zip(ends, ctx.shapes, strict=True)):
            if tangent is None:
                raise DifferentiationError(
                    f"custom_jvp function {rule.__name__}: the tangent of result {i} is None; return zeros_like of it"
                )
            _check_shape(rule, f"the tangent of result {i}", tangent, shape)
        found = iter(grad(ends, moving, list(grads), create_graph=True, allow_unused=True))
        made = [None if t is None else next(found) for t in tangents]
        return tuple(g for g, x in zip(made, ctx.arguments, strict=True) if type(x) is Tensor)


def _list(made: Any) -> list[Any]:
    return list(made) if isinstance(made, (tuple, list)) else [made]


def _shape(x: Any) -> list[Any] | None:
    return list(x.shape) if type(x) is Tensor else None


def _check_shape(rule: _Custom, what: str, made: Any, expected: list[Any] | None) -> None:
    """Raise where a derivative is no tensor, or has not the shape of what it is a derivative of, as far as sizes are
    known."""
    if expected is not None and made is not None and type(made) is not Tensor:
        raise DifferentiationError(
            f"{type(rule).__name__} function {rule.__name__}: {what} should be a Tensor, got {_describe(made)}"
        )
    found = _shape(made)
    if found is None or expected is None:
        return
    sizes = [(n, m) for n, m in zip(found, expected, strict=False) if isinstance(n, int) and isinstance(m, int)]
    if len(found) != len(expected) or any(n != m and n >= 0 and m >= 0 for n, m in sizes):
        raise DifferentiationError(
            f"{type(rule).__name__} function {rule.__name__}: {what} has the shape {found}, expected {expected}"
        )


def _describe(x: Any) -> str:
    if isinstance(x, tuple):
        return f"a tuple of {len(x)}"
    return f"a Tensor {list(x.shape)}" if type(x) is Tensor else f"{type(x).__name__} {x!r:.60}"


def _zero_tangent(x: Any) -> Tensor | None:
    if type(x) is not Tensor or x.dtype.kind not in "fc":
        return None
    zero: Tensor = get_operator("zeros_like")(x)
    if zero.payload.is_traced:
        zero.payload.active = True
    zero.stop_gradient = False
    return zero


def _separate(made: Any) -> Any:
    """The results as tensors of their own, so that marking them does not mark the residuals."""
    if isinstance(made, (tuple, list)):
        return type(made)(_separate(y) for y in made)
    return Tensor._wrap(made.payload) if type(made) is Tensor else made
