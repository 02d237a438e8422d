"""Normalisation."""

from __future__ import annotations

from typing import Any

from argosy_infer.onnx.document import dtype_name
from argosy_infer.onnx.registry import onnx_operator
from argosy_infer.onnx.tensors import phi, prim, shape_of


def _channels(x: Any, rank: int) -> Any:
    """Numbers of channels, to stand beside [N, C, ...] of that rank."""
    return phi.reshape(x, [-1] + [1] * (rank - 2))


def _standard(x: Any, axes: list[int], epsilon: float) -> tuple[Any, Any, Any]:
    """``x`` with mean 0 and variance 1 along axes, the mean, and one over the deviation."""
    mean = phi.mean(x, axes, True)
    apart = prim.sub(x, mean)
    inverse = prim.rsqrt(phi.mean(prim.mul(apart, apart), axes, True) + epsilon)
    return prim.mul(apart, inverse), mean, inverse


@onnx_operator("BatchNormalization")
def batch_normalization(
    x: Any, scale: Any, bias: Any, mean: Any, variance: Any, *, epsilon: float = 1e-5, momentum: float = 0.9,
    is_test: int = 1, spatial: int = 1, training_mode: int = 0, node: Any,
) -> Any:  # fmt: skip
    """By given statistics; in training mode by those of the batch, and the running ones are results too."""
    if not spatial or not is_test:
        raise NotImplementedError("BatchNormalization with spatial 0 or is_test 0")
    rank, dtype = len(shape_of(x)), x.payload.dtype.name
    if not training_mode:
        if node.outputs > 1:
            raise NotImplementedError("BatchNormalization of an operator set before 14 in training mode")
        factor = prim.mul(scale, prim.cast(prim.rsqrt(variance + epsilon), dtype=scale.payload.dtype.name))
        moved = prim.sub(x, _channels(prim.cast(mean, dtype=dtype), rank))
        scaled = prim.mul(moved, _channels(prim.cast(factor, dtype=dtype), rank))
        return prim.add(scaled, _channels(prim.cast(bias, dtype=dtype), rank))
    axes = [i for i in range(rank) if i != 1]
    found = phi.mean(x, axes)
    apart = prim.sub(x, _channels(found, rank))
    spread = phi.mean(prim.mul(apart, apart), axes)
    scaled = prim.mul(apart, _channels(prim.mul(scale, prim.rsqrt(spread + epsilon)), rank))
    running = (old * momentum + new * (1 - momentum) for old, new in ((mean, found), (variance, spread)))
    return prim.add(scaled, _channels(bias, rank)), *running


@onnx_operator("InstanceNormalization")
def instance_normalization(x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5) -> Any:
    """Each channel of each sample by its own statistics."""
    rank = len(shape_of(x))
    found, _, _ = _standard(x, list(range(2, rank)), epsilon)
    return prim.add(prim.mul(found, _channels(scale, rank)), _channels(bias, rank))


@onnx_operator("LayerNormalization")
def layer_normalization(
    x: Any, scale: Any, bias: Any = None, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    """All axes from ``axis`` on together, computed in the dtype `stash_type`; then mean and one over the deviation."""
    rank, dtype = len(shape_of(x)), x.payload.dtype.name
    axes = list(range(axis % rank, rank))
    found, mean, inverse = _standard(prim.cast(x, dtype=dtype_name(stash_type, "LayerNormalization")), axes, epsilon)
    scaled = prim.mul(prim.cast(found, dtype=dtype), scale)
    return scaled if bias is None else prim.add(scaled, bias), mean, inverse


@onnx_operator("RMSNormalization")
def rms_normalization(x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Any:
    """All axes from ``axis`` on by the root of their mean square."""
    rank, dtype = len(shape_of(x)), x.payload.dtype.name
    wide = prim.cast(x, dtype=dtype_name(stash_type, "RMSNormalization"))
    square = phi.mean(prim.mul(wide, wide), list(range(axis % rank, rank)), True)
    found = prim.cast(prim.mul(wide, prim.rsqrt(square + epsilon)), dtype=dtype)
    return prim.mul(found, prim.cast(scale, dtype=dtype))


@onnx_operator("GroupNormalization", since=21)
def group_normalization(
    x: Any, scale: Any, bias: Any, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    """Groups of channels by their own statistics."""
    sizes, dtype = shape_of(x), x.payload.dtype.name
    rank = len(sizes)
    wide = prim.cast(x, dtype=dtype_name(stash_type, "GroupNormalization"))
    grouped = phi.reshape(wide, [sizes[0], num_groups, sizes[1] // num_groups, *sizes[2:]])
    found, _, _ = _standard(grouped, list(range(2, rank + 1)), epsilon)
    plain = prim.cast(phi.reshape(found, list(sizes)), dtype=dtype)
    return prim.add(prim.mul(plain, _channels(scale, rank)), _channels(bias, rank))


@onnx_operator("GroupNormalization", since=18)
def group_normalization_by_groups(x: Any, scale: Any, bias: Any, *, num_groups: int, epsilon: float = 1e-5) -> Any:
    """As :func:`group_normalization`, with a scale and a bias for each group."""
    count = shape_of(x)[1] // num_groups
    scale, bias = (phi.repeat_interleave(each, count) for each in (scale, bias))
    return group_normalization(x, scale, bias, num_groups=num_groups, epsilon=epsilon)


@onnx_operator("MeanVarianceNormalization")
def mean_variance_normalization(x: Any, *, axes: tuple[int, ...] = (0, 2, 3)) -> Any:
    """``(x - mean) / (deviation + 1e-9)``."""
    apart = prim.sub(x, phi.mean(x, list(axes), True))
    deviation = prim.sqrt(phi.mean(prim.mul(apart, apart), list(axes), True))
    return prim.div(apart, deviation + 1e-9)


@onnx_operator("LpNormalization")
def lp_normalization(x: Any, *, axis: int = -1, p: int = 2) -> Any:
    """``x`` by its norm of order 1 or 2 along an axis."""
    axis %= len(shape_of(x))
    each = prim.abs(x) if p == 1 else prim.mul(x, x)
    norm = phi.unsqueeze(prim.reduce_sum(each, axes=(axis,)), axis)
    norm = norm if p == 1 else prim.sqrt(norm)
    return prim.div(x, norm)


@onnx_operator("LRN")
def lrn(x: Any, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Any:
    """``x`` by a power of the sum of squares of channels around (Krizhevsky et al., 2012)."""
    rank = len(shape_of(x))
    low, high = [0] * rank, [0] * rank
    low[1], high[1] = (size - 1) // 2, size // 2
    fill = phi.full([], 0, x.payload.dtype.name)
    squares = prim.pad(prim.mul(x, x), fill, low=tuple(low), high=tuple(high), interior=(0,) * rank)
    count = shape_of(x)[1]
    parts = [phi.slice(squares, [1], [i], [i + count]) for i in range(size)]
    total = parts[0]
    for part in parts[1:]:
        total = prim.add(total, part)
    return prim.div(x, prim.pow(total * (alpha / size) + bias, beta))
