"""Integers with scales and zero points."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_infer.onnx.document import dtype_name
from argosy_infer.onnx.operators.arithmetic import convert
from argosy_infer.onnx.operators.convolution import add_bias, conv
from argosy_infer.onnx.operators.linear import centred
from argosy_infer.onnx.registry import onnx_operator
from argosy_infer.onnx.tensors import phi, prim, shape_of


def _along(x: Any, like: Any, axis: int, block_size: int) -> Any:
    """Scales (or zero points) beside ``like``: one number, one along an axis, or one for each block along it."""
    sizes, rank = shape_of(x), len(shape_of(like))
    if not sizes or (len(sizes) == 1 and sizes[0] == 1):
        return phi.reshape(x, [])
    if block_size:
        whole = phi.repeat_interleave(x, block_size, axis % rank)
        return phi.slice(whole, [axis % rank], [0], [shape_of(like)[axis % rank]])
    return phi.reshape(x, [sizes[0] if i == axis % rank else 1 for i in range(rank)])


@onnx_operator("QuantizeLinear")
def quantize_linear(
    x: Any, scale: Any, zero_point: Any = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0,
    precision: int = 0, saturate: int = 1,
) -> Any:  # fmt: skip
    """``round(x / scale) + zero_point`` (to the nearest, even ones of two), as near as its dtype has."""
    dtype = dtype_name(output_dtype, "QuantizeLinear") if output_dtype else "uint8"
    dtype = dtype if zero_point is None else zero_point.payload.dtype.name
    wide = prim.div(prim.cast(x, dtype="float32"), prim.cast(_along(scale, x, axis, block_size), dtype="float32"))
    if dtype.startswith("float8"):
        return convert(wide, dtype, saturate)
    whole = prim.round(wide)
    if zero_point is not None:
        whole = prim.add(whole, prim.cast(_along(zero_point, x, axis, block_size), dtype="float32"))
    return saturated(whole, dtype)


def saturated(x: Any, dtype: str) -> Any:
    """Whole numbers as integers, those beyond as the nearest."""
    bounds = np.iinfo(dtype)
    return prim.cast(prim.maximum(prim.minimum(x, float(bounds.max)), float(bounds.min)), dtype=dtype)


@onnx_operator("DequantizeLinear")
def dequantize_linear(
    x: Any, scale: Any, zero_point: Any = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Any:
    """``(x - zero_point) scale``."""
    dtype = dtype_name(output_dtype, "DequantizeLinear") if output_dtype else scale.payload.dtype.name
    wide = prim.cast(x, dtype="float32")
    if zero_point is not None:
        wide = prim.sub(wide, prim.cast(_along(zero_point, x, axis, block_size), dtype="float32"))
    return prim.cast(prim.mul(wide, prim.cast(_along(scale, x, axis, block_size), dtype="float32")), dtype=dtype)


@onnx_operator("DynamicQuantizeLinear")
def dynamic_quantize_linear(x: Any) -> Any:
    """``x`` in 8 bits with the scale and zero point of its range, which has 0 in it."""
    axes = tuple(range(len(shape_of(x))))
    low = prim.minimum(prim.reduce_min(x, axes=axes), 0.0)
    high = prim.maximum(prim.reduce_max(x, axes=axes), 0.0)
    scale = prim.div(prim.sub(high, low), 255.0)
    scale = prim.select(prim.eq(scale, 0.0), phi.ones_like(scale), scale)
    point = saturated(prim.round(prim.div(prim.neg(low), scale)), "uint8")
    found = prim.add(prim.round(prim.div(x, scale)), prim.cast(point, dtype="float32"))
    return saturated(found, "uint8"), scale, point


def _requantised(sums: Any, factor: Any, zero_point: Any) -> Any:
    wide = prim.round(prim.mul(prim.cast(sums, dtype="float32"), factor))
    return saturated(prim.add(wide, prim.cast(zero_point, dtype="float32")), zero_point.payload.dtype.name)


def _float(x: Any) -> Any:
    return prim.cast(x, dtype="float32")


def _beside(x: Any, like: Any, axis: int) -> Any:
    """A number, or numbers along ``axis`` of a product."""
    sizes = shape_of(x)
    if not sizes or (len(sizes) == 1 and sizes[0] == 1):
        return phi.reshape(_float(x), [])
    if len(sizes) > 1:
        return _float(x)
    return phi.reshape(
        _float(x), [sizes[0] if i == axis % len(shape_of(like)) else 1 for i in range(len(shape_of(like)))]
    )


@onnx_operator("QLinearMatMul")
def qlinear_matmul(
    a: Any, a_scale: Any, a_zero_point: Any, b: Any, b_scale: Any, b_zero_point: Any, y_scale: Any, y_zero_point: Any
) -> Any:
    """The product of integers of 8 bits, whose sums in 32 bits are quantised again."""
    sums = phi.matmul(centred(a, a_zero_point, -2), centred(b, b_zero_point, -1))
    factor = prim.mul(_beside(a_scale, sums, -2), _beside(b_scale, sums, -1))
    return _requantised(sums, prim.div(factor, _beside(y_scale, sums, -2)), phi.reshape(y_zero_point, []))


@onnx_operator("QLinearConv")
def qlinear_conv(
    x: Any, x_scale: Any, x_zero_point: Any, w: Any, w_scale: Any, w_zero_point: Any, y_scale: Any, y_zero_point: Any,
    bias: Any = None, **attributes: Any,
) -> Any:  # fmt: skip
    """A convolution of integers of 8 bits, whose sums in 32 bits are quantised again."""
    sums = conv(centred(x, x_zero_point, 1), centred(w, w_zero_point, 0), **attributes)
    sums = add_bias(sums, bias)
    factor = prim.mul(_beside(x_scale, sums, 1), _beside(w_scale, sums, 1))
    return _requantised(sums, prim.div(factor, _beside(y_scale, sums, 1)), phi.reshape(y_zero_point, []))
