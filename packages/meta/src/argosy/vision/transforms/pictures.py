"""Pictures of Pillow: what its names are called, borders, warps and colours."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.vision.image import pillow
from argosy.vision.transforms import arrays

__all__ = ["colour", "gray", "hue", "pad", "resampling_filter", "warp"]

_RESAMPLING = ("nearest", "bilinear", "bicubic", "box", "lanczos", "hamming")


def resampling_filter(name: str) -> Any:
    """Pillow's constant for an interpolation."""
    if name not in _RESAMPLING:
        raise ValueError(f"interpolation should be one of {_RESAMPLING}, got {name!r}")
    return pillow("Image", "transforms of pictures").Resampling[name.upper()]


def colour(img: Any, fill: Any) -> Any:
    """``fill`` for each band of ``img``."""
    bands = len(img.getbands())
    if isinstance(fill, (int, float)):
        return int(fill) if bands == 1 else (int(fill),) * bands
    if len(fill) != bands:
        raise ValueError(f"fill has {len(fill)} numbers, the picture {bands} channels")
    return tuple(fill)


def pad(img: Any, edges: tuple[int, int, int, int], fill: Any, mode: str) -> Any:
    """``img`` with borders ``(left, top, right, bottom)``."""
    if mode == "constant":
        return pillow("ImageOps", "pad").expand(img, edges, colour(img, fill))
    image = pillow("Image", "pad")
    made = image.fromarray(arrays.pad(np.asarray(img), edges, 0, mode))
    if img.mode == "P":
        made.putpalette(img.getpalette())
    return made


def warp(img: Any, inverse: np.ndarray, size: tuple[int, int], interpolation: str, fill: Any) -> Any:
    """What ``arrays.warp`` gives, made by Pillow."""
    methods = pillow("Image", "transforms of pictures").Transform
    flat = (inverse / inverse[2, 2]).reshape(-1)
    plane = flat[6] == 0 and flat[7] == 0
    method, numbers = (methods.AFFINE, flat[:6]) if plane else (methods.PERSPECTIVE, flat[:8])
    return img.transform(
        size[::-1], method, list(numbers), resampling_filter(interpolation), fillcolor=colour(img, fill)
    )


def gray(img: Any, channels: int) -> Any:
    """The brightness as ``channels`` equal channels."""
    if channels not in (1, 3):
        raise ValueError(f"num_output_channels should be 1 or 3, got {channels}")
    one = img.convert("L")
    return one if channels == 1 else pillow("Image", "to_grayscale").merge("RGB", (one, one, one))


def hue(img: Any, shift: float) -> Any:
    """``img`` with its hues moved by ``shift``, in steps of 1/255 of the circle as Pillow keeps them."""
    if img.mode in ("L", "1", "I", "F"):
        return img
    hues, saturations, values = img.convert("HSV").split()
    moved = np.asarray(hues) + np.int16(shift * 255).astype(np.uint8)
    image = pillow("Image", "adjust_hue")
    return image.merge("HSV", (image.fromarray(moved), saturations, values)).convert(img.mode)
