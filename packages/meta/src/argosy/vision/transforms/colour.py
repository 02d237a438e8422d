"""Transforms of values: conversion, normalisation, colours, erasure."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.vision.image import host
from argosy.vision.transforms import functional as F
from argosy.vision.transforms.base import BaseTransform
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "BrightnessTransform", "ColorJitter", "ContrastTransform", "Grayscale", "HueTransform", "Normalize",
    "RandomErasing", "SaturationTransform", "ToTensor", "Transpose",
]  # fmt: skip

Keys = Sequence[str] | None


class ToTensor(BaseTransform):
    """A tensor ``[C, H, W]`` or ``[H, W, C]``; see :func:`functional.to_tensor`."""

    def __init__(self, data_format: str = "CHW", keys: Keys = None) -> None:
        super().__init__(keys)
        self.data_format = data_format

    def _apply_image(self, img: Any) -> Any:
        return F.to_tensor(img, self.data_format)


class Normalize(BaseTransform):
    """``(img - mean) / std`` by channel."""

    def __init__(
        self, mean: Any = 0.0, std: Any = 1.0, data_format: str = "CHW", to_rgb: bool = False, keys: Keys = None
    ) -> None:
        super().__init__(keys)
        self.mean, self.std = ([v] * 3 if isinstance(v, (int, float)) else v for v in (mean, std))
        self.data_format, self.to_rgb = data_format, to_rgb

    def _apply_image(self, img: Any) -> Any:
        return F.normalize(img, self.mean, self.std, self.data_format, self.to_rgb)


class Transpose(BaseTransform):
    """An array with its axes in another order; ``[H, W]`` counts as ``[H, W, 1]``."""

    def __init__(self, order: Sequence[int] = (2, 0, 1), keys: Keys = None) -> None:
        super().__init__(keys)
        self.order = order

    def _apply_image(self, img: Any) -> Any:
        if isinstance(img, Tensor):
            return img.transpose(list(self.order))
        values = np.asarray(img)
        return (values[..., None] if values.ndim == 2 else values).transpose(self.order)


def _interval(name: str, value: Any, middle: float = 1.0, least: float = 0.0, most: float = math.inf) -> Any:
    """From what factors are drawn, or None where nothing changes."""
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"{name} should not be negative, got {value}")
        low, high = max(middle - value, least), middle + value
    else:
        low, high = value
    if not least <= low <= high <= most:
        raise ValueError(f"{name} should lie within {least} and {most}, got {value!r}")
    return None if low == high == middle else (low, high)


class _ColourAdjustment(BaseTransform):
    """A factor drawn about 1 (hue: about 0)."""

    name = ""
    bounds: tuple[float, float, float] = (1.0, 0.0, math.inf)

    def __init__(self, value: float, keys: Keys = None) -> None:
        super().__init__(keys)
        self.value = _interval(self.name, value, *self.bounds)

    def _apply_image(self, img: Any) -> Any:
        if self.value is None:
            return img
        return getattr(F, f"adjust_{self.name}")(img, random.uniform(*self.value))


class BrightnessTransform(_ColourAdjustment):
    """Brightness times a factor from ``1 - value`` to ``1 + value``."""

    name = "brightness"


class ContrastTransform(_ColourAdjustment):
    """Contrast times a factor from ``1 - value`` to ``1 + value``."""

    name = "contrast"


class SaturationTransform(_ColourAdjustment):
    """Saturation times a factor from ``1 - value`` to ``1 + value``."""

    name = "saturation"


class HueTransform(_ColourAdjustment):
    """Hues moved by up to ``value`` of the circle, at most 0.5."""

    name = "hue"
    bounds = (0.0, -0.5, 0.5)


class ColorJitter(BaseTransform):
    """Brightness, contrast, saturation and hue changed at random, in random order."""

    def __init__(
        self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0, keys: Keys = None
    ) -> None:
        super().__init__(keys)
        self.brightness, self.contrast, self.saturation, self.hue = brightness, contrast, saturation, hue
        self._steps = [
            BrightnessTransform(brightness), ContrastTransform(contrast), SaturationTransform(saturation),
            HueTransform(hue),
        ]  # fmt: skip

    def _get_params(self, inputs: Any) -> Any:
        return random.sample(self._steps, len(self._steps))

    def _apply_image(self, img: Any) -> Any:
        for step in self.params:
            img = step(img)
        return img


class Grayscale(BaseTransform):
    """The brightness, as one channel or as three equal ones."""

    def __init__(self, num_output_channels: int = 1, keys: Keys = None) -> None:
        super().__init__(keys)
        self.num_output_channels = num_output_channels

    def _apply_image(self, img: Any) -> Any:
        return F.to_grayscale(img, self.num_output_channels)


class RandomErasing(BaseTransform):
    """With probability ``prob``, a rectangle of ``scale`` of the area and of a ``ratio`` set to ``value``.

    value: a number, one for each channel, or "random" for normal noise.
    """

    def __init__(
        self,
        prob: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
        keys: Keys = None,
    ) -> None:
        super().__init__(keys)
        if not 0 <= prob <= 1:
            raise ValueError(f"prob should be from 0 to 1, got {prob}")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            raise ValueError(f"scale and ratio should be (least, most), got {scale!r} and {ratio!r}")
        if isinstance(value, str) and value != "random":
            raise ValueError(f"value should be numbers or 'random', got {value!r}")
        self.prob, self.scale, self.ratio, self.value, self.inplace = prob, scale, ratio, value, inplace

    def _get_params(self, inputs: Any) -> Any:
        if random.random() >= self.prob:
            return None
        height, width = F.size_of(inputs[0])
        for _ in range(10):
            area = random.uniform(*self.scale) * height * width
            ratio = math.exp(random.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            rows, columns = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < rows < height and 0 < columns < width:
                return random.randint(0, height - rows), random.randint(0, width - columns), rows, columns
        return None

    def _apply_image(self, img: Any) -> Any:
        if self.params is None:
            return img
        rows, columns = self.params[2:]
        first = isinstance(img, Tensor)
        channels = (
            len(img.getbands()) if hasattr(img, "getbands") else 1 if img.ndim == 2 else img.shape[-3 if first else 2]
        )
        shape = (channels, rows, columns) if first else (rows, columns, channels)
        if self.value == "random" if isinstance(self.value, str) else False:
            filling = np.random.normal(size=shape)
        else:
            filling = np.broadcast_to(np.reshape(self.value, (-1, 1, 1) if first else -1), shape)
        if not first and (np.asarray(img).ndim == 2):
            filling = filling[..., 0]
        like = host(img).dtype
        made = np.ascontiguousarray(filling.astype(like))
        i, j = self.params[:2]
        return F.erase(img, i, j, rows, columns, Tensor(made) if first else made, self.inplace)
