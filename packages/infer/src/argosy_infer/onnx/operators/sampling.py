"""Pixels at places that tensors say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from argosy_infer.onnx.operators.convolution import add_bias
from argosy_infer.onnx.registry import Values, onnx_operator
from argosy_infer.onnx.tensors import phi, prim, shape_of, tensor_of

Pixel = Callable[[Sequence[Any]], Any]
"""(whole numbers as floats, a place along each axis) -> the pixels there."""


def _pixels(x: Any, batch: int, padding: str, align_corners: bool) -> Pixel:
    """Of x [*batch, channels, *space] at places [*batch, P]: [*batch, P, channels]."""
    sizes = shape_of(x)[batch + 1 :]
    axes = tuple(range(batch + 1, len(shape_of(x))))

    def at(places: Sequence[Any]) -> Any:
        inside, indices = None, []
        for place, n in zip(places, sizes, strict=True):
            if padding == "reflection":
                place = _reflected(place, *((0.0, n - 1.0) if align_corners else (-0.5, n - 0.5)))
            here = prim.logical_and(prim.ge(place, 0.0), prim.le(place, n - 1.0))
            inside = here if inside is None else prim.logical_and(inside, here)
            indices.append(prim.cast(prim.maximum(prim.minimum(place, n - 1.0), 0.0), dtype="int64"))
        found = prim.gather(x, phi.stack(indices, -1), axes=axes, batch=batch)
        if padding != "zeros":
            return found
        return prim.select(phi.unsqueeze(inside, -1), found, phi.zeros_like(found))

    return at


def _reflected(x: Any, low: float, high: float) -> Any:
    """Places brought between two bounds by reflection at them."""
    span = high - low
    if span <= 0:
        return phi.full_like(x, low)
    apart = prim.floor_mod(prim.sub(x, low), 2 * span)
    return prim.add(prim.minimum(apart, prim.sub(2 * span, apart)), low)


def _linear_weights(fraction: Any) -> list[tuple[int, Any]]:
    return [(0, prim.sub(1.0, fraction)), (1, fraction)]


def _cubic_weights(fraction: Any) -> list[tuple[int, Any]]:
    """By the kernel of Keys (1981), a = -0.75."""
    a = -0.75

    def near(d: Any) -> Any:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [(-1, far(fraction + 1)), (0, near(fraction)), (1, near(1 - fraction)), (2, far(2 - fraction))]


def _mixed(at: Pixel, places: Sequence[Any], weights: Callable[[Any], list[tuple[int, Any]]]) -> Any:
    """The interpolation between pixels around places: [*batch, P, channels]."""
    base = [prim.floor(place) for place in places]
    found = [weights(prim.sub(place, low)) for place, low in zip(places, base, strict=True)]
    total = None
    for corner in product(*found):
        factor = corner[0][1]
        for _, other in corner[1:]:
            factor = prim.mul(factor, other)
        pixel = at([low + float(offset) for low, (offset, _) in zip(base, corner, strict=True)])
        part = prim.mul(pixel, phi.unsqueeze(factor, -1))
        total = part if total is None else prim.add(total, part)
    return total


@onnx_operator("GridSample")
def grid_sample(x: Any, grid: Any, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros") -> Any:
    """x [N, C, *space] at the places grid [N, *out, axes], the last axis first; -1 and 1 are the ends of an axis."""
    sizes, rank = shape_of(x)[2:], len(shape_of(x)) - 2
    rows, *out, _ = shape_of(grid)
    flat = phi.reshape(grid, [rows, -1, rank])
    places = []
    for axis, n in enumerate(sizes):
        own = phi.squeeze(phi.slice(flat, [2], [rank - 1 - axis], [rank - axis]), 2)
        place = (own + 1) * ((n - 1) / 2) if align_corners else ((own + 1) * n - 1) * 0.5
        places.append(_within(place, n, padding_mode, bool(align_corners)))
    at = _pixels(x, 1, padding_mode, bool(align_corners))
    if mode == "nearest":
        made = at([prim.round(place) for place in places])
    else:
        made = _mixed(at, places, _cubic_weights if mode.endswith("cubic") else _linear_weights)
    return phi.reshape(prim.transpose(made, permutation=(0, 2, 1)), [rows, shape_of(x)[1], *out])


def _within(place: Any, n: int, padding: str, align_corners: bool) -> Any:
    """A place outside of an axis brought into it, but for zeros."""
    low, high = (0.0, n - 1.0) if align_corners else (-0.5, n - 0.5)
    if padding == "reflection":
        return _reflected(place, low, high)
    if padding == "border":
        outside = prim.logical_or(prim.lt(place, low), prim.gt(place, high))
        return prim.select(outside, prim.maximum(prim.minimum(place, n - 1.0), 0.0), place)
    return place


@onnx_operator("AffineGrid")
def affine_grid(theta: Any, size: Values, *, align_corners: int = 0) -> Any:
    """The places that theta [N, axes, axes + 1] moves the centres of pixels to: [N, *space, axes]."""
    space = [int(n) for n in size[2:]]
    centres = [np.linspace(-1, 1, n) if align_corners and n > 1 else (2 * np.arange(n) + 1) / n - 1 for n in space]
    places = np.stack([*np.meshgrid(*centres, indexing="ij")[::-1], np.ones(space)], -1).reshape(-1, len(space) + 1)
    points = prim.cast(tensor_of(places), dtype=theta.payload.dtype.name)
    moved = phi.matmul(points, prim.transpose(theta, permutation=(0, 2, 1)))
    return phi.reshape(moved, [shape_of(theta)[0], *space, len(space)])


@onnx_operator("RoiAlign", since=16)
def roi_align(
    x: Any,
    rois: Any,
    batch_indices: Any,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Any:
    """Regions [R, 4] of images, cut into cells, of whose sampled pixels the mean (or the largest part) is taken."""
    if not sampling_ratio:
        raise NotImplementedError("RoiAlign with sampling_ratio 0: as many samples as a region is large")
    half = coordinate_transformation_mode == "half_pixel"
    scaled = rois * spatial_scale - (0.5 if half else 0.0)
    x1, y1, x2, y2 = (phi.slice(scaled, [1], [i], [i + 1]) for i in range(4))
    rows = _samples(y1, y2, output_height, sampling_ratio, half)
    columns = _samples(x1, x2, output_width, sampling_ratio, half)
    count, h, w = shape_of(rois)[0], shape_of(rows)[1], shape_of(columns)[1]
    places = [
        phi.reshape(phi.broadcast_to(each, [count, h, w]), [count, h * w])
        for each in (phi.unsqueeze(rows, 2), phi.unsqueeze(columns, 1))
    ]
    parts = _region_parts(phi.index_select(x, batch_indices, 0), places)
    if mode == "avg":
        made = parts[0]
        for part in parts[1:]:
            made = prim.add(made, part)
    else:
        made = parts[0]
        for part in parts[1:]:
            made = prim.maximum(made, part)
    cells = [count, output_height, sampling_ratio, output_width, sampling_ratio, shape_of(x)[1]]
    apart = prim.transpose(phi.reshape(made, cells), permutation=(0, 5, 1, 3, 2, 4))
    return phi.mean(apart, [4, 5]) if mode == "avg" else prim.reduce_max(apart, axes=(4, 5))


def _samples(low: Any, high: Any, cells: int, ratio: int, half: bool) -> Any:
    """[R, cells * ratio]: places along an axis."""
    extent = prim.sub(high, low)
    if not half:
        extent = prim.maximum(extent, 1.0)
    steps = ((np.arange(cells * ratio) + 0.5) / (cells * ratio)).astype(np.float32).reshape(1, -1)
    return prim.add(low, prim.mul(extent, prim.cast(tensor_of(steps), dtype=low.payload.dtype.name)))


def _region_parts(x: Any, places: Sequence[Any]) -> list[Any]:
    """What each of the four pixels around a place adds; nothing where that is more than a pixel outside."""
    near, there = [], None
    for place, n in zip(places, shape_of(x)[2:], strict=True):
        here = prim.logical_and(prim.ge(place, -1.0), prim.le(place, float(n)))
        there = here if there is None else prim.logical_and(there, here)
        near.append(prim.minimum(prim.maximum(place, 0.0), n - 1.0))
    at = _pixels(x, 1, "border", True)
    base = [prim.floor(place) for place in near]
    found = [_linear_weights(prim.sub(place, low)) for place, low in zip(near, base, strict=True)]
    parts = []
    for (dy, wy), (dx, wx) in product(*found):
        factor = prim.mul(prim.mul(wy, wx), prim.cast(there, dtype=wy.payload.dtype.name))
        parts.append(prim.mul(at([base[0] + float(dy), base[1] + float(dx)]), phi.unsqueeze(factor, -1)))
    return parts


@onnx_operator("RoiAlign", since=10)
def roi_align_from_corners(x: Any, rois: Any, batch_indices: Any, **attributes: Any) -> Any:
    """As :func:`roi_align`, with regions that begin at the corners of pixels."""
    return roi_align(x, rois, batch_indices, coordinate_transformation_mode="output_half_pixel", **attributes)


@onnx_operator("DeformConv")
def deform_conv(
    x: Any,
    w: Any,
    offset: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Any:
    """A convolution whose windows read x where the offsets move their elements, times a mask (Zhu et al., 2019)."""
    if len(shape_of(x)) != 4:
        raise NotImplementedError("DeformConv over other than two axes")
    rows, channels, *_ = shape_of(x)
    out, _, *window = shape_of(w)
    by, apart, before = strides or (1, 1), dilations or (1, 1), (pads or (0, 0, 0, 0))[:2]
    space = list(shape_of(offset)[2:])
    elements, cells = window[0] * window[1], space[0] * space[1]
    moved = phi.reshape(offset, [rows, offset_group, elements, 2, cells])
    fixed = _window_places(window, space, by, apart, before)
    places = []
    for axis in (0, 1):
        own = phi.squeeze(phi.slice(moved, [3], [axis], [axis + 1]), 3)
        still = prim.cast(tensor_of(fixed[axis]), dtype=x.payload.dtype.name)
        places.append(phi.reshape(prim.add(own, still), [rows, offset_group, elements * cells]))
    grouped = phi.reshape(x, [rows, offset_group, channels // offset_group, *shape_of(x)[2:]])
    pixels = _mixed(_pixels(grouped, 2, "zeros", True), places, _linear_weights)
    if mask is not None:
        pixels = prim.mul(pixels, phi.reshape(mask, [rows, offset_group, elements * cells, 1]))
    columns = prim.transpose(pixels, permutation=(0, 1, 3, 2))
    columns = phi.reshape(columns, [rows, group, channels // group * elements, cells])
    made = phi.matmul(phi.reshape(w, [group, out // group, -1]), columns)
    return add_bias(phi.reshape(made, [rows, out, *space]), bias)


def _window_places(window: Any, space: Any, by: Any, apart: Any, before: Any) -> list[np.ndarray[Any, Any]]:
    """Along each axis, the place of each element of each window without offsets: [elements, windows]."""
    found = []
    for axis in (0, 1):
        along = np.arange(space[axis]) * by[axis] - before[axis]
        within = np.arange(window[axis]) * apart[axis]
        at = along[None, :] + within[:, None]
        shape = (*window, *space)
        at = at[:, None, :, None] if axis == 0 else at[None, :, None, :]
        found.append(np.broadcast_to(at, shape).reshape(window[0] * window[1], -1).astype(np.float32))
    return found
