"""Linear maps with weights quantised to 8 or 4 bits (Dettmers et al., LLM.int8(), 2022; Frantar et al., GPTQ, 2023).

A quantised weight is [out, in] (the transpose of what it was made from), one scale for each output, or for each output
and group of inputs. Four-bit weights lie two to a byte, [out / 2, in]: byte (i, k) holds output ``i`` in its low half
and output ``i + out / 2`` in its high half. All of it is ordinary primitives: a compiler that computes operands of
products where they are read never puts the weight into memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import DTypeError, OperatorError, ShapeError
from argosy_phi_ops.primitives.checks import FLOATING, check_dtype
from argosy_phi_ops.reference.kernels.registry import Array
from argosy_tensorcore.tensor import Tensor

_LARGEST = {"weight_only_int8": 127.0, "llm.int8": 127.0, "weight_only_int4": 7.0}

_GROUPS = (-1, 16, 32, 64, 128)


@operator(promote="none")
def weight_quantize(
    x: Tensor, algo: str = "weight_only_int8", arch: int | None = None, group_size: int = -1
) -> tuple[Tensor, Tensor]:
    """The quantised weight (int8) and its scales, of a weight ``x`` [in, out].

    ``algo`` is "weight_only_int8", "weight_only_int4" (two outputs to a byte) or "llm.int8". Scales are [out], or with
    a ``group_size`` of 16, 32, 64 or 128 inputs [in / group_size, out]; in the dtype of ``x``, of "llm.int8" float32.
    ``arch`` (of a GPU) is of no effect: the layout is the same on every device.
    """
    largest = _largest(algo)
    check_dtype("weight_quantize", x.type, FLOATING)
    size, out = x.shape
    groups = _group_count("weight_quantize", size, group_size)
    if algo == "weight_only_int4" and out % 2:
        raise ShapeError(f"weight_quantize: weight_only_int4 needs an even number of outputs, got {x.type}")
    wide = prim.reshape(prim.cast(x, dtype="float32"), shape=(groups, size // groups, out))
    scale = prim.div(prim.reduce_max(prim.abs(wide), axes=(1,)), largest)  # [groups, out]
    nonzero = prim.select(prim.eq(scale, 0.0), prim.constant(1.0, "float32", scale.shape), scale)
    rounded = prim.round(prim.div(wide, prim.broadcast(nonzero, shape=wide.shape, axes=(0, 2))))
    within = prim.maximum(prim.minimum(rounded, largest), -largest)
    whole = prim.transpose(prim.cast(prim.reshape(within, shape=(size, out)), dtype="int8"), permutation=(1, 0))
    kept = scale if algo == "llm.int8" else prim.cast(scale, dtype=x.dtype)
    return _pack(whole, algo), prim.reshape(kept, shape=(out,)) if group_size == -1 else kept


@operator(promote="none")
def weight_dequantize(
    x: Tensor, scale: Tensor, algo: str = "weight_only_int8", out_dtype: str | None = None, group_size: int = -1
) -> Tensor:
    """The weight [in, out], in the dtype of its scales, that a quantised one stands for.

    ``out_dtype`` is of no effect, as in Paddle."""
    _largest(algo)
    whole = _unpack(x) if algo == "weight_only_int4" else x
    out, size = whole.shape
    groups = _group_count("weight_dequantize", size, group_size)
    wide = prim.reshape(prim.cast(whole, dtype="float32"), shape=(out, groups, size // groups))
    scales = _by_group("weight_dequantize: scale", scale, (groups, out))
    by_output = prim.transpose(scales, permutation=(1, 0))
    result = prim.mul(wide, prim.broadcast(by_output, shape=wide.shape, axes=(0, 1)))
    return prim.cast(prim.transpose(prim.reshape(result, shape=(out, size)), permutation=(1, 0)), dtype=scale.dtype)


@operator(promote="none")
def weight_only_linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    weight_scale: Tensor | None = None,
    weight_dtype: str = "int8",
    arch: int | None = None,
    group_size: int = -1,
    weight_offset: Tensor | None = None,
) -> Tensor:
    """``x @ weight + bias`` with a weight quantised by `weight_quantize`; ``x`` [..., in] is a float and stays one, or
    int8, as a step for each row makes it: products with integers are then exact, in int32, and the result is float32.

    ``weight_dtype`` is "int8" or "int4", or "float8_e4m3fn" for such numbers instead of integers; ``group_size`` that
    of the scales. ``weight_offset``, of the scales' shape, is added to the scaled numbers of a group: the weight is
    ``number * scale + offset`` (a zero point makes ``-zero * scale``). Sums of floats, and of groups, are in float32.
    """
    if weight_scale is None:
        raise OperatorError("weight_only_linear: weight_scale is missing; weight_quantize gives it with the weight")
    if weight_dtype not in ("int8", "int4", "float8_e4m3fn"):
        raise DTypeError(
            f"weight_only_linear: weight_dtype must be 'int8', 'int4' or 'float8_e4m3fn', got {weight_dtype!r}"
        )
    check_dtype("weight_only_linear", x.type, FLOATING if weight_dtype == "float8_e4m3fn" else FLOATING | {"int8"})
    size = x.shape[-1]
    if weight.shape[1] != size:
        raise ShapeError(f"weight_only_linear: x {x.type} has not the features of weight {weight.type} [out, in]")
    groups = _group_count("weight_only_linear", size, group_size)
    parts = _halves(weight) if weight_dtype == "int4" else [weight]
    shape = groups, sum(part.shape[0] for part in parts)
    scales = _by_group("weight_only_linear: weight_scale", weight_scale, shape)
    offsets = None if weight_offset is None else _by_group("weight_only_linear: weight_offset", weight_offset, shape)
    results = []
    for i, part in enumerate(parts):
        cut = {"start": (0, i * part.shape[0]), "limit": (groups, (i + 1) * part.shape[0]), "stride": (1, 1)}
        own = None if offsets is None else prim.slice(offsets, **cut)
        results.append(_scaled_product(x, part, prim.slice(scales, **cut), own))
    result = results[0] if len(results) == 1 else prim.concat(*results, axis=x.ndim - 1)
    return _finish(result, bias, "float32" if x.dtype == "int8" else x.dtype)


@operator(promote="none")
def llm_int8_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, weight_scale: Tensor | None = None, threshold: float = 6.0
) -> Tensor:
    """``x @ weight + bias`` in products of bytes; features of ``x`` with a value beyond ``threshold`` stay floats.

    ``weight`` and ``weight_scale`` are those of ``weight_quantize(..., "llm.int8")``; each row of ``x`` [..., in] is
    quantised on the way. Features with outliers are multiplied with the dequantised weight instead.
    """
    if weight_scale is None:
        raise OperatorError("llm_int8_linear: weight_scale is missing; weight_quantize gives it with the weight")
    check_dtype("llm_int8_linear", x.type, FLOATING)
    if weight.shape[1] != x.shape[-1]:
        raise ShapeError(f"llm_int8_linear: x {x.type} has not the features of weight {weight.type} [out, in]")
    last = x.ndim - 1
    wide, outer = prim.cast(x, dtype="float32"), tuple(range(last))
    peak = prim.reduce_max(prim.abs(wide), axes=outer)
    outlier = prim.broadcast(prim.gt(peak, threshold), shape=x.shape, axes=(last,))
    zeros = prim.constant(0.0, "float32", x.shape)
    usual, special = prim.select(outlier, zeros, wide), prim.select(outlier, wide, zeros)
    step = prim.div(prim.reduce_max(prim.abs(usual), axes=(last,)), 127.0)
    nonzero = prim.select(prim.eq(step, 0.0), prim.constant(1.0, "float32", step.shape), step)
    whole = prim.cast(prim.round(prim.div(usual, prim.broadcast(nonzero, shape=x.shape, axes=outer))), dtype="int8")
    sums = prim.dot_general(whole, weight, lhs_contract=(last,), rhs_contract=(1,), accumulate="int32")
    counted = prim.mul(prim.cast(sums, dtype="float32"), prim.broadcast(nonzero, shape=sums.shape, axes=outer))
    exact = prim.dot_general(special, prim.cast(weight, dtype="float32"), lhs_contract=(last,), rhs_contract=(1,))
    scale = prim.broadcast(prim.cast(weight_scale, dtype="float32"), shape=sums.shape, axes=(last,))
    return _finish(prim.mul(prim.add(counted, exact), scale), bias, x.dtype)


def _largest(algo: str) -> float:
    if algo not in _LARGEST:
        raise OperatorError(f"quantised weights: algo must be one of {', '.join(map(repr, _LARGEST))}, got {algo!r}")
    return _LARGEST[algo]


def _group_count(name: str, size: int, group_size: int) -> int:
    if group_size not in _GROUPS:
        raise OperatorError(f"{name}: group_size must be -1, 16, 32, 64 or 128, got {group_size}")
    if group_size > 0 and size % group_size:
        raise ShapeError(f"{name}: {size} inputs are not a multiple of the group size {group_size}")
    return size // group_size if group_size > 0 else 1


def _by_group(what: str, scale: Tensor, shape: tuple[int, int]) -> Tensor:
    """Scales as float32 [groups, out], which is ``shape``; those of one group may be [out]."""
    if tuple(scale.shape) not in (shape, shape[1:] if shape[0] == 1 else shape):
        raise ShapeError(f"{what} should be {list(shape)} [groups, out], got {scale.type}")
    wide = prim.cast(scale, dtype="float32")
    return wide if scale.ndim == 2 else prim.reshape(wide, shape=shape)


def _pack(whole: Tensor, algo: str) -> Tensor:
    if algo != "weight_only_int4":
        return whole
    out, size = whole.shape
    low, high = (
        prim.slice(whole, start=(i * out // 2, 0), limit=((i + 1) * out // 2, size), stride=(1, 1)) for i in range(2)
    )
    return prim.bitwise_or(prim.bitwise_and(low, 15), prim.shift_left(high, 4))


def _halves(packed: Tensor) -> list[Tensor]:
    """The low and the high numbers of four bits as int32."""
    wide = prim.cast(packed, dtype="int32")
    return [prim.shift_right(prim.shift_left(wide, 28), 28), prim.shift_right(wide, 4)]


def _unpack(packed: Tensor) -> Tensor:
    return prim.concat(*_halves(packed), axis=0)


def _scaled_product(x: Tensor, weight: Tensor, scales: Tensor, offsets: Tensor | None) -> Tensor:
    """``x`` [..., in] times a quantised weight [out, in] with scales and offsets [groups, out], in float32."""
    groups, out = scales.shape
    *outer, size = x.shape
    last, values = len(outer), prim.cast(weight, dtype=x.dtype)
    if groups == 1 and offsets is None:
        y = _product(x, values, lhs_contract=(last,), rhs_contract=(1,))
        return prim.mul(y, prim.broadcast(prim.reshape(scales, shape=(out,)), shape=y.shape, axes=(last,)))
    grouped = prim.reshape(x, shape=(*outer, groups, size // groups))
    values = prim.reshape(values, shape=(out, groups, size // groups))
    contract = {"lhs_contract": (last + 1,), "rhs_contract": (2,), "lhs_batch": (last,), "rhs_batch": (1,)}
    parts = _product(grouped, values, **contract)  # [groups, ..., out]
    y = prim.reduce_sum(prim.mul(parts, prim.broadcast(scales, shape=parts.shape, axes=(0, last + 1))), axes=(0,))
    if offsets is None:
        return y
    sums = prim.reduce_sum(prim.cast(grouped, dtype="float32"), axes=(last + 1,))  # [..., groups]
    return prim.add(y, prim.dot_general(sums, offsets, lhs_contract=(last,), rhs_contract=(0,)))


def _product(x: Tensor, values: Tensor, **axes: tuple[int, ...]) -> Tensor:
    """A product in float32, of bytes in int32 first."""
    if x.dtype != "int8":
        return prim.dot_general(x, values, accumulate="float32", **axes)
    return prim.cast(prim.dot_general(x, values, accumulate="int32", **axes), dtype="float32")


def _finish(result: Tensor, bias: Tensor | None, dtype: str) -> Tensor:
    if bias is not None:
        wide = prim.cast(bias, dtype="float32")
        result = prim.add(result, prim.broadcast(wide, shape=result.shape, axes=(result.ndim - 1,)))
    return prim.cast(result, dtype=dtype)


def _weights(rng: np.random.Generator, out: int, size: int) -> tuple[Array, Array]:
    return rng.integers(-127, 128, (out, size)).astype(np.int8), rng.uniform(0.01, 0.02, (out,)).astype(np.float32)


@weight_quantize.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((128, 6)).astype(np.float32)
    yield Sample(x)
    yield Sample(x, "llm.int8")


@weight_dequantize.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(*_weights(rng, 6, 5))


@weight_only_linear.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 17)).astype(np.float32)
    weight, scale = _weights(rng, 6, 17)
    yield Sample(x, weight, rng.standard_normal(6).astype(np.float32), scale)
    yield Sample(rng.integers(-128, 128, (2, 17)).astype(np.int8), weight, None, scale)
    yield Sample(x, weight, None, scale)


@llm_int8_linear.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = (rng.standard_normal((2, 3, 9)) * 3).astype(np.float32)
    weight, scale = _weights(rng, 5, 9)
    yield Sample(x, weight, rng.standard_normal(5).astype(np.float32), scale)
