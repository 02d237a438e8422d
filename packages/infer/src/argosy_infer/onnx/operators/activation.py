"""Activation functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_infer.onnx.registry import onnx_operator
from argosy_infer.onnx.tensors import phi, prim, shape_of


def _declare(name: str, operator: str) -> None:
    @onnx_operator(name)
    def activate(x: Any) -> Any:
        return getattr(phi, operator)(x)


for _name, _operator in (("Relu", "relu"), ("Softsign", "softsign"), ("Mish", "mish")):
    _declare(_name, _operator)


@onnx_operator("HardSwish")
def hard_swish(x: Any) -> Any:
    """``x * clip(x / 6 + 1 / 2, 0, 1)``."""
    return x * hard_sigmoid(x, alpha=1 / 6, beta=0.5)


@onnx_operator("Elu")
def elu(x: Any, *, alpha: float = 1.0) -> Any:
    """``alpha (exp(x) - 1)`` below 0."""
    return phi.elu(x, alpha)


@onnx_operator("Celu")
def celu(x: Any, *, alpha: float = 1.0) -> Any:
    """``alpha (exp(x / alpha) - 1)`` below 0."""
    return phi.celu(x, alpha)


@onnx_operator("Selu")
def selu(x: Any, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Any:
    """``gamma`` times ``elu``."""
    return gamma * phi.elu(x, alpha)


@onnx_operator("LeakyRelu")
def leaky_relu(x: Any, *, alpha: float = 0.01) -> Any:
    """``alpha x`` below 0."""
    return phi.leaky_relu(x, alpha)


@onnx_operator("ThresholdedRelu")
def thresholded_relu(x: Any, *, alpha: float = 1.0) -> Any:
    """``x`` above ``alpha``, else 0."""
    return phi.thresholded_relu(x, alpha)


@onnx_operator("PRelu")
def prelu_by_channel(x: Any, slope: Any) -> Any:
    """As :func:`prelu`, with slopes of channels, axis 1."""
    count = max(len(shape_of(x)) - 2, 0)
    return prelu(x, phi.reshape(slope, [-1] + [1] * count))


@onnx_operator("PRelu", since=7)
def prelu(x: Any, slope: Any) -> Any:
    """``slope x`` below 0."""
    return prim.select(prim.lt(x, 0), prim.mul(x, slope), x)


@onnx_operator("HardSigmoid")
def hard_sigmoid(x: Any, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    """``clip(alpha x + beta, 0, 1)``."""
    return prim.maximum(prim.minimum(x * alpha + beta, 1), 0)


@onnx_operator("Softplus")
def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``."""
    return phi.softplus(x, threshold=np.inf)


@onnx_operator("Gelu")
def gelu(x: Any, *, approximate: str = "none") -> Any:
    """``x`` times the normal distribution function of ``x``."""
    return phi.gelu(x, approximate == "tanh")


@onnx_operator("Swish")
def swish(x: Any, *, alpha: float = 1.0) -> Any:
    """``x logistic(alpha x)``."""
    return x * prim.logistic(x * alpha)


@onnx_operator("Shrink")
def shrink(x: Any, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    """``x`` nearer to 0 by ``bias``; 0 between ``-lambd`` and ``lambd``."""
    dtype = x.payload.dtype.name
    moved = x if dtype.startswith(("float", "bfloat")) else prim.cast(x, dtype="float32")
    zero = prim.sub(moved, moved)
    below = prim.select(prim.lt(moved, -lambd), moved + bias, zero)
    return prim.cast(prim.select(prim.gt(moved, lambd), moved - bias, below), dtype=dtype)


def _declare_softmax(name: str, compute: Any) -> None:
    @onnx_operator(name, since=13)
    def normalise(x: Any, *, axis: int = -1) -> Any:
        return compute(x, axis)

    @onnx_operator(name)
    def normalise_rows(x: Any, *, axis: int = 1) -> Any:
        """All axes from ``axis`` on as one."""
        axis %= len(shape_of(x))
        rows = phi.flatten(x, axis, -1)
        return phi.reshape(compute(rows, axis), shape_of(x))


def _hardmax(x: Any, axis: int) -> Any:
    axis %= len(shape_of(x))
    first = phi.unsqueeze(prim.argmax(x, axis=axis, dtype="int64"), axis)
    places = phi.cumsum(phi.ones_like(first.expand(shape_of(x))), axis) - 1
    return prim.cast(prim.eq(places, first), dtype=x.payload.dtype.name)


_declare_softmax("Softmax", lambda x, axis: phi.softmax(x, axis))
_declare_softmax("LogSoftmax", lambda x, axis: phi.log_softmax(x, axis))
_declare_softmax("Hardmax", _hardmax)
