"""Normalisation: layer, root mean square, batch, group and instance norms, and vectors of length one.

Statistics of narrow floats are computed in float32 and the result rounded once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import OperatorError, ShapeError
from argosy_phi_ops.ops.common.arguments import axis_of, broadcast_along, in_float32, narrow_integers, restore
from argosy_phi_ops.ops.linalg.norms import length
from argosy_phi_ops.ops.reduction import count_of, keep
from argosy_phi_ops.reference.kernels.registry import Array, ieee, round_narrow, widen
from argosy_tensorcore.tensor import Tensor


def standardise(x: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    """`x` less its mean over `axes`, divided by the root of its (biased) variance plus `epsilon`."""
    count = count_of(x.shape, axes, x.dtype)
    centred = prim.sub(x, restore(prim.div(prim.reduce_sum(x, axes=axes), count), x.shape, axes))
    variance = prim.div(prim.reduce_sum(prim.mul(centred, centred), axes=axes), count)
    return prim.mul(centred, restore(prim.rsqrt(prim.add(variance, epsilon)), x.shape, axes))


def _trailing_axes(name: str, x: Tensor, normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if tuple(x.shape[x.ndim - len(sizes) :]) != sizes:
        raise ShapeError(f"{name}: normalized_shape {list(sizes)} does not end the shape of {x.type}")
    return tuple(range(x.ndim - len(sizes), x.ndim))


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, axes: Sequence[int]) -> Tensor:
    """``x * weight + bias`` with parameters that hold the elements of `axes`, in any shape of that size."""
    shape = tuple(x.shape[axis] for axis in axes)
    for parameter, combine in ((weight, prim.mul), (bias, prim.add)):
        if parameter is not None:
            given = narrow_integers(parameter, x.dtype)
            if tuple(given.shape) != shape:
                given = prim.reshape(given, shape=shape)
            x = combine(x, prim.broadcast(given, shape=x.shape, axes=tuple(axes)))
    return x


@operator(aliases={"input": "x", "eps": "epsilon"})
def layer_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    epsilon: float = 1e-05,
) -> Tensor:
    """`x` standardised over its last axes `normalized_shape`, then scaled and shifted (Ba et al., 2016)."""
    axes = _trailing_axes("layer_norm", x, normalized_shape)
    return narrow_integers(_affine(standardise(in_float32(x), axes, epsilon), weight, bias, axes), x.dtype)


@layer_norm.reference
@ieee
def _(
    x: Array, normalized_shape: int | Sequence[int], weight: Array | None, bias: Array | None, epsilon: float
) -> Array:
    expected = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    count = len(expected)
    if x.shape[x.ndim - count :] != expected:
        raise ValueError("normalized_shape")  # the body says it in full
    axes = tuple(range(x.ndim - count, x.ndim))
    wide = widen(x)
    centred = wide - wide.mean(axes, keepdims=True)
    centred *= 1 / np.sqrt(np.square(centred).mean(axes, keepdims=True) + wide.dtype.type(epsilon))
    for parameter, combine in ((weight, np.multiply), (bias, np.add)):
        if parameter is not None:
            combine(centred, widen(parameter).reshape(x.shape[x.ndim - count :]), out=centred)
    return round_narrow(centred, x.dtype)


def _parameters(rng: np.random.Generator, *shape: int) -> tuple[Any, Any]:
    return rng.standard_normal(shape), rng.standard_normal(shape)


@layer_norm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 4)), 4, *_parameters(rng, 4))
    yield Sample(rng.standard_normal((2, 3)).astype(np.float32), [3])
    yield Sample(rng.standard_normal((2, 3, 4)), [3, 4], None, rng.standard_normal((3, 4)))


@operator(aliases={"x": "input", "epsilon": "eps"})
def rms_norm(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float = 1e-05
) -> Tensor:
    """`input` divided by its root mean square over the last axes, then scaled (Zhang and Sennrich, 2019)."""
    axes = _trailing_axes("rms_norm", input, normalized_shape)
    x = in_float32(input)
    mean_square = prim.div(prim.reduce_sum(prim.mul(x, x), axes=axes), count_of(x.shape, axes, x.dtype))
    scaled = prim.mul(x, restore(prim.rsqrt(prim.add(mean_square, eps)), x.shape, axes))
    return narrow_integers(_affine(scaled, weight, None, axes), input.dtype)


@rms_norm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3, 4)), [4], rng.standard_normal(4))
    yield Sample(rng.standard_normal((2, 3, 4)).astype(np.float32), [3, 4])


_LAYOUTS = ("NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC")


def _channel_axis(name: str, x: Tensor, data_format: str) -> int:
    if x.ndim < 2:
        raise ShapeError(f"{name} needs a batch and a channel axis, got {x.type}")
    if data_format not in _LAYOUTS:
        raise OperatorError(f"{name}: data_format should be one of {', '.join(_LAYOUTS)}, got {data_format!r}")
    return x.ndim - 1 if data_format[-1] == "C" and len(data_format) > 2 else 1


@operator()
def batch_norm(
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-05,
    data_format: str = "NCHW",
    use_global_stats: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """`x` standardised for each channel (Ioffe and Szegedy, 2015): (result, new running mean, new running variance).

    With `training` by the batch's statistics, else (or with `use_global_stats`) by the running ones. `momentum`
    weighs the old statistics; the new variance is the biased one.
    """
    channel = _channel_axis("batch_norm", x, data_format)
    if running_mean.shape[0] != x.shape[channel]:
        sizes = f"x has {x.shape[channel]} channels (axis {channel}), running_mean expects {running_mean.shape[0]}"
        raise ShapeError(f"batch_norm: {sizes}")
    axes = tuple(i for i in range(x.ndim) if i != channel)
    wide = in_float32(x)
    batch = training if use_global_stats is None else not use_global_stats
    mean, variance = running_mean, running_var
    if batch:
        count = count_of(x.shape, axes, wide.dtype)
        mean = prim.div(prim.reduce_sum(wide, axes=axes), count)
        centred = prim.sub(wide, broadcast_along(mean, x.shape, channel))
        variance = prim.div(prim.reduce_sum(prim.mul(centred, centred), axes=axes), count)
    else:
        mean, variance = narrow_integers(mean, wide.dtype), narrow_integers(variance, wide.dtype)
        centred = prim.sub(wide, broadcast_along(mean, x.shape, channel))
    scale = broadcast_along(prim.rsqrt(prim.add(variance, epsilon)), x.shape, channel)
    result = narrow_integers(_affine(prim.mul(centred, scale), weight, bias, (channel,)), x.dtype)
    if not (training and batch):
        return result, running_mean, running_var
    return result, _move(running_mean, mean, momentum), _move(running_var, variance, momentum)


def _move(old: Tensor, new: Tensor, momentum: float) -> Tensor:
    fresh = prim.stop_gradient(narrow_integers(new, old.dtype))
    return prim.add(prim.mul(old, momentum), prim.mul(fresh, 1 - momentum))


@batch_norm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x, mean, variance = rng.standard_normal((4, 3, 2)), rng.standard_normal(3), rng.uniform(0.5, 2, 3)
    yield Sample(x, mean, variance, *_parameters(rng, 3))
    yield Sample(x, mean, variance, training=True, momentum=0.8)
    yield Sample(x.transpose(0, 2, 1), mean, variance, *_parameters(rng, 3), training=True, data_format="NLC")
    yield Sample(x, mean, variance, training=True, use_global_stats=True)


@operator()
def group_norm(
    x: Tensor,
    num_groups: int,
    epsilon: float = 1e-05,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    data_format: str = "NCHW",
) -> Tensor:
    """`x` standardised over each of `num_groups` groups of channels (Wu and He, 2018)."""
    channel = _channel_axis("group_norm", x, data_format)
    size = x.shape[channel]
    if isinstance(size, int) and size % num_groups:
        raise ShapeError(f"group_norm: {size} channels of {x.type} do not divide into {num_groups} groups")
    wide = in_float32(x)
    grouped = prim.reshape(wide, shape=(*x.shape[:channel], num_groups, size // num_groups, *x.shape[channel + 1 :]))
    axes = tuple(i for i in range(1, grouped.ndim) if i != channel)
    result = prim.reshape(standardise(grouped, axes, epsilon), shape=x.shape)
    return narrow_integers(_affine(result, weight, bias, (channel,)), x.dtype)


@group_norm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 4, 3)), 2, 1e-5, *_parameters(rng, 4))
    yield Sample(rng.standard_normal((2, 3, 3, 4)), 2, data_format="NHWC")


@operator()
def instance_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.9,
    eps: float = 1e-05,
    data_format: str = "NCHW",
) -> Tensor:
    """`x` standardised over the spatial axes of each sample and channel (Ulyanov et al., 2016)."""
    channel = _channel_axis("instance_norm", x, data_format)
    wide = in_float32(x)
    axes = tuple(i for i in range(1, x.ndim) if i != channel)
    return narrow_integers(_affine(standardise(wide, axes, eps), weight, bias, (channel,)), x.dtype)


@instance_norm.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    weight, bias = _parameters(rng, 3)
    yield Sample(rng.standard_normal((2, 3, 4)), weight=weight, bias=bias)


@operator(promote="float", aliases={"input": "x", "dim": "axis", "eps": "epsilon"}, upcast=True)
def normalize(x: Tensor, p: float = 2, axis: int = 1, epsilon: float = 1e-12) -> Tensor:
    """`x` divided by its p-norm along `axis`, which counts as at least `epsilon`."""
    at = (axis_of("normalize", axis, x.ndim),)
    divisor = prim.maximum(length(x, p, at), epsilon)
    return prim.div(x, prim.broadcast_to(keep(divisor, x.shape, at, True), x.shape))


@normalize.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 3)))
    yield Sample(rng.standard_normal((2, 3)), p=3, axis=0)
