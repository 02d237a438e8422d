"""Resizing of images and sequences: every mode is a table of weights for each spatial axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import floor
from typing import Any

import numpy as np

from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import Sample, operator
from argosy_phi_ops.errors import ShapeError
from argosy_phi_ops.ops.common.arguments import per_axis, table
from argosy_phi_ops.ops.common.windows import channels_first, channels_last
from argosy_phi_ops.ops.nn.symbolic_interpolation import OpenWay, scale_places
from argosy_tensorcore.tensor import Tensor

_LINEAR = ("linear", "bilinear", "trilinear")

_FIRST_PIXEL = ("bilinear", "bicubic")
"""Modes in which an axis that becomes one pixel is read where it begins, as Paddle has it, not in its middle."""


@operator(aliases={"x": "input"})
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """The spatial axes resized to `size`, or by `scale_factor`.

    Modes: nearest, area, bicubic (Keys, 1981, with a = -0.75), and linear, bilinear or trilinear (one name for each
    number of spatial axes). Pixels are squares: the centres of the first and last ones coincide with `align_corners`;
    otherwise their outer edges do, or with `align_mode` 1 (linear modes) indices are scaled instead. With `antialias`
    (bilinear and bicubic) the kernel widens with the step when shrinking. With `recompute_scale_factor` steps follow
    from the rounded sizes, not from `scale_factor`. Raises ``ValueError`` for modes that there are not.
    """
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f"interpolate: antialias goes with bilinear and bicubic, not with mode {mode!r}")
    if recompute_scale_factor and size is not None:
        raise ValueError("interpolate: recompute_scale_factor goes with scale_factor, not with size")
    last = data_format is not None and data_format[-1:] == "C"
    x = channels_first(input) if last else input
    sizes = _new_sizes(x.shape[2:], size, scale_factor)
    # As Paddle has it, what keeps all its sizes keeps its values, too.
    given = size is None and not recompute_scale_factor and sizes != tuple(x.shape[2:])
    factors = _factors(scale_factor, x.ndim - 2) if given else (None,) * (x.ndim - 2)
    for axis, (outputs, factor) in enumerate(zip(sizes, factors, strict=True), 2):
        known = isinstance(x.shape[axis], int) and isinstance(outputs, int)
        if antialias and not known:
            raise NotImplementedError("interpolate: antialias along an axis of symbolic size is not implemented")
        first = mode in _FIRST_PIXEL and not antialias
        way = (_Way if known else OpenWay)(x.shape[axis], outputs, factor, align_corners, align_mode == 0, first)
        x = way.antialias(x, axis, mode) if antialias and isinstance(way, _Way) else _resize(x, axis, way, mode)
    return channels_last(x) if last else x


def _factors(scale_factor: float | Sequence[float] | None, rank: int) -> tuple[float | None, ...]:
    if scale_factor is None or isinstance(scale_factor, (int, float)):
        return (scale_factor,) * rank
    return tuple(scale_factor) * (rank if len(scale_factor) == 1 else 1)


def _new_sizes(
    sizes: Sequence[Any], size: int | Sequence[int] | None, scale_factor: float | Sequence[float] | None
) -> tuple[Any, ...]:
    if size is not None:
        return per_axis("interpolate", size, len(sizes))
    if scale_factor is None:
        raise ShapeError("interpolate needs size or scale_factor")
    factors = zip(sizes, _factors(scale_factor, len(sizes)), strict=True)
    return tuple(int(n * f) if isinstance(n, int) else scale_places(n, f) for n, f in factors)


@dataclass(frozen=True)
class _Way:
    """How an axis of ``n`` pixels becomes one of ``outputs``: weights as tables [outputs, n]."""

    n: int
    outputs: int
    factor: float | None
    align_corners: bool
    half_pixel: bool
    first_pixel: bool = False

    @property
    def step(self) -> float:
        """How far the places that neighbouring outputs look at are apart; 0 for one output that looks at the first."""
        if self.first_pixel and self.outputs == 1:
            return 0.0
        if self.align_corners:
            return (self.n - 1) / (self.outputs - 1) if self.outputs > 1 else 0.0
        return self.n / self.outputs if self.factor is None else 1 / self.factor

    def antialias(self, x: Tensor, axis: int, mode: str) -> Tensor:
        """The same against aliasing: the kernel is as wide as what it stands for."""
        reach, kernel = (2.0, _keys(-0.5)) if mode == "bicubic" else (1.0, lambda d: np.maximum(1.0 - np.abs(d), 0.0))
        step = self.step
        wide = max(step, 1.0)
        centres = step * (np.arange(self.outputs) + 0.5)
        first = np.maximum((centres - reach * wide + 0.5).astype(int), 0)[:, None]
        last = np.minimum((centres + reach * wide + 0.5).astype(int), self.n)[:, None]
        places = np.arange(self.n)
        inside = (first <= places) & (places < last)
        weights = np.where(inside, kernel((places + 0.5 - centres[:, None]) / wide), 0.0)
        return mix_pixels(x, axis, weights / weights.sum(1, keepdims=True))

    def nearest(self) -> list[int]:
        """The index that each output takes."""
        shift = 0.5 if self.align_corners else 0.0
        return [min(floor(i * self.step + shift), self.n - 1) for i in range(self.outputs)]

    def area(self) -> np.ndarray:
        """Means over the pixels that an output covers."""
        spans = [(i * self.n // self.outputs, -(-(i + 1) * self.n // self.outputs)) for i in range(self.outputs)]
        return np.array([[float(lo <= j < hi) / (hi - lo) for j in range(self.n)] for lo, hi in spans])

    def linear(self) -> np.ndarray:
        """The two neighbours of the place, in proportion."""
        weights = np.zeros((self.outputs, self.n))
        half_pixel = not self.align_corners and self.half_pixel
        for i in range(self.outputs):
            place = max((i + 0.5) * self.step - 0.5, 0.0) if half_pixel else i * self.step
            low = min(int(place), self.n - 1)
            share = min(place - low, 1.0)
            weights[i, low] += 1 - share
            weights[i, min(low + 1, self.n - 1)] += share
        return weights

    def cubic(self) -> np.ndarray:
        """The four neighbours of the place by cubic convolution; beyond the edges the last pixels go on."""
        i = np.arange(self.outputs)
        places = i * self.step if self.align_corners else (i + 0.5) * self.step - 0.5
        weights = np.zeros((self.outputs, self.n))
        for offset in range(-1, 3):
            at = np.floor(places) + offset
            np.add.at(weights, (i, np.clip(at, 0, self.n - 1).astype(int)), _keys(-0.75)(places - at))
        return weights


def _resize(x: Tensor, axis: int, way: _Way | OpenWay, mode: str) -> Tensor:
    """`x` with the axis resized."""
    if mode == "nearest":
        return _pick(x, axis, way.nearest())
    weights = {"area": way.area, "bicubic": way.cubic, **dict.fromkeys(_LINEAR, way.linear)}.get(mode)
    if weights is None:
        known = ", ".join(("nearest", "area", "bicubic", *_LINEAR))
        raise ValueError(f"interpolate: mode should be one of {known}, got {mode!r}")
    return mix_pixels(x, axis, weights())


def _keys(a: float) -> Callable[[np.ndarray], np.ndarray]:
    """The cubic convolution kernel with slope ``a`` at 1 (Keys, 1981)."""

    def kernel(distance: np.ndarray) -> np.ndarray:
        d = np.abs(distance)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((d - 5) * d + 8) * a * d - 4 * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0.0))

    return kernel


def _pick(x: Tensor, axis: int, indices: Any) -> Tensor:
    places = table(np.array(indices, np.int64)) if isinstance(indices, list) else indices
    found = prim.gather(x, prim.reshape(places, shape=(*places.shape, 1)), axes=(axis,))
    return prim.transpose(found, permutation=(*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def mix_pixels(x: Tensor, axis: int, weights: Any) -> Tensor:
    """Linear combinations along `axis`, one for each row of `weights`, an array or a value of float64."""
    shares = table(weights) if isinstance(weights, np.ndarray) else weights
    if x.dtype != "float64":
        shares = prim.cast(shares, dtype=x.dtype)
    result = prim.dot_general(x, shares, lhs_contract=(axis,), rhs_contract=(1,))
    rest = [*range(axis), result.ndim - 1, *range(axis, result.ndim - 1)]
    return prim.transpose(result, permutation=tuple(rest))


@interpolate.samples
def _(rng: np.random.Generator) -> Iterator[Sample]:
    x = rng.standard_normal((2, 3, 4, 5))
    yield Sample(x, [6, 3])
    yield Sample(x, scale_factor=2)
    yield Sample(x, [7, 9], mode="bilinear")
    yield Sample(x, [7, 3], mode="bilinear", align_corners=True)
    yield Sample(x, scale_factor=[1.5, 2.0], mode="bilinear", align_mode=1)
    yield Sample(rng.standard_normal((2, 3, 5)), [8], mode="linear", data_format="NCW")
    yield Sample(x, [2, 3], mode="area")
    yield Sample(x, [7, 3], mode="bicubic")
    yield Sample(x, [2, 3], mode="bicubic", antialias=True)
