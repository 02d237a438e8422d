"""Derivatives of the elementwise primitives.

Most unary ones are a table of f'(x), written with the result ``y`` where that is cheaper; both kinds of rule
follow from it. Ties of maximum and minimum share the gradient equally, as in Paddle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from argosy_autograd.algebra import (
    INEXACT,
    Value,
    conj,
    constant_number,
    is_complex,
    negate,
    plus,
    round_to,
    scale_by,
    times,
    where,
    widen,
    zeros_like,
)
from argosy_autograd.polygamma import trigamma
from argosy_autograd.registry import jvp, vjp
from argosy_phi_ops import prim

Pair = tuple[Value | None, Value | None]
_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

# Unary functions: y = f(x)

#: By dtype: beyond which power of two squares leave the range, and by which one a number there is scaled into it.
_RANGE = {"float32": (2.0**60, 2.0**100), "float64": (2.0**500, 2.0**700)}


def _scale(size: Value) -> Value:
    """A power of two, constant to differentiation, that brings ``size`` to where its square is a normal number."""
    limit, step = _RANGE[size.dtype]
    small = where(prim.lt(size, 1 / limit), step, prim.constant(1.0, size.dtype, size.shape))
    return prim.stop_gradient(where(prim.gt(size, limit), 1 / step, small))


def _inverse_length(x: Value) -> Value:
    """``1 / sqrt(x^2 + 1)``."""
    if is_complex(x):
        return prim.rsqrt(x * x + 1)
    scale = _scale(prim.maximum(prim.stop_gradient(prim.abs(x)), 1))
    x = x * scale
    return prim.rsqrt(x * x + scale * scale) * scale


FACTORS: dict[str, Callable[[Value, Value], Value]] = {
    "exp": lambda y, x: y,
    "expm1": lambda y, x: y + 1,
    "rsqrt": lambda y, x: y * y * (y * -0.5),
    "sin": lambda y, x: prim.cos(x),
    "cos": lambda y, x: -prim.sin(x),
    "tan": lambda y, x: y * y + 1,
    "asin": lambda y, x: prim.rsqrt((1 - x) * (1 + x)),
    "acos": lambda y, x: -prim.rsqrt((1 - x) * (1 + x)),
    "sinh": lambda y, x: prim.cosh(x),
    "cosh": lambda y, x: prim.sinh(x),
    "asinh": lambda y, x: _inverse_length(x),
    "acosh": lambda y, x: prim.rsqrt(x - 1) * prim.rsqrt(x + 1),
    "tanh": lambda y, x: 1 - y * y,
    "logistic": lambda y, x: y * (1 - y),
    "erf": lambda y, x: prim.exp(-(x * x)) * _TWO_OVER_ROOT_PI,
    "erfc": lambda y, x: prim.exp(-(x * x)) * -_TWO_OVER_ROOT_PI,
    "erfinv": lambda y, x: prim.exp(y * y) * (1 / _TWO_OVER_ROOT_PI),
    "lgamma": lambda y, x: prim.digamma(x),
    "digamma": lambda y, x: trigamma(x),
}
"""f'(x), by which the (co)tangent is multiplied."""

DIVISORS: dict[str, Callable[[Value, Value], Value]] = {
    "log": lambda y, x: x,
    "log1p": lambda y, x: x + 1,
    "sqrt": lambda y, x: y * 2,
    "atan": lambda y, x: x * x + 1,
    "atanh": lambda y, x: (1 - x) * (1 + x),
}
"""1 / f'(x), by which the (co)tangent is divided."""


def _enter_factor(name: str, factor: Callable[[Value, Value], Value]) -> None:
    vjp.add(name, lambda g, y, x: round_to(times(widen(g), conj(factor(widen(y), widen(x)))), g.dtype))
    jvp.add(name, lambda y, x, dx: round_to(widen(dx) * factor(widen(y), widen(x)), dx.dtype))


def _enter_divisor(name: str, divisor: Callable[[Value, Value], Value]) -> None:
    vjp.add(name, lambda g, y, x: round_to(widen(g) / conj(divisor(widen(y), widen(x))), g.dtype))
    jvp.add(name, lambda y, x, dx: round_to(widen(dx) / divisor(widen(y), widen(x)), dx.dtype))


for _name, _derivative in FACTORS.items():
    _enter_factor(_name, _derivative)
for _name, _derivative in DIVISORS.items():
    _enter_divisor(_name, _derivative)

vjp.add("neg", lambda g, y, x: -g)
jvp.add("neg", lambda y, x, dx: -dx)
vjp.add("copy", lambda g, y, x: g)
jvp.add("copy", lambda y, x, dx: dx)


@vjp("abs")
def _(g: Value, y: Value, x: Value) -> Value:
    direction = prim.sign(x)
    if is_complex(x):
        return prim.complex(g * prim.real(direction), g * prim.imag(direction))
    return g * direction


@jvp("abs")
def _(y: Value, x: Value, dx: Value) -> Value:
    direction = prim.sign(x)
    return prim.real(dx * prim.conj(direction)) if is_complex(x) else dx * direction


@vjp("sign")
def _(g: Value, y: Value, x: Value) -> Value | None:
    return _tangential(g, y, x) if is_complex(x) else None


@jvp("sign")
def _(y: Value, x: Value, dx: Value) -> Value | None:
    return _tangential(dx, y, x) if is_complex(x) else None


def _tangential(v: Value, y: Value, x: Value) -> Value:
    """The part of ``v`` at a right angle to y = x / |x|, over |x|: the derivative of the direction, which is
    self-adjoint."""
    radial = prim.real(v * prim.conj(y))
    length = prim.abs(x)
    part = (v - y * _as_complex(radial)) / _as_complex(where(prim.eq(length, 0), 1, length))
    return where(prim.eq(x, 0), 0, part)


def _as_complex(x: Value) -> Value:
    return prim.complex(x, zeros_like(x))


# Parts of complex numbers and conversions


@vjp("real")
def _(g: Value, y: Value, x: Value) -> Value:
    return _as_complex(g)


@vjp("imag")
def _(g: Value, y: Value, x: Value) -> Value:
    return prim.complex(zeros_like(g), g)


@vjp("complex")
def _(g: Value, y: Value, re: Value, im: Value) -> Pair:
    return prim.real(g), prim.imag(g)


@jvp("complex")
def _(y: Value, re: Value, im: Value, dre: Value | None, dim: Value | None) -> Value:
    return prim.complex(zeros_like(re) if dre is None else dre, zeros_like(im) if dim is None else dim)


vjp.add("conj", lambda g, y, x: prim.conj(g))
jvp.add("real", lambda y, x, dx: prim.real(dx))
jvp.add("imag", lambda y, x, dx: prim.imag(dx))
jvp.add("conj", lambda y, x, dx: prim.conj(dx))


@vjp("cast")
def _(g: Value, y: Value, x: Value, *, dtype: str) -> Value | None:
    if dtype not in INEXACT or x.dtype not in INEXACT:
        return None
    if is_complex(g) and not is_complex(x):
        g = prim.real(g)
    return g if g.dtype == x.dtype else prim.cast(g, dtype=x.dtype)


@jvp("cast")
def _(y: Value, x: Value, dx: Value, *, dtype: str) -> Value | None:
    return prim.cast(dx, dtype=dtype) if dtype in INEXACT else None


# Arithmetic

vjp.add("add", lambda g, r, x, y: (g, g))
vjp.add("sub", lambda g, r, x, y: (g, -g))
vjp.add("mul", lambda g, r, x, y: (times(g, conj(y)), times(g, conj(x))))
jvp.add("add", lambda r, x, y, dx, dy: plus(dx, dy))
jvp.add("sub", lambda r, x, y, dx, dy: negate(dy) if dx is None else dx if dy is None else dx - dy)
jvp.add("mul", lambda r, x, y, dx, dy: plus(scale_by(dx, y), scale_by(dy, x)))


@vjp("div")
def _(g: Value, r: Value, x: Value, y: Value) -> Pair:
    over = widen(g) / conj(widen(y))
    return round_to(over, g.dtype), round_to(-(over * conj(widen(r))), g.dtype)


@jvp("div")
def _(r: Value, x: Value, y: Value, dx: Value | None, dy: Value | None) -> Value:
    numerator = plus(_widen(dx), negate(scale_by(_widen(dy), widen(r))))
    assert numerator is not None
    return round_to(numerator / widen(y), r.dtype)


def _widen(x: Value | None) -> Value | None:
    return None if x is None else widen(x)


@vjp("rem")
def _(g: Value, r: Value, x: Value, y: Value) -> Pair:
    return g, -(g * prim.trunc(x / y))


@jvp("rem")
def _(r: Value, x: Value, y: Value, dx: Value | None, dy: Value | None) -> Value | None:
    return plus(dx, None if dy is None else -(dy * prim.trunc(x / y)))


@vjp("floor_mod")
def _(g: Value, r: Value, x: Value, y: Value) -> Pair:
    return g, -(g * prim.floor_div(x, y))


@jvp("floor_mod")
def _(r: Value, x: Value, y: Value, dx: Value | None, dy: Value | None) -> Value | None:
    return plus(dx, None if dy is None else -(dy * prim.floor_div(x, y)))


@vjp("pow")
def _(g: Value, r: Value, x: Value, y: Value) -> Pair:
    v, r, x, y = widen(g), widen(r), widen(x), widen(y)
    slopes = _power_by_base(x, y), _power_by_exponent(r, x, y)
    return round_to(times(v, conj(slopes[0])), g.dtype), round_to(times(v, conj(slopes[1])), g.dtype)


@jvp("pow")
def _(r: Value, x: Value, y: Value, dx: Value | None, dy: Value | None) -> Value | None:
    dtype, r, x, y = r.dtype, widen(r), widen(x), widen(y)
    by_base = None if dx is None else widen(dx) * _power_by_base(x, y)
    moved = plus(by_base, None if dy is None else widen(dy) * _power_by_exponent(r, x, y))
    return None if moved is None else round_to(moved, dtype)


def _power_by_base(x: Value, y: Value) -> Value:
    """d(x ** y)/dx = y x ** (y - 1), and zero for y = 0 whatever x is, 0 included, as are its derivatives by x."""
    exponent = constant_number(y)
    if exponent is None:
        nothing = prim.logical_and(prim.eq(x, 0), prim.eq(y, 0))
        return y * prim.pow(where(nothing, 1, x), y - 1)
    if exponent == 0:
        return zeros_like(x)
    if exponent == 1:
        return prim.constant(1, x.dtype, x.shape)
    return x * 2 if exponent == 2 else prim.pow(x, exponent - 1) * exponent


def _power_by_exponent(r: Value, x: Value, y: Value) -> Value:
    """d(x ** y)/dy = x ** y log(x), and zero for x = 0 (its limit for positive y)."""
    nothing = prim.eq(x, 0)
    return where(nothing, 0, r * prim.log(where(nothing, 1, x)))


@vjp("atan2")
def _(g: Value, r: Value, y: Value, x: Value) -> Pair:
    v, by_y, by_x = widen(g), *_slopes_of_angle(widen(y), widen(x))
    return round_to(v * by_y, g.dtype), round_to(v * by_x, g.dtype)


@jvp("atan2")
def _(r: Value, y: Value, x: Value, dy: Value | None, dx: Value | None) -> Value:
    by_y, by_x = _slopes_of_angle(widen(y), widen(x))
    moved = plus(scale_by(_widen(dy), by_y), scale_by(_widen(dx), by_x))
    assert moved is not None
    return round_to(moved, r.dtype)


def _slopes_of_angle(y: Value, x: Value) -> tuple[Value, Value]:
    """``x / (x^2 + y^2)`` and ``-y / (x^2 + y^2)``, of points however near or far."""
    scale = _scale(prim.stop_gradient(prim.maximum(prim.abs(x), prim.abs(y))))
    x, y = x * scale, y * scale
    over = 1 / (x * x + y * y)
    return x * over * scale, -(y * over * scale)


# Choices


def _enter_extremum(name: str, wins: Any) -> None:
    def shares(v: Value, x: Value, y: Value) -> tuple[Value, Value]:
        half = where(prim.eq(x, y), v * 0.5, 0)
        return where(wins(x, y), v, half), where(wins(y, x), v, half)

    def forward(r: Value, x: Value, y: Value, dx: Value | None, dy: Value | None) -> Value | None:
        first = None if dx is None else shares(dx, x, y)[0]
        return plus(first, None if dy is None else shares(dy, x, y)[1])

    vjp.add(name, lambda g, r, x, y: shares(g, x, y))
    jvp.add(name, forward)


_enter_extremum("maximum", prim.gt)
_enter_extremum("minimum", prim.lt)


@vjp("select")
def _(g: Value, r: Value, condition: Value, x: Value, y: Value) -> tuple[None, Value, Value]:
    return None, where(condition, g, 0), where(condition, 0, g)


@jvp("select")
def _(r: Value, condition: Value, x: Value, y: Value, _: None, dx: Value | None, dy: Value | None) -> Value:
    return where(condition, 0.0 if dx is None else dx, 0.0 if dy is None else dy)
