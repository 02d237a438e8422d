"""Resizing: each axis by itself, as a choice of elements or a product with weights that sizes alone decide."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_infer.onnx.registry import Values, onnx_operator
from argosy_infer.onnx.tensors import phi, prim, shape_of, tensor_of

Array = np.ndarray[Any, Any]


def _coordinates(mode: str, n: int, m: int, scale: float, roi: tuple[float, float]) -> Any:
    """Where in the ``n`` elements of an axis each of the ``m`` of the result lies."""
    at: Array = np.arange(m, dtype=np.float64)
    half: Array = (at + 0.5) / scale - 0.5
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and m > 1):
        return half
    if mode == "pytorch_half_pixel":
        return at * 0.0
    if mode == "half_pixel_symmetric":
        return half + n / 2 * (1 - m / (n * scale))
    if mode == "align_corners":
        return at * 0.0 if m == 1 else at * (n - 1) / (scale * n - 1)
    if mode == "asymmetric":
        return at / scale
    if mode == "tf_half_pixel_for_nn":
        return (at + 0.5) / scale
    if mode == "tf_crop_and_resize":
        start, end = roi[0] * (n - 1), roi[1] * (n - 1)
        return start + at * (end - start) / (m - 1) if m > 1 else at + (start + end) / 2
    raise NotImplementedError(f"Resize with the coordinates {mode!r}")


def _nearest(places: Array, mode: str, n: int) -> Array:
    found = {
        "round_prefer_floor": np.ceil(places - 0.5),
        "round_prefer_ceil": np.floor(places + 0.5),
        "floor": np.floor(places),
        "ceil": np.ceil(places),
    }[mode or "round_prefer_floor"]
    return found.clip(0, n - 1).astype(np.int64)


def _triangle(x: Array) -> Array:
    found: Array = np.clip(1 - np.abs(x), 0, 1)
    return found


def _cubic(a: float) -> Any:
    """The kernel of Keys (1981)."""

    def kernel(x: Array) -> Array:
        x = np.abs(x)
        near, far = ((a + 2) * x - (a + 3)) * x * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0.0))

    return kernel


def _weights(places: Array, n: int, kernel: Any, reach: int, scale: float, exclude_outside: bool) -> Array:
    """[m, n]: what each element adds to each of the result. A ``scale`` below 1 makes the kernel wider."""
    scale = min(scale, 1.0)
    base = np.ceil(places) - 1
    first = int(np.floor(-reach / scale)) + 1
    offsets = np.arange(first, 2 - first)
    values = kernel((offsets[None] - (places - base)[:, None]) * scale)
    at = (base[:, None] + offsets[None]).astype(int)
    if exclude_outside:
        values = np.where((at >= 0) & (at < n), values, 0.0)
    values = values / values.sum(1, keepdims=True)
    weights = np.zeros((len(places), n))
    np.add.at(weights, (np.arange(len(places))[:, None], at.clip(0, n - 1)), values)
    return weights


class _Way:
    """The attributes of a node, for all axes."""

    def __init__(
        self,
        mode: str,
        coordinates: str,
        nearest: str,
        cubic: float,
        outside: bool,
        antialias: bool,
        extrapolation: float,
    ) -> None:
        self.mode, self.coordinates, self.nearest = mode, coordinates, nearest
        self.cubic, self.outside, self.antialias, self.extrapolation = cubic, outside, antialias, extrapolation

    def resize(self, x: Any, axis: int, m: Any, scale: float, roi: tuple[float, float]) -> Any:
        """``x`` with ``m`` elements along an axis."""
        n = shape_of(x)[axis]
        crops = self.coordinates == "tf_crop_and_resize"
        if n == m and scale == 1.0 and not crops:
            return x
        places = _coordinates(self.coordinates, n, m, scale, roi)
        if self.mode == "nearest":
            made = phi.index_select(x, tensor_of(_nearest(places, self.nearest, n)), axis)
        else:
            made = self._mixed(x, axis, places, n, scale)
        outside = (places < 0) | (places > n - 1)
        if not crops or not outside.any():
            return made
        mask = outside.reshape([-1 if i == axis else 1 for i in range(len(shape_of(x)))])
        return prim.select(tensor_of(mask), phi.full_like(made, self.extrapolation), made)

    def _mixed(self, x: Any, axis: int, places: Array, n: int, scale: float) -> Any:
        kernel, reach = (_triangle, 1) if self.mode == "linear" else (_cubic(self.cubic), 2)
        weights = _weights(places, n, kernel, reach, scale if self.antialias else 1.0, self.outside)
        dtype = x.payload.dtype
        wide = x if dtype.kind == "f" else prim.cast(x, dtype="float32")
        matrix = prim.cast(tensor_of(weights.astype(np.float32)), dtype=wide.payload.dtype.name)
        product = prim.dot_general(wide, matrix, lhs_contract=(axis,), rhs_contract=(1,))
        rank = len(shape_of(x))
        order = [i if i < axis else rank - 1 if i == axis else i - 1 for i in range(rank)]
        return prim.cast(prim.transpose(product, permutation=tuple(order)), dtype=dtype.name)


@onnx_operator("Resize", since=11)
def resize(
    x: Any,
    roi: Values | None = None,
    scales: Values | None = None,
    sizes: Values | None = None,
    *,
    antialias: int = 0,
    axes: tuple[int, ...] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Any:
    """``x`` with other sizes, by its nearest elements or by linear or cubic interpolation."""
    way = _Way(
        mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, bool(exclude_outside), bool(antialias),
        extrapolation_value,
    )  # fmt: skip
    along = list(range(len(shape_of(x)))) if axes is None else [axis % len(shape_of(x)) for axis in axes]
    old = [shape_of(x)[axis] for axis in along]
    if scales is not None and scales.size:
        factors = [float(s) for s in scales]
        new = [_scaled(n, s) for n, s in zip(old, factors, strict=True)]
    else:
        assert sizes is not None
        new, factors = _sized(old, list(sizes), keep_aspect_ratio_policy)
    bounds = np.asarray([0.0] * len(along) + [1.0] * len(along)) if roi is None or not roi.size else roi.astype(float)
    for i, (axis, m, factor) in enumerate(zip(along, new, factors, strict=True)):
        x = way.resize(x, axis, m, factor, (float(bounds[i]), float(bounds[i + len(along)])))
    return x


def _scaled(n: Any, factor: float) -> Any:
    return n if factor == 1.0 else int(np.floor(_number(n) * factor))


def _number(n: Any) -> int:
    if not isinstance(n, (int, np.integer)):
        raise NotImplementedError(f"Resize of an axis whose size is open, {n}")
    return int(n)


def _sized(old: list[Any], wanted: list[Any], policy: str) -> tuple[list[Any], list[float]]:
    """New sizes and factors, the same for all axes where their ratio is kept."""
    factors = [1.0 if m == n else _number(m) / _number(n) for n, m in zip(old, wanted, strict=True)]
    if policy == "stretch":
        return [n if f == 1.0 else int(m) for n, m, f in zip(old, wanted, factors, strict=True)], factors
    factor = (min if policy == "not_larger" else max)(factors)
    return [int(np.floor(factor * _number(n) + 0.5)) for n in old], [factor] * len(old)


@onnx_operator("Resize", since=10)
@onnx_operator("Upsample", since=7)
def upsample(x: Any, scales: Values, *, mode: str = "nearest") -> Any:
    """As :func:`resize`, by factors from the corner."""
    return resize(
        x, scales=np.asarray(scales), mode=mode, nearest_mode="floor", coordinate_transformation_mode="asymmetric"
    )
