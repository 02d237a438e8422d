"""Transforms of place: size, cut, mirror, turn. Draws come from ``random``, so that ``random.seed`` fixes them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.argument_checks import check_choice, validate_call
from argosy.vision.transforms import functional as F
from argosy.vision.transforms.base import BaseTransform

__all__ = [
    "CenterCrop", "Pad", "RandomAffine", "RandomCrop", "RandomHorizontalFlip", "RandomPerspective",
    "RandomResizedCrop", "RandomRotation", "RandomVerticalFlip", "Resize",
]  # fmt: skip

Keys = Sequence[str] | None


class Resize(BaseTransform):
    """To ``size``: (height, width), or a number for the shorter side."""

    def __init__(self, size: Any, interpolation: str = "bilinear", keys: Keys = None) -> None:
        super().__init__(keys)
        if not isinstance(size, int) and len(size) != 1:
            F._pair("size", size)
        self.size, self.interpolation = size, interpolation

    def _apply_image(self, img: Any) -> Any:
        return F.resize(img, self.size, self.interpolation)


class CenterCrop(BaseTransform):
    """The middle, of ``size``."""

    def __init__(self, size: Any, keys: Keys = None) -> None:
        super().__init__(keys)
        self.size = F._pair("size", size)

    def _apply_image(self, img: Any) -> Any:
        return F.center_crop(img, self.size)


class RandomResizedCrop(BaseTransform):
    """A rectangle of ``scale`` of the area and of a ``ratio`` of width to height, resized to ``size``."""

    def __init__(
        self,
        size: Any,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4, 4.0 / 3),
        interpolation: str = "bilinear",
        keys: Keys = None,
    ) -> None:
        super().__init__(keys)
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            raise ValueError(f"scale and ratio should be (least, most), got {scale!r} and {ratio!r}")
        self.size = F._pair("size", size)
        self.scale, self.ratio, self.interpolation = scale, ratio, interpolation

    def _draw_box(self, height: int, width: int) -> tuple[int, int, int, int]:
        for _ in range(10):
            area = random.uniform(*self.scale) * height * width
            ratio = math.exp(random.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            columns, rows = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < columns <= width and 0 < rows <= height:
                return random.randint(0, height - rows), random.randint(0, width - columns), rows, columns
        rows, columns = height, width  # the middle, as near to the ratios as the picture lets it be
        if width / height < self.ratio[0]:
            rows = min(height, round(width / self.ratio[0]))
        elif width / height > self.ratio[1]:
            columns = min(width, round(height * self.ratio[1]))
        return (height - rows) // 2, (width - columns) // 2, rows, columns

    def _get_params(self, inputs: Any) -> Any:
        return self._draw_box(*F.size_of(inputs[0]))

    def _apply_image(self, img: Any) -> Any:
        return F.resize(F.crop(img, *self.params), self.size, self.interpolation)


class RandomCrop(BaseTransform):
    """A rectangle of ``size``, after padding; ``pad_if_needed`` widens what is too small."""

    def __init__(
        self,
        size: Any,
        padding: Any = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
        keys: Keys = None,
    ) -> None:
        super().__init__(keys)
        self.size = F._pair("size", size)
        self.padding, self.pad_if_needed, self.fill, self.padding_mode = padding, pad_if_needed, fill, padding_mode

    def _pad(self, img: Any) -> Any:
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        height, width = F.size_of(img)
        if self.pad_if_needed and width < self.size[1]:
            img = F.pad(img, (self.size[1] - width, 0), self.fill, self.padding_mode)
        if self.pad_if_needed and height < self.size[0]:
            img = F.pad(img, (0, self.size[0] - height), self.fill, self.padding_mode)
        return img

    def _get_params(self, inputs: Any) -> Any:
        height, width = F.size_of(self._pad(inputs[0]))
        rows, columns = self.size
        if rows > height or columns > width:
            raise ValueError(f"RandomCrop: size {self.size} is larger than the picture, {(height, width)}")
        return random.randint(0, height - rows), random.randint(0, width - columns), rows, columns

    def _apply_image(self, img: Any) -> Any:
        return F.crop(self._pad(img), *self.params)


class RandomHorizontalFlip(BaseTransform):
    """With probability ``prob``, left and right exchanged."""

    def __init__(self, prob: float = 0.5, keys: Keys = None) -> None:
        super().__init__(keys)
        self.prob = _probability(prob)

    def _get_params(self, inputs: Any) -> Any:
        return random.random() < self.prob

    def _apply_image(self, img: Any) -> Any:
        return F.hflip(img) if self.params else img


class RandomVerticalFlip(BaseTransform):
    """With probability ``prob``, upside down."""

    def __init__(self, prob: float = 0.5, keys: Keys = None) -> None:
        super().__init__(keys)
        self.prob = _probability(prob)

    def _get_params(self, inputs: Any) -> Any:
        return random.random() < self.prob

    def _apply_image(self, img: Any) -> Any:
        return F.vflip(img) if self.params else img


class Pad(BaseTransform):
    """With borders: a number, ``(x, y)`` or ``(left, top, right, bottom)``."""

    def __init__(self, padding: Any, fill: Any = 0, padding_mode: str = "constant", keys: Keys = None) -> None:
        super().__init__(keys)
        check_choice("Pad", "padding_mode", padding_mode, ("constant", "edge", "reflect", "symmetric"))
        self.padding, self.fill, self.padding_mode = F.edges_of(padding), fill, padding_mode

    def _apply_image(self, img: Any) -> Any:
        return F.pad(img, self.padding, self.fill, self.padding_mode)


class RandomRotation(BaseTransform):
    """Turned by an angle of ``degrees``: (least, most), or a number for both directions."""

    def __init__(
        self,
        degrees: Any,
        interpolation: str = "nearest",
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Any = 0,
        keys: Keys = None,
    ) -> None:
        super().__init__(keys)
        self.degrees = _range("degrees", degrees)
        self.interpolation, self.expand, self.center, self.fill = interpolation, expand, center, fill

    def _get_params(self, inputs: Any) -> Any:
        return random.uniform(*self.degrees)

    def _apply_image(self, img: Any) -> Any:
        return F.rotate(img, self.params, self.interpolation, self.expand, self.center, self.fill)


class RandomAffine(BaseTransform):
    """Turned by ``degrees``, moved by up to ``translate`` of the size, scaled, sheared by degrees."""

    def __init__(
        self,
        degrees: Any,
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: Any = None,
        interpolation: str = "nearest",
        fill: Any = 0,
        center: Sequence[float] | None = None,
        keys: Keys = None,
    ) -> None:
        super().__init__(keys)
        self.degrees = _range("degrees", degrees)
        if translate is not None and not (len(translate) == 2 and all(0 <= t <= 1 for t in translate)):
            raise ValueError(f"translate should be two parts of the size from 0 to 1, got {translate!r}")
        if scale is not None and not (len(scale) == 2 and all(s > 0 for s in scale)):
            raise ValueError(f"scale should be (least, most), positive, got {scale!r}")
        self.translate, self.scale, self.center = translate, scale, center
        self.shear: Any = None if shear is None else shear if np.size(shear) == 4 else _range("shear", shear)
        self.interpolation, self.fill = interpolation, fill

    def _get_params(self, inputs: Any) -> Any:
        height, width = F.size_of(inputs[0])
        angle = random.uniform(*self.degrees)
        across, down = self.translate or (0, 0)
        moved = [round(random.uniform(-part * n, part * n)) for part, n in ((across, width), (down, height))]
        scale = 1.0 if self.scale is None else random.uniform(*self.scale)
        sheared = [0.0, 0.0]
        if self.shear is not None:
            sheared[0] = random.uniform(self.shear[0], self.shear[1])
            if len(self.shear) == 4:
                sheared[1] = random.uniform(self.shear[2], self.shear[3])
        return angle, moved, scale, sheared

    def _apply_image(self, img: Any) -> Any:
        angle, moved, scale, sheared = self.params
        return F.affine(img, angle, moved, scale, sheared, self.interpolation, self.fill, self.center)


class RandomPerspective(BaseTransform):
    """With probability ``prob``, each corner moved inwards by up to ``distortion_scale`` of half of the size."""

    def __init__(
        self,
        prob: float = 0.5,
        distortion_scale: float = 0.5,
        interpolation: str = "nearest",
        fill: Any = 0,
        keys: Keys = None,
    ) -> None:
        super().__init__(keys)
        self.prob = _probability(prob)
        if not 0 <= distortion_scale <= 1:
            raise ValueError(f"distortion_scale should be from 0 to 1, got {distortion_scale}")
        self.distortion_scale, self.interpolation, self.fill = distortion_scale, interpolation, fill

    @validate_call
    def get_params(self, width: int, height: int, distortion_scale: float) -> tuple[list[list[int]], list[list[int]]]:
        """The corners [x, y] of a picture, from the upper left one clockwise, and where they are drawn to."""
        dx, dy = (int(distortion_scale * (n // 2)) for n in (width, height))
        right, bottom = width - 1, height - 1
        corners = ((0, 0), (right, 0), (right, bottom), (0, bottom))

        def move_corner(x: int, y: int) -> list[int]:
            return [abs(x - random.randint(0, dx)), abs(y - random.randint(0, dy))]

        return [list(c) for c in corners], [move_corner(x, y) for x, y in corners]

    def _get_params(self, inputs: Any) -> Any:
        if random.random() >= self.prob:
            return None
        height, width = F.size_of(inputs[0])
        return self.get_params(width, height, self.distortion_scale)

    def _apply_image(self, img: Any) -> Any:
        if self.params is None:
            return img
        start, end = self.params
        return F.perspective(img, start, end, self.interpolation, self.fill)


def _probability(prob: float) -> float:
    if not 0 <= prob <= 1:
        raise ValueError(f"prob should be from 0 to 1, got {prob}")
    return prob


def _range(name: str, given: Any) -> tuple[float, float]:
    if isinstance(given, (int, float)):
        if given < 0:
            raise ValueError(f"{name} should not be negative, or (least, most); got {given}")
        return -given, given
    if len(given) != 2 or not all(isinstance(end, (int, float)) for end in given):
        raise ValueError(f"{name} should be a number or (least, most), got {given!r}")
    return given[0], given[1]
