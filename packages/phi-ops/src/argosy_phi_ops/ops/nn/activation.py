"""Activation functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import pi, sqrt
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import OperatorError, ShapeError
from argosy_phi_ops.ops.common.arguments import (
    INPUT,
    axis_of,
    broadcast_along,
    clamp,
    complex_too,
    positive_part,
    real_samples,
    require_multiple,
    restore,
    softplus_parts,
)
from argosy_phi_ops.reference.kernels import KERNELS
from argosy_phi_ops.reference.kernels.registry import Array, ieee, round_narrow, widen
from argosy_tensorcore.tensor import Tensor


@operator(axes="... -> ...", inplace=True, samples=real_samples)
def relu(x: Tensor) -> Tensor:
    """``max(x, 0)``."""
    return positive_part(x)


relu.reference(lambda x: KERNELS["maximum"](x, x.dtype.type(0)))


@relu.specialize
def _(types: Sequence[Any], attributes: dict[str, Any]) -> Any:
    if types[0].dtype.name not in ("float32", "float64"):
        return None
    zero = np.zeros((), types[0].dtype.numpy)
    return lambda x: np.maximum(x, zero)


@operator(axes="... -> ...", inplace=True)
def relu6(x: Tensor) -> Tensor:
    """``min(max(x, 0), 6)``."""
    return clamp(x, 0, 6)


@relu6.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)) * 8)


_FLAT = 1600.0
"""The square from which on the logistic function in gelu by tanh is 0 or 1: a larger one would make the derivative,
which vanishes, the product of zero and infinity."""


@operator(axes="... -> ...", promote="float", upcast=True)
def gelu(x: Tensor, approximate: bool | str = False) -> Tensor:
    """``x`` times the normal distribution function of `x` (Hendrycks and Gimpel, 2016); by tanh if `approximate`
    is True or "tanh", not if it is False or "none"."""
    if approximate not in (True, False, "tanh", "none"):
        raise OperatorError(f'gelu: approximate should be True, False, "tanh" or "none", got {approximate!r}')
    return _gelu(x, approximate in (True, "tanh"))


def _gelu(x: Tensor, by_tanh: bool) -> Tensor:
    if by_tanh:
        slope = 2 * sqrt(2 / pi)
        square = prim.mul(x, x)
        square = prim.select(prim.lt(square, _FLAT), square, _FLAT)
        twice_inner = prim.mul(prim.add(prim.mul(square, slope * 0.044715), slope), x)
        return prim.mul(x, prim.logistic(twice_inner))  # (1 + tanh u) / 2, which cancels nothing
    return prim.mul(prim.mul(x, 0.5), prim.erfc(prim.mul(x, -sqrt(0.5))))


@gelu.specialize
def _(types: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """By tanh, in place in one array."""
    if types[0].dtype.name not in ("float32", "float64") or not types[0].ndim or attributes["approximate"] is not True:
        return None
    return _gelu_by_tanh


@ieee
def _gelu_by_tanh(x: Array) -> Array:
    inner = x * x
    np.minimum(inner, _FLAT, out=inner)
    inner *= -2 * sqrt(2 / pi) * 0.044715
    inner += -2 * sqrt(2 / pi)
    inner *= x
    np.exp(inner, out=inner)
    inner += 1
    np.divide(x, inner, out=inner)
    return inner


@gelu.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield from real_samples(rng)
    yield Sample(rng.standard_normal((2, 3)), approximate=True)


@operator(axes="... -> ...", promote="float", aliases=INPUT, upcast=True, samples=real_samples)
def silu(x: Tensor, inplace: bool = False) -> Tensor:
    """Sigmoid-weighted linear unit ``x * logistic(x)`` (Elfwing et al., 2018)."""
    return prim.mul(x, prim.logistic(x))


@operator(axes="... -> ...", promote="float", upcast=True, samples=real_samples)
def swish(x: Tensor) -> Tensor:
    """``x * logistic(x)``, as :func:`silu`."""
    return prim.mul(x, prim.logistic(x))


@operator(upcast=True)
def swiglu(x: Tensor, y: Tensor | None = None) -> Tensor:
    """``silu(x) * y``; without `y` the two halves of the last axis of `x` are taken (Shazeer, 2020)."""
    if y is None:
        x, y = _halves("swiglu", x, x.ndim - 1)
    return prim.mul(prim.mul(x, prim.logistic(x)), y)


@swiglu.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 4)))
    yield Sample(rng.standard_normal((2, 4)), rng.standard_normal((2, 4)))


@operator(aliases={"input": "x", "dim": "axis"}, upcast=True)
def glu(x: Tensor, axis: int = -1) -> Tensor:
    """The first half along `axis` gated by the logistic function of the second (Dauphin et al., 2016)."""
    value, gate = _halves("glu", x, axis_of("glu", axis, x.ndim))
    return prim.mul(value, prim.logistic(gate))


def _halves(name: str, x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    size = x.shape[axis]
    if isinstance(size, int) and size % 2:
        raise ShapeError(f"{name}: axis {axis} of {x.type} has no two halves")
    require_multiple(name, size, 2)
    start, limit = [0] * x.ndim, list(x.shape)
    limit[axis] = size // 2
    first = prim.slice(x, start=tuple(start), limit=tuple(limit), stride=(1,) * x.ndim)
    start[axis], limit[axis] = size // 2, (size // 2) * 2
    return first, prim.slice(x, start=tuple(start), limit=tuple(limit), stride=(1,) * x.ndim)


@glu.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 4)))
    yield Sample(rng.standard_normal((4, 3)), axis=0)


@operator(axes="... -> ...", inplace=True, samples=real_samples)
def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`x` where it is not negative, else ``negative_slope * x``."""
    return prim.select(prim.ge(x, 0.0), x, prim.mul(x, negative_slope))


@operator()
def prelu(x: Tensor, weight: Tensor, data_format: str = "NCHW") -> Tensor:
    """`x` where it is positive, else `weight` times it; `weight` holds one slope, or one for each channel."""
    slope = weight
    if weight.shape != (1,) and weight.ndim == 1:
        slope = broadcast_along(weight, x.shape, x.ndim - 1 if data_format[-1] == "C" else 1)
    return prim.select(prim.gt(x, 0.0), x, prim.mul(x, slope))


@prelu.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 4)), np.array([0.2]))
    yield Sample(rng.standard_normal((2, 3, 4)), np.array([0.1, 0.2, 0.3]))


@operator(axes="... -> ...", inplace=True, upcast=True, samples=real_samples)
def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """`x` where it is positive, else ``alpha * (exp(x) - 1)`` (Clevert et al., 2015)."""
    positive = prim.gt(x, 0.0)
    return prim.select(positive, x, prim.mul(prim.expm1(prim.select(positive, 0.0, x)), alpha))


@operator(axes="... -> ...", upcast=True, samples=real_samples)
def selu(x: Tensor, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772) -> Tensor:
    """``scale * elu(x, alpha)`` (Klambauer et al., 2017)."""
    return prim.mul(elu(x, alpha), scale)


@operator(axes="... -> ...", upcast=True, samples=real_samples)
def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """``max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)`` (Barron, 2017)."""
    negative = prim.mul(prim.expm1(prim.div(prim.minimum(x, 0.0), alpha)), alpha)
    return prim.add(prim.maximum(x, 0.0), negative)


@operator(axes="... -> ...", inplace=True, samples=real_samples)
def hardtanh(x: Tensor, min: float = -1.0, max: float = 1.0) -> Tensor:
    """`x` moved into [min, max]; `max` where the bounds are exchanged."""
    return clamp(x, min if min <= max else max, max)


@operator(axes="... -> ...", upcast=True, samples=real_samples)
def hardsigmoid(x: Tensor, slope: float = 0.1666667, offset: float = 0.5) -> Tensor:
    """``slope * x + offset`` moved into [0, 1]."""
    return clamp(prim.add(prim.mul(x, slope), offset), 0.0, 1.0)


@operator(axes="... -> ...", upcast=True, samples=real_samples)
def hardswish(x: Tensor) -> Tensor:
    """``x * min(max(x + 3, 0), 6) / 6`` (Howard et al., 2019)."""
    inside = prim.div(prim.mul(x, prim.add(x, 3.0)), 6.0)
    return prim.select(prim.le(x, -3.0), 0.0, prim.select(prim.ge(x, 3.0), x, inside))


@operator(axes="... -> ...", promote="float", upcast=True)
def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, and `x` itself where ``beta * x`` is above `threshold`."""
    scaled = prim.mul(x, float(beta))
    smooth = prim.div(_softplus(scaled), float(beta))
    return prim.select(prim.gt(scaled, float(threshold)), x, smooth)


def _softplus(x: Tensor) -> Tensor:
    """``log(1 + exp(x))`` without overflow."""
    return prim.add(*softplus_parts(x))


@softplus.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield from real_samples(rng)
    yield Sample(rng.standard_normal((2, 3)) * 20, beta=2)


@operator(axes="... -> ...", promote="float", upcast=True, samples=complex_too)
def softsign(x: Tensor) -> Tensor:
    """``x / (1 + |x|)``."""
    size = prim.abs(x)
    return prim.div(x, prim.add(size if size.dtype == x.dtype else prim.cast(size, dtype=x.dtype), 1.0))


@operator(axes="... -> ...", promote="float", upcast=True, samples=real_samples)
def mish(x: Tensor) -> Tensor:
    """``x * tanh(softplus(x))`` (Misra, 2019)."""
    return prim.mul(x, prim.tanh(_softplus(x)))


@operator(axes="... -> ...", promote="float", aliases=INPUT, upcast=True, samples=real_samples)
def log_sigmoid(x: Tensor) -> Tensor:
    """``log(logistic(x))`` without overflow."""
    return prim.neg(_softplus(prim.neg(x)))


@operator(axes="... -> ...", promote="float", upcast=True, samples=real_samples)
def tanhshrink(x: Tensor) -> Tensor:
    """``x - tanh(x)``."""
    return prim.sub(x, prim.tanh(x))


@operator(axes="... -> ...", aliases={"input": "x", "lambd": "threshold"}, samples=real_samples)
def hardshrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """`x` where ``|x| >= threshold``, else 0."""
    return prim.select(prim.lt(prim.abs(x), threshold), 0.0, x)


@operator(axes="... -> ...", aliases={"input": "x", "lambd": "threshold"}, upcast=True, samples=real_samples)
def softshrink(x: Tensor, threshold: float = 0.5) -> Tensor:
    """`x` moved towards zero by `threshold`, stopping there."""
    return prim.mul(prim.sign(x), positive_part(prim.sub(prim.abs(x), threshold)))


@operator(axes="... -> ...", inplace=True, samples=real_samples)
def thresholded_relu(x: Tensor, threshold: float = 1.0, value: float = 0.0) -> Tensor:
    """`x` where it is above `threshold` (or NaN), else `value`."""
    return prim.select(prim.le(x, threshold), value, x)


@operator(promote="float", inplace=True)
def softmax(x: Tensor, axis: int = -1, dtype: str | None = None) -> Tensor:
    """``exp(x)`` divided by its sum along `axis`; computed in `dtype` if given."""
    if dtype is not None and x.dtype != dtype:
        x = prim.cast(x, dtype=dtype)
    axes = (axis_of("softmax", axis, x.ndim),) if x.ndim else ()
    powers = prim.exp(prim.sub(x, largest(x, axes)))
    share = prim.div(1.0, prim.reduce_sum(powers, axes=axes))  # of a sum that is one at least
    return prim.mul(powers, restore(share, x.shape, axes))


def largest(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The maximum over `axes` everywhere along them, a constant to differentiation (it cancels out)."""
    return restore(prim.stop_gradient(prim.reduce_max(x, axes=axes)), x.shape, axes)


@softmax.reference
@ieee
def _(x: Array, axis: int, dtype: str | None) -> Array:
    wide = widen(x if dtype is None else KERNELS["cast"](x, dtype=dtype))
    powers = np.exp(wide - wide.max(axis, keepdims=True, initial=-np.inf)) if x.ndim else np.ones_like(wide)
    result = powers * (1 / powers.sum(axis, keepdims=True)) if x.ndim else powers
    return result if dtype is not None else round_narrow(result, x.dtype)


def softmax_samples(rng: np.random.Generator) -> Iterator[Sample]:
    """The last axis, the first one, and one without elements beside it."""
    yield Sample(rng.standard_normal((2, 3)) * 9)
    yield Sample(rng.standard_normal((2, 3, 4)).astype(np.float32), axis=0)
    yield Sample(np.zeros((0, 3)))


softmax.samples(softmax_samples)


@operator(promote="float", samples=softmax_samples)
def log_softmax(x: Tensor, axis: int = -1, dtype: str | None = None) -> Tensor:
    """``x - log(sum(exp(x)))`` along `axis`; computed in `dtype` if given."""
    if dtype is not None and x.dtype != dtype:
        x = prim.cast(x, dtype=dtype)
    axes = (axis_of("log_softmax", axis, x.ndim),) if x.ndim else ()
    shifted = prim.sub(x, largest(x, axes))
    total = prim.log(prim.reduce_sum(prim.exp(shifted), axes=axes))
    return prim.sub(shifted, restore(total, x.shape, axes))
