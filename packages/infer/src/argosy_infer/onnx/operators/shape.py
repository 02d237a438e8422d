"""Shapes, layouts, joining and cutting."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_infer.onnx.registry import Values, onnx_operator
from argosy_infer.onnx.tensors import phi, prim, shape_of, tensor_of
from argosy_phi_ops.prim import broadcast_shapes
from argosy_pir.dims import dim_product


@onnx_operator("Shape")
def shape(x: Any, *, start: int = 0, end: int | None = None) -> Any:
    """The sizes of ``x``, or some of them."""
    sizes = shape_of(x)[slice(start, end)]
    if all(isinstance(n, int) for n in sizes):
        return tensor_of(np.asarray(sizes, np.int64))
    return phi.stack([phi.full([], n, "int64") for n in sizes])


@onnx_operator("Size")
def size(x: Any) -> Any:
    """The number of elements."""
    count = dim_product(shape_of(x))
    return tensor_of(np.asarray(count, np.int64)) if isinstance(count, int) else phi.full([], count, "int64")


@onnx_operator("Reshape")
def reshape(x: Any, shape: Values, *, allowzero: int = 0) -> Any:
    """``x`` with other sizes: 0 is that of ``x`` unless `allowzero`, -1 what is left."""
    old = shape_of(x)
    sizes = [_plain(n) for n in shape]
    if not allowzero:
        sizes = [old[i] if isinstance(n, int) and n == 0 else n for i, n in enumerate(sizes)]
    return phi.reshape(x, sizes)


def _plain(n: Any) -> Any:
    return int(n) if isinstance(n, (int, np.integer)) else n


@onnx_operator("Flatten")
def flatten(x: Any, *, axis: int = 1) -> Any:
    """Two axes: those before ``axis``, and the others."""
    sizes = shape_of(x)
    axis = axis + len(sizes) if axis < 0 else axis
    return phi.reshape(x, [dim_product(sizes[:axis]), dim_product(sizes[axis:])])


@onnx_operator("Transpose")
def transpose(x: Any, *, perm: tuple[int, ...] | None = None) -> Any:
    """The axes of ``x`` in the order ``perm``, else reversed."""
    rank = len(shape_of(x))
    return prim.transpose(x, permutation=tuple(range(rank))[::-1] if perm is None else tuple(perm))


@onnx_operator("Squeeze")
def squeeze(x: Any, axes: Values | None = None) -> Any:
    """Without axes of size 1."""
    return phi.squeeze(x) if axes is None else phi.squeeze(x, [int(axis) for axis in axes])


@onnx_operator("Unsqueeze")
def unsqueeze(x: Any, axes: Values) -> Any:
    """With new axes of size 1, at those places of the result."""
    rank = len(shape_of(x)) + axes.size
    return phi.unsqueeze(x, sorted(int(axis) % rank for axis in axes.reshape(-1)))


@onnx_operator("Expand")
def expand(x: Any, shape: Values) -> Any:
    """``x`` repeated by numpy's rule."""
    return phi.broadcast_to(x, list(broadcast_shapes([shape_of(x), [_plain(n) for n in shape]])))


@onnx_operator("Tile")
def tile(x: Any, repeats: Values) -> Any:
    """``x`` so many times along each axis."""
    return phi.tile(x, [int(n) for n in repeats])


@onnx_operator("Concat")
def concat(*xs: Any, axis: int) -> Any:
    """Tensors one after the other along an axis."""
    return prim.concat(*xs, axis=axis % len(shape_of(xs[0])))


@onnx_operator("Split")
def split(x: Any, split: Values | None = None, *, axis: int = 0, num_outputs: int | None = None, node: Any) -> Any:
    """``x`` cut along an axis: into parts of these sizes, or equal ones, the last of which may be shorter."""
    axis %= len(shape_of(x))
    n, count = shape_of(x)[axis], num_outputs or node.outputs
    if split is None:
        width = -(-n // count)
        sizes = [min(width, n - i * width) for i in range(count)]
    else:
        sizes = [int(each) for each in split]
    starts = np.cumsum([0, *sizes])
    return [phi.slice(x, [axis], [int(a)], [int(a) + k]) for a, k in zip(starts, sizes, strict=False)]


@onnx_operator("Slice")
def slice_(x: Any, starts: Values, ends: Values, axes: Values | None = None, steps: Values | None = None) -> Any:
    """Elements from ``starts`` to before ``ends`` by ``steps``, which may be negative."""
    rank = len(shape_of(x))
    along = range(len(starts)) if axes is None else [int(axis) % rank for axis in axes]
    strides = [1] * len(starts) if steps is None else [int(n) for n in steps]
    for axis, start, end, step in zip(along, starts, ends, strides, strict=True):
        x = _cut(x, axis, _plain(start), _plain(end), step)
    return x


def _cut(x: Any, axis: int, start: Any, end: Any, step: int) -> Any:
    n = shape_of(x)[axis]
    if not isinstance(n, int):
        return (
            phi.slice(x, [axis], [start], [end]) if step == 1 else phi.strided_slice(x, [axis], [start], [end], [step])
        )
    places = range(n)[slice(start, end, step)]
    rank = len(shape_of(x))
    if step < 0:
        x, places = prim.reverse(x, axes=(axis,)), range(n - 1 - places.start, n - 1 - places.stop, -step)
    bounds = [(0, m, 1) for m in shape_of(x)]
    bounds[axis] = (places.start, max(places.stop, places.start), places.step)
    low, high, by = zip(*bounds, strict=True)
    return prim.slice(x, start=low, limit=high, stride=by) if rank else x


@onnx_operator("Pad")
def pad(x: Any, pads: Values, value: Any = None, axes: Values | None = None, *, mode: str = "constant") -> Any:
    """``x`` with elements around it (fewer where ``pads`` are negative): a constant, or its own by ``mode``."""
    rank = len(shape_of(x))
    along = range(rank) if axes is None else [int(axis) % rank for axis in axes]
    low, high = [0] * rank, [0] * rank
    for i, axis in enumerate(along):
        low[axis], high[axis] = int(pads[i]), int(pads[i + len(pads) // 2])
    if mode == "constant":
        fill = phi.full([], 0, x.payload.dtype.name) if value is None else value
        fill = phi.full([], value, x.payload.dtype.name) if isinstance(value, float) else fill
        fill = phi.reshape(fill, [])
        return prim.pad(x, fill, low=tuple(low), high=tuple(high), interior=(0,) * rank)
    for axis in range(rank):
        if low[axis] or high[axis]:
            x = _picked(x, axis, _padded_places(shape_of(x)[axis], low[axis], high[axis], mode))
    return x


def _padded_places(n: int, low: int, high: int, mode: str) -> np.ndarray[Any, Any]:
    """Which element stands at each place."""
    places = np.arange(-low, n + high)
    if mode == "edge":
        return places.clip(0, n - 1)
    if mode == "wrap":
        return places % n
    if mode != "reflect":
        raise NotImplementedError(f"Pad with the mode {mode!r}")
    period = max(2 * (n - 1), 1)
    places = places % period
    return np.minimum(places, period - places)


def _picked(x: Any, axis: int, places: np.ndarray[Any, Any]) -> Any:
    return phi.index_select(x, tensor_of(places.astype(np.int64)), axis)


@onnx_operator("CenterCropPad")
def center_crop_pad(x: Any, shape: Values, *, axes: tuple[int, ...] | None = None) -> Any:
    """The middle of ``x``, or ``x`` in the middle of zeros, by axis."""
    rank = len(shape_of(x))
    low, high = [0] * rank, [0] * rank
    for axis, wanted in zip(range(rank) if axes is None else axes, shape, strict=True):
        more = int(wanted) - shape_of(x)[axis % rank]
        low[axis % rank] = more // 2 if more > 0 else -(-more // 2)
        high[axis % rank] = more - low[axis % rank]
    fill = phi.full([], 0, x.payload.dtype.name)
    return prim.pad(x, fill, low=tuple(low), high=tuple(high), interior=(0,) * rank)


@onnx_operator("DepthToSpace")
def depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    """Channels as blocks of pixels."""
    n, c, h, w = shape_of(x)
    b = blocksize
    if mode == "DCR":
        parts = prim.transpose(phi.reshape(x, [n, b, b, c // (b * b), h, w]), permutation=(0, 3, 4, 1, 5, 2))
    else:
        parts = prim.transpose(phi.reshape(x, [n, c // (b * b), b, b, h, w]), permutation=(0, 1, 4, 2, 5, 3))
    return phi.reshape(parts, [n, c // (b * b), h * b, w * b])


@onnx_operator("SpaceToDepth")
def space_to_depth(x: Any, *, blocksize: int) -> Any:
    """Blocks of pixels as channels."""
    n, c, h, w = shape_of(x)
    b = blocksize
    parts = prim.transpose(phi.reshape(x, [n, c, h // b, b, w // b, b]), permutation=(0, 3, 5, 1, 2, 4))
    return phi.reshape(parts, [n, c * b * b, h // b, w // b])


@onnx_operator("ReverseSequence")
def reverse_sequence(x: Any, lengths: Any, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    """The first ``lengths`` steps of each sequence in reverse."""
    sizes = shape_of(x)
    steps, rows = sizes[time_axis], sizes[batch_axis]
    at = tensor_of(np.arange(steps, dtype=np.int64).reshape([-1, 1]))
    counts = phi.reshape(lengths, [1, rows])
    places = prim.select(prim.lt(at, counts), prim.sub(prim.sub(counts, at), 1), at)  # [time, batch]
    if batch_axis < time_axis:
        places = prim.transpose(places, permutation=(1, 0))
    full = [steps if i == time_axis else rows if i == batch_axis else 1 for i in range(len(sizes))]
    return phi.take_along_axis(x, expand(phi.reshape(places, full), np.asarray(sizes)), time_axis)
