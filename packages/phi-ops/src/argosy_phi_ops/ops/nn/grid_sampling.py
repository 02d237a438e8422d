"""Sampling images at places of a grid, and grids of affine maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import check_static_sizes
from argosy_tensorcore.tensor import Tensor


@operator()
def affine_grid(theta: Tensor, out_shape: Sequence[int], align_corners: bool = True) -> Tensor:
    """The places [N, H, W, 2] (or [N, D, H, W, 3]) that affine maps `theta` [N, 2, 3] (or [N, 3, 4]) send pixels to.

    `out_shape` is [N, C, H, W] (or [N, C, D, H, W]). Places are (x, y), with -1 and 1 at the centres of the outer
    pixels, or with `align_corners` False at their outer edges.
    """
    sizes = tuple(out_shape)[2:]
    rank = len(sizes)
    check_static_sizes("affine_grid", theta.shape[1:])
    if rank not in (2, 3) or theta.shape[1:] != (rank, rank + 1):
        raise ShapeError(
            f"affine_grid: theta {theta.type} and out_shape {list(out_shape)} should be maps of 2 or 3 axes"
        )
    shape = (*sizes, 1)
    axes = [_centres(shape, axis, align_corners, theta.dtype) for axis in reversed(range(rank))]
    places = prim.concat(*axes, prim.constant(1.0, theta.dtype, shape), axis=rank)  # [*sizes, rank + 1]
    mapped = prim.dot_general(places, theta, lhs_contract=(rank,), rhs_contract=(2,))  # [*sizes, N, rank]
    return prim.transpose(mapped, permutation=(rank, *range(rank), rank + 1))


def _centres(shape: tuple[Any, ...], axis: int, align_corners: bool, dtype: str) -> Any:
    """Where the centres of pixels lie along `axis`, from -1 to 1."""
    size = shape[axis]
    index = prim.iota(shape=shape, axis=axis, dtype=dtype)
    if align_corners:
        return prim.sub(prim.mul(index, 2.0 / max(size - 1, 1)), 1.0)
    return prim.sub(prim.mul(prim.add(index, 0.5), 2.0 / size), 1.0)


@affine_grid.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    yield Sample(rng.standard_normal((2, 2, 3)), [2, 3, 4, 5])
    yield Sample(rng.standard_normal((1, 3, 4)), [1, 2, 2, 3, 4], align_corners=False)


@operator()
def grid_sample(
    x: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = True
) -> Tensor:
    """The images `x` [N, C, H, W] at the places `grid` [N, Ho, Wo, 2]: [N, C, Ho, Wo] (Jaderberg et al., 2015).

    Places are (x, y) as :func:`affine_grid` gives them; images [N, C, D, H, W] have grids [N, Do, Ho, Wo, 3]. `mode` is
    "bilinear" or "nearest" (halves to even); beyond the image there is 0, or with `padding_mode` "border" its edge, or
    with "reflection" its mirror image.
    """
    rank = x.ndim - 2
    check_static_sizes("grid_sample", (*x.shape[2:], grid.shape[-1]))
    if rank not in (2, 3) or grid.ndim != x.ndim or grid.shape[-1] != rank or grid.shape[0] != x.shape[0]:
        raise ShapeError(f"grid_sample: x {x.type} and grid {grid.type} are not [N, C, H, W] and [N, Ho, Wo, 2]")
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"grid_sample: mode {mode!r} or padding_mode {padding_mode!r} is unknown")
    sizes = x.shape[2:]
    places = [_place(grid, rank - 1 - i, sizes[i], padding_mode, align_corners) for i in range(rank)]
    if mode == "nearest":
        result = _pixels_at(x, [prim.round(p) for p in places])
    else:
        result = _interpolate(x, places)
    return prim.transpose(result, permutation=(0, rank + 1, *range(1, rank + 1)))


def _place(grid: Tensor, coordinate: int, size: int, padding: str, align: bool) -> Any:
    """Pixel numbers [N, Ho, Wo] along one axis, moved into the image unless the padding is zeros."""
    last = grid.ndim - 1
    start = tuple(coordinate if i == last else 0 for i in range(grid.ndim))
    limit = tuple(coordinate + 1 if i == last else n for i, n in enumerate(grid.shape))
    share = prim.slice(grid, start=start, limit=limit, stride=(1,) * grid.ndim)
    share = prim.add(prim.reshape(share, shape=grid.shape[:-1]), 1.0)
    if align:
        place = prim.mul(share, (size - 1) / 2)
    else:
        place = prim.sub(prim.mul(share, size / 2), 0.5)
    if padding == "reflection":
        low, span = (0.0, float(size - 1)) if align else (-0.5, float(size))
        place = _reflect(place, low, span) if span else prim.mul(place, 0.0)
    if padding == "zeros":
        return place
    return prim.minimum(prim.maximum(place, 0.0), float(size - 1))


def _reflect(place: Any, low: float, span: float) -> Any:
    """`place` mirrored at low and low + span as often as it takes."""
    away = prim.abs(prim.sub(place, low))
    turns = prim.stop_gradient(prim.floor(prim.div(away, span)))
    rest = prim.sub(away, prim.mul(turns, span))
    odd = prim.eq(prim.sub(turns, prim.mul(prim.floor(prim.mul(turns, 0.5)), 2.0)), 1.0)
    return prim.add(prim.select(odd, prim.sub(span, rest), rest), low)


def _interpolate(x: Tensor, places: Sequence[Any]) -> Any:
    lower = [prim.stop_gradient(prim.floor(p)) for p in places]
    shares = [prim.sub(p, low) for p, low in zip(places, lower, strict=True)]
    total = None
    for corner in product((0, 1), repeat=len(places)):
        at = [prim.add(low, 1.0) if up else low for low, up in zip(lower, corner, strict=True)]
        weight = None
        for share, up in zip(shares, corner, strict=True):
            factor = share if up else prim.sub(1.0, share)
            weight = factor if weight is None else prim.mul(weight, factor)
        values = _pixels_at(x, at)
        term = prim.mul(values, prim.broadcast(weight, shape=values.shape, axes=tuple(range(values.ndim - 1))))
        total = term if total is None else prim.add(total, term)
    return total


def _pixels_at(x: Tensor, places: Sequence[Any]) -> Any:
    """The pixels [N, Ho, Wo, C] at whole-numbered places; 0 outside of the image."""
    inside = None
    for p, size in zip(places, x.shape[2:], strict=True):
        within = prim.logical_and(prim.ge(p, 0.0), prim.le(p, float(size - 1)))
        inside = within if inside is None else prim.logical_and(inside, within)
    shape = (*places[0].shape, 1)
    bounded = [
        prim.minimum(prim.maximum(p, 0.0), float(size - 1)) for p, size in zip(places, x.shape[2:], strict=True)
    ]  # before the cast, which has no meaning for infinity
    index = [prim.reshape(prim.cast(p, dtype="int64"), shape=shape) for p in bounded]
    rank = len(places)
    indices = prim.concat(*index, axis=rank + 1)
    moved = prim.transpose(x, permutation=(0, *range(2, rank + 2), 1))
    values = prim.gather(moved, indices, axes=tuple(range(1, rank + 1)), batch=1)
    mask = prim.broadcast(inside, shape=values.shape, axes=tuple(range(values.ndim - 1)))
    return prim.select(mask, values, 0.0)


@grid_sample.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x, grid = rng.standard_normal((2, 3, 4, 5)), rng.uniform(-1.4, 1.4, (2, 3, 2, 2))
    for padding in ("zeros", "border", "reflection"):
        yield Sample(x, grid, padding_mode=padding)
        yield Sample(x, grid, padding_mode=padding, align_corners=False)
    yield Sample(x, grid, "nearest")
    yield Sample(rng.standard_normal((1, 2, 3, 4, 2)), rng.uniform(-1.2, 1.2, (1, 2, 2, 3, 3)))
