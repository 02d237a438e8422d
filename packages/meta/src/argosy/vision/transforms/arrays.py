"""Pictures as arrays ``[H, W, C]`` (or ``[H, W]``): resampling, borders and colours, by numpy.

Integer pictures are computed in float64 and rounded; their range is 0 to 255, that of floating pictures 0 to 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["blend", "erase", "gray", "hue", "luma", "pad", "resize", "saturation", "warp"]

_LUMA = np.array([0.2989, 0.587, 0.114])
_MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}


def _store(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """``values`` in the dtype of ``like``: rounded and limited where that is an integer."""
    if like.dtype.kind not in "iu":
        return values.astype(like.dtype, copy=False)
    limits = np.iinfo(like.dtype)
    return np.clip(np.rint(values), limits.min, limits.max).astype(like.dtype)


def _widen(img: np.ndarray) -> np.ndarray:
    return img.astype(np.float32 if img.dtype == np.float32 else np.float64, copy=False)


def resize(img: np.ndarray, size: tuple[int, int], interpolation: str) -> np.ndarray:
    """``img`` at another size ``(H, W)``, corners aligned by pixel areas."""
    if interpolation not in _WEIGHTS:
        raise ValueError(f"interpolation of arrays should be one of {sorted(_WEIGHTS)}, got {interpolation!r}")
    values = _widen(img)
    for axis, count in enumerate(size):
        if values.shape[axis] != count:
            indices, weights = _WEIGHTS[interpolation](count, values.shape[axis])
            shape = [1] * values.ndim
            shape[axis] = -1
            parts = (np.take(values, i, axis) * w.reshape(shape) for i, w in zip(indices, weights, strict=True))
            values = sum(parts).astype(values.dtype)
    return _store(values, img)


def _nearest(count: int, size: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    at = np.minimum(np.arange(count) * (size / count), size - 1).astype(np.int64)
    return [at], [np.ones(count)]


def _linear_weights(count: int, size: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    at = np.clip((np.arange(count) + 0.5) * (size / count) - 0.5, 0, size - 1)
    low = at.astype(np.int64)
    part = at - low
    return [low, np.minimum(low + 1, size - 1)], [1 - part, part]


def _cubic(count: int, size: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    at = (np.arange(count) + 0.5) * (size / count) - 0.5
    low = np.floor(at).astype(np.int64)
    a = -0.75  # Keys (1981), with the constant of image libraries
    steps = [np.abs(at - (low + k)) for k in (-1, 0, 1, 2)]
    weights = [
        np.where(t <= 1, ((a + 2) * t - (a + 3)) * t * t + 1, ((a * t - 5 * a) * t + 8 * a) * t - 4 * a) for t in steps
    ]
    return [np.clip(low + k, 0, size - 1) for k in (-1, 0, 1, 2)], weights


_WEIGHTS = {"nearest": _nearest, "bilinear": _linear_weights, "bicubic": _cubic}


def pad(img: np.ndarray, edges: tuple[int, int, int, int], fill: Any, mode: str) -> np.ndarray:
    """``img`` with borders ``(left, top, right, bottom)``; ``fill`` is a number or one for each channel."""
    if mode not in _MODES:
        raise ValueError(f"padding_mode should be one of {sorted(_MODES)}, got {mode!r}")
    left, top, right, bottom = edges
    widths = [(top, bottom), (left, right)] + [(0, 0)] * (img.ndim - 2)
    if mode != "constant":
        return np.pad(img, widths, mode=_MODES[mode])  # type: ignore[call-overload]
    made = np.empty([n + sum(w) for n, w in zip(img.shape, widths, strict=True)], img.dtype)
    made[...] = fill
    made[top : top + img.shape[0], left : left + img.shape[1]] = img
    return made


def warp(img: np.ndarray, inverse: np.ndarray, size: tuple[int, int], interpolation: str, fill: Any) -> np.ndarray:
    """The picture of size ``(H, W)`` whose pixel centre ``p`` shows ``img`` at ``inverse @ p``.

    inverse: ``[3, 3]``, of homogeneous coordinates (x, y, 1). What lies outside of ``img`` is ``fill``.
    """
    height, width = size
    x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    u, v, w = np.tensordot(inverse, np.stack([x, y, np.ones_like(x)]), 1)
    u, v = u / w, v / w
    inside = (u >= 0) & (u < img.shape[1]) & (v >= 0) & (v < img.shape[0])
    made = np.empty((*size, *img.shape[2:]), img.dtype)
    made[...] = fill
    if interpolation == "nearest":
        made[inside] = img[np.floor(v[inside]).astype(np.int64), np.floor(u[inside]).astype(np.int64)]
        return made
    if interpolation != "bilinear":
        raise ValueError(f"interpolation of warped arrays should be nearest or bilinear, got {interpolation!r}")
    made[inside] = _store(_sample(_widen(img), u[inside] - 0.5, v[inside] - 0.5), img)
    return made


def _sample(img: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x, y = np.clip(x, 0, img.shape[1] - 1), np.clip(y, 0, img.shape[0] - 1)
    left, top = x.astype(np.int64), y.astype(np.int64)
    right, bottom = np.minimum(left + 1, img.shape[1] - 1), np.minimum(top + 1, img.shape[0] - 1)
    shape = (-1,) + (1,) * (img.ndim - 2)
    p, q = (x - left).reshape(shape), (y - top).reshape(shape)
    above = img[top, left] * (1 - p) + img[top, right] * p
    below = img[bottom, left] * (1 - p) + img[bottom, right] * p
    sampled: np.ndarray = above * (1 - q) + below * q
    return sampled


# Colours


def blend(img: np.ndarray, other: Any, factor: float) -> np.ndarray:
    """``other + factor * (img - other)``, within the range of pictures."""
    mixed = other + factor * (_widen(img) - other)
    return np.clip(mixed, 0, 255 if img.dtype.kind in "iu" else 1).astype(img.dtype)


def luma(img: np.ndarray) -> np.ndarray:
    """The brightness ``[H, W]`` of a picture of one or three channels (ITU-R 601), in the picture's precision."""
    if img.ndim == 2 or img.shape[2] == 1:
        return img.reshape(img.shape[:2])
    return _store(_widen(img)[..., :3] @ _LUMA, img)


def gray(img: np.ndarray, channels: int) -> np.ndarray:
    """The brightness as ``channels`` equal channels."""
    if channels not in (1, 3):
        raise ValueError(f"num_output_channels should be 1 or 3, got {channels}")
    return np.repeat(luma(img)[..., None], channels, 2)


def saturation(img: np.ndarray, factor: float) -> np.ndarray:
    """``img`` with its colours stronger or weaker."""
    return blend(img, _widen(luma(img))[..., None], factor)


def hue(img: np.ndarray, shift: float) -> np.ndarray:
    """``img`` with its hues moved by ``shift``, a part of the circle."""
    if img.ndim == 2 or img.shape[2] == 1:
        return img
    scale = 255.0 if img.dtype.kind in "iu" else 1.0
    rgb = _widen(img) / scale
    top, low = rgb.max(-1), rgb.min(-1)
    spread = np.where(top > low, top - low, 1)
    red, green, blue = ((top - rgb[..., i]) / spread for i in range(3))
    angle = np.where(rgb[..., 2] == top, 4 + green - red, 0.0)
    angle = np.where(rgb[..., 1] == top, 2 + red - blue, angle)
    angle = np.where(rgb[..., 0] == top, blue - green, angle) / 6
    angle = np.where(top > low, angle, 0)
    turned = ((angle + shift) % 1.0)[..., None] * 6
    share = np.clip(np.abs((turned + np.array([0.0, 4.0, 2.0])) % 6 - 3) - 1, 0, 1)
    return _store((low[..., None] + (top - low)[..., None] * share) * scale, img)


def erase(img: np.ndarray, i: int, j: int, h: int, w: int, v: Any, inplace: bool) -> np.ndarray:
    """``img`` with the rectangle at ``(i, j)`` of size ``(h, w)`` set to ``v``."""
    made = img if inplace else img.copy()
    made[i : i + h, j : j + w] = v
    return made
