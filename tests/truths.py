"""Elementwise functions and their derivatives by mpmath, and within how many units in the last place ours are.

A slope also has an absolute bound, in units of the precision: that of a bounded function is often made of its value
(``1 - y^2``), and then vanishes in steps of the precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp

import argosy as paddle

F = paddle.nn.functional


class Truth(NamedTuple):
    """Ours, the function and its derivative between ``first`` and ``last``, and bounds.

    ``steps`` are by how many denormal steps a result may be off where a denormal number is multiplied.
    """

    ours: Callable[[Any], Any]
    value: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    value_ulp: float = 6
    slope_ulp: float = 12
    slope_absolute: float = 0
    first: float = -mp.inf
    last: float = mp.inf
    steps: float = 1


def _logistic(x):
    return 1 / (1 + mp.exp(-x)) if x >= 0 else mp.exp(x) / (1 + mp.exp(x))


def _softplus(x):
    return mp.log1p(mp.exp(-abs(x))) + max(x, mp.mpf(0))


def _normal(x):
    return mp.erfc(-max(x, mp.mpf(-1e3)) / mp.sqrt(2)) / 2


def _gelu_slope(x):
    return _normal(x) + x * mp.exp(-min(x * x / 2, mp.mpf(1e6))) / mp.sqrt(2 * mp.pi)


def _by_tanh(x):
    return mp.sqrt(8 / mp.pi) * (x + mp.mpf(0.044715) * x**3)


def _gelu_slope_by_tanh(x):
    s, rise = _logistic(_by_tanh(x)), mp.sqrt(8 / mp.pi) * (1 + 3 * mp.mpf(0.044715) * x * x)
    return s + x * s * _logistic(-_by_tanh(x)) * rise


def _mish_slope(x):
    y = _softplus(x)
    return mp.tanh(y) + x * mp.sech(y) ** 2 * _logistic(x)


def _lgamma(x):
    if x < 0:
        return mp.log(mp.pi / abs(x * mp.sinpi(x))) - mp.loggamma(-x)
    return mp.loggamma(x)


def psi(n, x):
    """The polygamma function, by reflection and by its asymptotic series where mpmath would take long."""
    if x < 0:
        other = mp.pi / mp.sinpi(x)
        return psi(0, 1 - x) - other * mp.cospi(x) if n == 0 else other**2 - psi(1, 1 - x)
    if x > 1e6:
        return mp.log(x) - 1 / (2 * x) - 1 / (12 * x * x) if n == 0 else 1 / x + 1 / (2 * x * x) + 1 / (6 * x**3)
    return psi(n, x + 1) - (-1) ** n / x ** (n + 1) if x < 1e-3 else mp.psi(n, x)


def bessel(n, x, scaled):
    """I_n, times exp(-|x|) if scaled; far away by the first terms of the asymptotic series."""
    size, odd = abs(x), -1 if n and x < 0 else 1
    if size > 1e4:
        terms = 1 - (4 * n * n - 1) / (8 * size) + (4 * n * n - 1) * (4 * n * n - 9) / (128 * size**2)
        return odd * (terms / mp.sqrt(2 * mp.pi * size) if scaled else mp.inf)
    return mp.besseli(n, x) * (mp.exp(-size) if scaled else 1)


def _scaled_bessel_slope(x):
    if abs(x) > 1e4:
        return -bessel(0, x, True) / (2 * x)
    return bessel(1, x, True) - mp.sign(x) * bessel(0, x, True)


def _sinc_slope(x):
    return -(mp.pi**2) * x / 3 if abs(x) < 1e-12 else (mp.cospi(x) - mp.sincpi(x)) / x


_SCALE, _ALPHA = mp.mpf(1.0507009873554805), mp.mpf(1.6732632423543772)

TRUTHS: dict[str, Truth] = {
    "exp": Truth(paddle.exp, mp.exp, mp.exp),
    "expm1": Truth(paddle.expm1, mp.expm1, mp.exp, slope_absolute=1),
    "log": Truth(paddle.log, mp.log, lambda x: 1 / x, first=0),
    "log2": Truth(paddle.log2, lambda x: mp.log(x, 2), lambda x: 1 / x / mp.log(2), first=0),
    "log10": Truth(paddle.log10, lambda x: mp.log(x, 10), lambda x: 1 / x / mp.log(10), first=0),
    "log1p": Truth(paddle.log1p, mp.log1p, lambda x: 1 / (1 + x), first=-1),
    "sqrt": Truth(paddle.sqrt, mp.sqrt, lambda x: 1 / (2 * mp.sqrt(x)), first=0),
    "rsqrt": Truth(paddle.rsqrt, lambda x: 1 / mp.sqrt(x), lambda x: -1 / (2 * x * mp.sqrt(x)), first=0),
    "sin": Truth(paddle.sin, mp.sin, mp.cos),
    "cos": Truth(paddle.cos, mp.cos, lambda x: -mp.sin(x)),
    "tan": Truth(paddle.tan, mp.tan, lambda x: mp.sec(x) ** 2),
    "asin": Truth(paddle.asin, mp.asin, lambda x: 1 / mp.sqrt(1 - x * x), first=-1, last=1),
    "acos": Truth(paddle.acos, mp.acos, lambda x: -1 / mp.sqrt(1 - x * x), first=-1, last=1),
    "atan": Truth(paddle.atan, mp.atan, lambda x: 1 / (1 + x * x), slope_absolute=1e-20),
    "sinh": Truth(paddle.sinh, mp.sinh, mp.cosh),
    "cosh": Truth(paddle.cosh, mp.cosh, mp.sinh),
    "tanh": Truth(paddle.tanh, mp.tanh, lambda x: mp.sech(x) ** 2, slope_absolute=6),
    "asinh": Truth(paddle.asinh, mp.asinh, lambda x: 1 / mp.sqrt(1 + x * x)),
    "acosh": Truth(paddle.acosh, mp.acosh, lambda x: 1 / mp.sqrt(x * x - 1), first=1),
    "atanh": Truth(paddle.atanh, mp.atanh, lambda x: 1 / (1 - x * x), first=-1, last=1),
    "sigmoid": Truth(F.sigmoid, _logistic, lambda x: _logistic(x) * _logistic(-x), slope_absolute=2),
    "erf": Truth(paddle.erf, mp.erf, lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x), slope_ulp=800),
    "erfinv": Truth(paddle.erfinv, mp.erfinv, lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(mp.erfinv(x) ** 2),
                    slope_ulp=40, first=-1, last=1),
    "lgamma": Truth(paddle.lgamma, _lgamma, lambda x: psi(0, x), 80, 400),
    "digamma": Truth(paddle.digamma, lambda x: psi(0, x), lambda x: psi(1, x), 400),
    "logit": Truth(paddle.logit, lambda x: mp.log(x / (1 - x)), lambda x: 1 / (x * (1 - x)), first=0, last=1),
    "sinc": Truth(paddle.sinc, mp.sincpi, _sinc_slope, slope_ulp=800, slope_absolute=4),
    "stanh": Truth(paddle.stanh, lambda x: mp.mpf(1.7159) * mp.tanh(mp.mpf(0.67) * x),
                   lambda x: mp.mpf(1.7159) * mp.mpf(0.67) * mp.sech(mp.mpf(0.67) * x) ** 2, slope_absolute=12),
    "gelu": Truth(F.gelu, lambda x: x * _normal(x), _gelu_slope, 1500, 1500, 2),
    "gelu by tanh": Truth(lambda x: F.gelu(x, True), lambda x: x * _logistic(_by_tanh(x)), _gelu_slope_by_tanh,
                          1500, 1500, 2),
    "silu": Truth(F.silu, lambda x: x * _logistic(x), lambda x: _logistic(x) * (1 + x * _logistic(-x)), 12, 400, 4,
                  steps=1024),
    "elu": Truth(F.elu, lambda x: x if x > 0 else mp.expm1(x), lambda x: mp.exp(min(x, 0)), slope_absolute=1),
    "selu": Truth(F.selu, lambda x: _SCALE * (x if x > 0 else _ALPHA * mp.expm1(x)),
                  lambda x: _SCALE * (1 if x > 0 else _ALPHA * mp.exp(x)), slope_absolute=3),
    "celu": Truth(lambda x: F.celu(x, 1.5), lambda x: x if x > 0 else 1.5 * mp.expm1(x / 1.5),
                  lambda x: mp.exp(min(x, 0) / 1.5), slope_absolute=2),
    "softsign": Truth(F.softsign, lambda x: x / (1 + abs(x)), lambda x: 1 / (1 + abs(x)) ** 2, slope_absolute=2),
    "mish": Truth(F.mish, lambda x: x * mp.tanh(_softplus(x)), _mish_slope, 12, 400, 8, steps=1024),
    "log_sigmoid": Truth(F.log_sigmoid, lambda x: -_softplus(-x), lambda x: _logistic(-x)),
    "i0": Truth(paddle.i0, lambda x: bessel(0, x, False), lambda x: bessel(1, x, False), 12),
    "i1": Truth(paddle.i1, lambda x: bessel(1, x, False),
                lambda x: mp.inf if abs(x) > 1e4 else (bessel(0, x, False) + bessel(2, x, False)) / 2, 12),
    "i0e": Truth(paddle.i0e, lambda x: bessel(0, x, True), _scaled_bessel_slope, 12, 800),
    "hypot": Truth(lambda x: paddle.hypot(x, x), lambda x: abs(x) * mp.sqrt(2), lambda x: mp.sign(x) * mp.sqrt(2)),
    "atan2": Truth(lambda x: paddle.atan2(x, x.detach()), lambda x: mp.atan2(x, x), lambda x: 1 / (2 * x)),
}  # fmt: skip
