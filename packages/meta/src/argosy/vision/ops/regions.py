"""Features of regions: averages and maxima over the bins of boxes, and their layers.

An average over a bin of a box is separable: a matrix over rows and one over columns, made here from the boxes, and two
products, so that features have gradients of every order. Boxes have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.nn.layer import Layer
from argosy.vision.image import beside, host
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["PSRoIPool", "RoIAlign", "RoIPool", "psroi_pool", "roi_align", "roi_pool"]

_AT_ONCE = 64  # boxes whose partial products are held together


def _pair(name: str, size: Any) -> tuple[int, int]:
    rows, columns = (size, size) if isinstance(size, int) else size
    if rows < 1 or columns < 1:
        raise ValueError(f"{name}: output_size should be positive, got {size!r}")
    return rows, columns


def _boxes(name: str, x: Tensor, boxes: Tensor, boxes_num: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The boxes ``[R, 4]`` in float64 and the picture that each belongs to."""
    given, counts = host(boxes).astype(np.float64), host(boxes_num).astype(np.int64)
    if x.ndim != 4 or given.ndim != 2 or given.shape[1] != 4:
        raise ValueError(f"{name}: x should be [N, C, H, W] and boxes [R, 4], got {x.shape} and {boxes.shape}")
    if counts.shape != (x.shape[0],) or counts.sum() != len(given) or (counts < 0).any():
        raise ValueError(f"{name}: boxes_num should count {len(given)} boxes of {x.shape[0]} pictures, got {counts}")
    return given, np.repeat(np.arange(len(counts)), counts)


def _groups(images: np.ndarray) -> Iterator[tuple[int, slice]]:
    """Runs of boxes of one picture."""
    for image in np.unique(images):
        where = np.flatnonzero(images == image)
        for start in range(where[0], where[-1] + 1, _AT_ONCE):
            yield int(image), slice(start, min(start + _AT_ONCE, where[-1] + 1))


def _collect(parts: list[Tensor], x: Tensor, channels: int, size: tuple[int, int]) -> Tensor:
    if parts:
        return get_operator("concat")(parts, 0)
    return beside(x, np.zeros([0, channels, *size], x.dtype.numpy))


def _average(x: Tensor, images: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> Tensor:
    """``rows[r] @ x[images[r]] @ columns[r]^T``: ``[R, p, H]`` and ``[R, q, W]`` give ``[R, C, p, q]``."""
    einsum = get_operator("einsum")
    parts = []
    for image, run in _groups(images):
        down, across = (beside(x, m[run].astype(x.dtype.numpy)) for m in (rows, columns))
        parts.append(einsum("rpcw,rqw->rcpq", einsum("rph,chw->rpcw", down, x[image]), across))
    return _collect(parts, x, x.shape[1], (rows.shape[1], columns.shape[1]))


@validate_call
def roi_align(
    x: Tensor,
    boxes: Tensor,
    boxes_num: Tensor,
    output_size: Any,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = True,
    name: str | None = None,
) -> Tensor:
    """Averages ``[R, C, h, w]`` of bilinear samples in the bins of boxes (He et al., 2017, Mask R-CNN).

    x: ``[N, C, H, W]``; boxes: ``[R, 4]`` as (x1, y1, x2, y2), those of the first picture first; boxes_num: ``[N]``;
    spatial_scale: from the boxes' units to pixels of ``x``; sampling_ratio: samples along each side of a bin, -1 for
    as many as it has pixels; aligned: pixel centres lie at halves.
    """
    rows, columns = _pair("roi_align", output_size)
    given, images = _boxes("roi_align", x, boxes, boxes_num)
    corners = given * spatial_scale - (0.5 if aligned else 0.0)
    extents = corners[:, 2:] - corners[:, :2]
    if not aligned:
        extents = np.maximum(extents, 1.0)
    matrices = []
    for axis, count, size in ((1, rows, x.shape[2]), (0, columns, x.shape[3])):
        lines = [
            _sampling_matrix(corners[r, axis], extents[r, axis] / count, count, size, sampling_ratio)
            for r in range(len(given))
        ]
        matrices.append(np.array(lines).reshape(len(given), count, size))
    return _average(x, images, *matrices)


def _sampling_matrix(start: float, bin_size: float, count: int, size: int, ratio: int) -> np.ndarray:
    """``[count, size]``: row ``i`` averages the samples of bin ``i`` along an axis of ``size`` pixels."""
    each = ratio if ratio > 0 else max(int(np.ceil(bin_size)), 1)
    at = start + (np.arange(count)[:, None] + (np.arange(each) + 0.5) / each) * bin_size
    inside = (at >= -1.0) & (at <= size)
    at = np.clip(at, 0, size - 1)
    low = np.floor(at).astype(np.int64)
    part = at - low
    matrix = np.zeros((count, size))
    bins = np.broadcast_to(np.arange(count)[:, None], at.shape)
    np.add.at(matrix, (bins, low), np.where(inside, 1 - part, 0) / each)
    np.add.at(matrix, (bins, np.minimum(low + 1, size - 1)), np.where(inside, part, 0) / each)
    return matrix


def _bins(start: np.ndarray, end: np.ndarray, count: int, size: int) -> np.ndarray:
    """``[R, count, size]``: which whole pixels lie in each bin between ``start`` and ``end``."""
    step = (end - start)[:, None] / count
    low = np.clip(np.floor(np.arange(count) * step + start[:, None]), 0, size)
    high = np.clip(np.ceil((np.arange(count) + 1) * step + start[:, None]), 0, size)
    at = np.arange(size)
    inside: np.ndarray = (at >= low[..., None]) & (at < high[..., None])
    return inside


def _round_half_away(values: np.ndarray) -> np.ndarray:
    return np.sign(values) * np.floor(np.abs(values) + 0.5)


@validate_call
def roi_pool(
    x: Tensor,
    boxes: Tensor,
    boxes_num: Tensor,
    output_size: Any,
    spatial_scale: float = 1.0,
    name: str | None = None,
) -> Tensor:
    """Maxima ``[R, C, h, w]`` over the bins of boxes, rounded to pixels (Girshick, 2015); 0 for an empty bin."""
    size = _pair("roi_pool", output_size)
    given, images = _boxes("roi_pool", x, boxes, boxes_num)
    corners = _round_half_away(given * spatial_scale)
    ends = np.maximum(corners[:, 2:], corners[:, :2]) + 1
    down = _bins(corners[:, 1], ends[:, 1], size[0], x.shape[2])
    across = _bins(corners[:, 0], ends[:, 0], size[1], x.shape[3])
    low = float(np.finfo(np.float32).min)
    where = get_operator("where")
    least, zero = (beside(x, np.full([1], value, x.dtype.numpy)) for value in (low, 0.0))
    parts = []
    for r, image in enumerate(images):
        rows = where(beside(x, down[r][:, None, :, None]), x[int(image)].unsqueeze(0), least).max(2)  # [h, C, W]
        made = where(beside(x, across[r][:, None, None]), rows.unsqueeze(0), least).max(3)  # [w, h, C]
        empty = ~(down[r].any(1)[:, None] & across[r].any(1))
        made = where(beside(x, empty), zero, made.transpose([2, 1, 0]))
        parts.append(made.unsqueeze(0))
    return _collect(parts, x, x.shape[1], size)


@validate_call
def psroi_pool(
    x: Tensor,
    boxes: Tensor,
    boxes_num: Tensor,
    output_size: Any,
    spatial_scale: float = 1.0,
    name: str | None = None,
) -> Tensor:
    """Averages over the bins of boxes, each bin of channels of its own (Dai et al., 2016, R-FCN).

    x: ``[N, C * h * w, H, W]``; gives ``[R, C, h, w]``.
    """
    rows, columns = _pair("psroi_pool", output_size)
    given, images = _boxes("psroi_pool", x, boxes, boxes_num)
    if x.shape[1] % (rows * columns):
        raise ValueError(f"psroi_pool: {x.shape[1]} channels are no multiple of {rows} * {columns}")
    corners = _round_half_away(given)
    starts, ends = corners[:, :2] * spatial_scale, (corners[:, 2:] + 1) * spatial_scale
    ends = starts + np.maximum(ends - starts, 0.1)
    down = _shares(_bins(starts[:, 1], ends[:, 1], rows, x.shape[2]))
    across = _shares(_bins(starts[:, 0], ends[:, 0], columns, x.shape[3]))
    einsum = get_operator("einsum")
    planes = x.reshape([x.shape[0], -1, rows, columns, *x.shape[2:]])
    parts = []
    for image, run in _groups(images):
        p, q = (beside(x, m[run].astype(x.dtype.numpy)) for m in (down, across))
        parts.append(einsum("rcpqw,rqw->rcpq", einsum("rph,cpqhw->rcpqw", p, planes[image]), q))
    return _collect(parts, x, planes.shape[1], (rows, columns))


def _shares(inside: np.ndarray) -> np.ndarray:
    return inside / np.maximum(inside.sum(-1, keepdims=True), 1)


class _RegionPooling(Layer):
    pool: Callable[..., Tensor]

    def __init__(self, output_size: Any, spatial_scale: float = 1.0) -> None:
        super().__init__()
        self._output_size, self._spatial_scale = output_size, spatial_scale

    def forward(self, x: Tensor, boxes: Tensor, boxes_num: Tensor) -> Tensor:
        """Features of the boxes ``[R, 4]``, of which ``boxes_num`` belong to each picture."""
        return type(self).pool(x, boxes, boxes_num, self._output_size, self._spatial_scale)


class RoIAlign(_RegionPooling):
    """:func:`roi_align` as a layer."""

    pool = staticmethod(roi_align)

    def forward(self, x: Tensor, boxes: Tensor, boxes_num: Tensor, aligned: bool = True) -> Tensor:
        """Features of the boxes ``[R, 4]``, of which ``boxes_num`` belong to each picture."""
        return roi_align(x, boxes, boxes_num, self._output_size, self._spatial_scale, aligned=aligned)


class RoIPool(_RegionPooling):
    """:func:`roi_pool` as a layer."""

    pool = staticmethod(roi_pool)


class PSRoIPool(_RegionPooling):
    """:func:`psroi_pool` as a layer."""

    pool = staticmethod(psroi_pool)
