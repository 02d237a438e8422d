"""Elementwise functions of complex numbers at infinities and NaN, as Annex G of the C standard says and with it the
array API; elsewhere by the operators, or from the same real functions.

``a + bi`` in all of them; signs of zeros are those of C.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from argosy.array_api.promotion import apply
from argosy_tensorcore.tensor import Tensor

__all__ = ["FUNCTIONS"]

Parts = tuple[Tensor, Tensor]


def _select(condition: Tensor, x: Any, y: Any) -> Tensor:
    return apply("where", condition, x, y)  # type: ignore[no-any-return]


def _both(x: Tensor, y: Tensor) -> Tensor:
    return apply("logical_and", x, y)  # type: ignore[no-any-return]


def _is_not_finite(x: Tensor) -> Tensor:
    """Whether each element is infinite or NaN."""
    return apply("logical_not", apply("isfinite", x))  # type: ignore[no-any-return]


def _is_infinite(a: Tensor, b: Tensor) -> Tensor:
    return apply("logical_or", apply("isinf", a), apply("isinf", b))  # type: ignore[no-any-return]


def _copy_sign(value: float, like: Tensor) -> Tensor:
    """``value`` with the sign of each element."""
    return apply("copysign", apply("full_like", like, value), like)  # type: ignore[no-any-return]


def _exp(a: Tensor, b: Tensor, x: Tensor) -> Parts:
    below, above = _both(_is_not_finite(b), a == -math.inf), _both(_is_not_finite(b), a == math.inf)
    size = apply("exp", a)
    real = _select(below, 0.0, _select(above, math.inf, size * apply("cos", b)))
    return real, _select(b == 0, b, _select(below, 0.0, size * apply("sin", b)))


def _expm1(a: Tensor, b: Tensor, x: Tensor) -> Parts:
    below, above = _both(_is_not_finite(b), a == -math.inf), _both(_is_not_finite(b), a == math.inf)
    near = apply("expm1", a) * apply("cos", b) - 2 * apply("square", apply("sin", b / 2))
    real = _select(below, -1.0, _select(above, math.inf, near))
    return real, _select(b == 0, b, _select(below, 0.0, apply("exp", a) * apply("sin", b)))


def _sinh(a: Tensor, b: Tensor, x: Tensor) -> Parts:
    far = _both(apply("isinf", a), _is_not_finite(b))
    real = _select(apply("logical_or", a == 0, far), a, apply("sinh", a) * apply("cos", b))
    return real, _select(b == 0, b, apply("cosh", a) * apply("sin", b))


def _cosh(a: Tensor, b: Tensor, x: Tensor) -> Parts:
    far = _both(apply("isinf", a), _is_not_finite(b))
    real = _select(far, math.inf, apply("cosh", a) * apply("cos", b))
    imaginary = _select(a == 0, _select(_is_not_finite(b), 0.0, a * b), apply("sinh", a) * apply("sin", b))
    return real, _select(b == 0, _select(apply("isnan", a), b, _copy_sign(1.0, a) * b), imaginary)


def _tanh(a: Tensor, b: Tensor, x: Tensor) -> Parts:
    found = apply("tanh", x)
    far = apply("isinf", a)
    turned = _select(_is_not_finite(b), 0.0, _copy_sign(0.0, b))
    inner = _select(_is_not_finite(b), _select(a == 0, a, math.nan), _limit_real_part(apply("real", found), a))
    outer = _select(_is_not_finite(b), math.nan, apply("imag", found))
    return _select(far, _copy_sign(1.0, a), inner), _select(far, turned, _select(b == 0, b, outer))


def _limit_real_part(real: Tensor, a: Tensor) -> Tensor:
    """The real part of a hyperbolic tangent; far out the quotient of two overflows, where it is 1."""
    return _select(apply("abs", a) > 20.0, _copy_sign(1.0, a), real)


def _acos(a: Tensor, b: Tensor, x: Tensor) -> Parts:
    found = apply("acos", x)
    far = _is_infinite(a, b)
    angle = apply("atan2", apply("abs", b), a)
    undefined = _both(a == 0, apply("isnan", b))
    real = _select(far, angle, _select(undefined, math.pi / 2, apply("real", found)))
    return real, _select(far, -_copy_sign(math.inf, b), apply("imag", found))


def _acosh(a: Tensor, b: Tensor, x: Tensor) -> Parts:
    found = apply("acosh", x)
    far = _is_infinite(a, b)
    undefined = _both(a == 0, apply("isnan", b))
    real = _select(far, math.inf, apply("real", found))
    return real, _select(far, apply("atan2", b, a), _select(undefined, math.pi / 2, apply("imag", found)))


def _asinh(a: Tensor, b: Tensor, x: Tensor) -> Parts:
    found = apply("asinh", x)
    far = _is_infinite(a, b)
    real = _select(far, _copy_sign(math.inf, a), apply("real", found))
    angle = apply("atan2", b, apply("abs", a))
    return real, _select(far, angle, _select(_both(apply("isnan", a), b == 0), b, apply("imag", found)))


def _atanh(a: Tensor, b: Tensor, x: Tensor) -> Parts:
    found = apply("atanh", x)
    far = _is_infinite(a, b)
    zero = apply("logical_or", far, _both(a == 0, apply("isnan", b)))
    real = _select(zero, _copy_sign(0.0, a), apply("real", found))
    return real, _select(far, _select(apply("isnan", b), b, _copy_sign(math.pi / 2, b)), apply("imag", found))


def _sign(a: Tensor, b: Tensor, x: Tensor) -> Parts:
    found, zero = apply("sign", x), _both(a == 0, b == 0)
    return _select(zero, 0.0, apply("real", found)), _select(zero, 0.0, apply("imag", found))


def _function(parts: Callable[[Tensor, Tensor, Tensor], Parts]) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        return apply("complex", *parts(apply("real", x), apply("imag", x), x))  # type: ignore[no-any-return]

    return function


FUNCTIONS = {
    "acos": _function(_acos),
    "acosh": _function(_acosh),
    "asinh": _function(_asinh),
    "atanh": _function(_atanh),
    "cosh": _function(_cosh),
    "exp": _function(_exp),
    "expm1": _function(_expm1),
    "sign": _function(_sign),
    "sinh": _function(_sinh),
    "tanh": _function(_tanh),
}
"""By the operator's name."""
