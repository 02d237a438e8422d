"""What transforms do, as functions of one picture: of Pillow, an array ``[H, W, C]`` or a tensor ``[..., C, H, W]``.

Each gives the kind of picture that it got. Tensors are resampled on the host and carry no gradient afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from argosy.argument_checks import validate_call
from argosy.vision.image import host, is_picture, pillow
from argosy.vision.transforms import arrays, pictures
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "adjust_brightness", "adjust_contrast", "adjust_hue", "adjust_saturation", "affine", "center_crop", "crop", "erase",
    "hflip", "normalize", "pad", "perspective", "resize", "rotate", "to_grayscale", "to_tensor", "vflip",
]  # fmt: skip

Picture: TypeAlias = Any
"""A picture of Pillow, an array or a tensor; what is made of one is of its kind."""


# What a user's own transforms ask of a picture, by the names they know from Paddle.
_is_pil_image = is_picture


def _is_numpy_image(img: Any) -> bool:
    return isinstance(img, np.ndarray) and img.ndim in (2, 3)


def _is_tensor_image(img: Any) -> bool:
    return isinstance(img, Tensor)


def size_of(img: Any) -> tuple[int, int]:
    """Height and width."""
    if is_picture(img):
        return int(img.size[1]), int(img.size[0])
    _check(img)
    height, width = img.shape[-2:] if isinstance(img, Tensor) else img.shape[:2]
    return int(height), int(width)


def _check(img: Any) -> None:
    if not isinstance(img, (Tensor, np.ndarray)) or not 2 <= img.ndim <= (4 if isinstance(img, Tensor) else 3):
        shown = f"{type(img).__name__} of shape {list(img.shape)}" if hasattr(img, "shape") else repr(img)[:60]
        raise TypeError(f"img should be a picture of Pillow, an array [H, W, C] or a tensor [C, H, W], got {shown}")


def _apply_to_array(img: Any, convert: Callable[[np.ndarray], np.ndarray]) -> Any:
    """``convert`` of arrays ``[H, W, C]``, of an array or of a tensor with its channels first."""
    _check(img)
    if not isinstance(img, Tensor):
        return convert(img)
    values = host(img)
    if values.ndim == 2:
        return Tensor(np.ascontiguousarray(convert(values)))
    planes = values.reshape(-1, *values.shape[-2:]).transpose(1, 2, 0)
    made = np.moveaxis(convert(planes), 2, 0)
    return Tensor(np.ascontiguousarray(made.reshape(*values.shape[:-3], -1, *made.shape[-2:])))


def _colours(img: Any, convert: Callable[[np.ndarray], np.ndarray]) -> Any:
    """The same for each picture of a batch, since channels are mixed."""
    if isinstance(img, Tensor) and img.ndim == 4:
        return Tensor(np.stack([host(_apply_to_array(Tensor(one), convert)) for one in host(img)]))
    return _apply_to_array(img, convert)


def _pair(name: str, size: Any) -> tuple[int, int]:
    listed = () if isinstance(size, str) or not hasattr(size, "__len__") else tuple(size)
    both = (size, size) if isinstance(size, int) else listed
    if len(both) != 2:
        raise ValueError(f"{name} should be a number or a pair (height, width), got {size!r}")
    return int(both[0]), int(both[1])


@validate_call
def to_tensor(pic: Any, data_format: str = "CHW") -> Tensor:
    """A picture as a tensor ``[C, H, W]`` ("HWC": ``[H, W, C]``); integers of 8 bits become floats from 0 to 1."""
    if data_format.upper() not in ("CHW", "HWC"):
        raise ValueError(f"data_format should be CHW or HWC, got {data_format!r}")
    if not is_picture(pic):
        if isinstance(pic, Tensor):
            return pic
        _check(pic)
    dtype = default_dtype().numpy
    values = np.array(pic, np.uint8) * 255 if getattr(pic, "mode", "") == "1" else np.array(pic)
    if values.ndim == 2:
        values = values[..., None]
    if values.dtype == np.uint8:
        values = values.astype(dtype) / np.asarray(255, dtype)
    elif is_picture(pic):
        values = values.astype(dtype if values.dtype.kind == "f" else values.dtype)
    return Tensor(np.ascontiguousarray(values.transpose(2, 0, 1) if data_format.upper() == "CHW" else values))


@validate_call
def resize(img: Picture, size: Any, interpolation: str = "bilinear") -> Picture:
    """``img`` at ``size``: (height, width), or a number for the shorter side."""
    height, width = size_of(img)
    if isinstance(size, int) or (not isinstance(size, str) and hasattr(size, "__len__") and len(size) == 1):
        short = size if isinstance(size, int) else size[0]
        if min(height, width) == short:
            return img
        size = (short, int(short * width / height)) if height <= width else (int(short * height / width), short)
    goal = _pair("size", size)
    if min(goal) < 1:
        raise ValueError(f"size should be positive, got {goal}")
    if is_picture(img):
        return img.resize(goal[::-1], pictures.resampling_filter(interpolation))
    return _apply_to_array(img, lambda a: arrays.resize(a, goal, interpolation))


def edges_of(padding: Any) -> tuple[int, int, int, int]:
    """``padding`` as left, top, right, bottom."""
    given = (padding,) if isinstance(padding, int) else tuple(padding)
    if len(given) not in (1, 2, 4) or not all(isinstance(n, int) for n in given):
        raise ValueError(f"padding should be a number, (x, y) or (left, top, right, bottom), got {padding!r}")
    left, top, right, bottom = (given * 4)[:4]
    return left, top, right, bottom


@validate_call
def pad(img: Picture, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Picture:
    """``img`` with borders: a number, ``(x, y)`` or ``(left, top, right, bottom)``."""
    edges = edges_of(padding)
    if is_picture(img):
        return pictures.pad(img, edges, fill, padding_mode)
    return _apply_to_array(img, lambda a: arrays.pad(a, edges, fill, padding_mode))


@validate_call
def crop(img: Picture, top: int, left: int, height: int, width: int) -> Picture:
    """The rectangle of ``img`` whose upper left corner is ``(top, left)``."""
    if is_picture(img):
        return img.crop((left, top, left + width, top + height))
    _check(img)
    rows, columns = slice(top, top + height), slice(left, left + width)
    return img[..., rows, columns] if isinstance(img, Tensor) else img[rows, columns]


@validate_call
def center_crop(img: Picture, output_size: Any) -> Picture:
    """The middle of ``img``, of size ``output_size``."""
    height, width = size_of(img)
    rows, columns = _pair("output_size", output_size)
    return crop(img, round((height - rows) / 2.0), round((width - columns) / 2.0), rows, columns)


@validate_call
def hflip(img: Picture) -> Picture:
    """``img`` with left and right exchanged."""
    if is_picture(img):
        return img.transpose(pillow("Image", "hflip").Transpose.FLIP_LEFT_RIGHT)
    _check(img)
    return img.flip([-1]) if isinstance(img, Tensor) else img[:, ::-1]


@validate_call
def vflip(img: Picture) -> Picture:
    """``img`` upside down."""
    if is_picture(img):
        return img.transpose(pillow("Image", "vflip").Transpose.FLIP_TOP_BOTTOM)
    _check(img)
    return img.flip([-2]) if isinstance(img, Tensor) else img[::-1]


# Geometry


def _warp(img: Any, inverse: np.ndarray, interpolation: str, fill: Any, size: tuple[int, int] | None = None) -> Any:
    size = size or size_of(img)
    if is_picture(img):
        return pictures.warp(img, inverse, size, interpolation, fill)
    return _apply_to_array(img, lambda a: arrays.warp(a, inverse, size, interpolation, fill))


def _shift(x: float, y: float) -> np.ndarray:
    return np.array([[1.0, 0, x], [0, 1, y], [0, 0, 1]])


@validate_call
def affine(
    img: Picture,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Any,
    interpolation: str = "nearest",
    fill: Any = 0,
    center: Sequence[float] | None = None,
) -> Picture:
    """``img`` sheared, scaled, turned clockwise by ``angle`` degrees about ``center`` (x, y), and moved."""
    if len(translate) != 2:
        raise ValueError(f"translate should be (x, y), got {translate!r}")
    if scale <= 0:
        raise ValueError(f"scale should be positive, got {scale}")
    shears = (shear, 0.0) if isinstance(shear, (int, float)) else (tuple(shear) * 2)[:2] if len(shear) == 1 else shear
    height, width = size_of(img)
    x, y = (width * 0.5, height * 0.5) if center is None else center
    forward = _shift(x + translate[0], y + translate[1]) @ _turn(angle, scale, *shears) @ _shift(-x, -y)
    return _warp(img, np.linalg.inv(forward), interpolation, fill)


def _turn(angle: float, scale: float, shear_x: float, shear_y: float) -> np.ndarray:
    turn, along, across = (math.radians(d) for d in (angle, shear_x, shear_y))
    a = math.cos(turn - across) / math.cos(across)
    b = -math.cos(turn - across) * math.tan(along) / math.cos(across) - math.sin(turn)
    c = math.sin(turn - across) / math.cos(across)
    d = -math.sin(turn - across) * math.tan(along) / math.cos(across) + math.cos(turn)
    return np.array([[a * scale, b * scale, 0], [c * scale, d * scale, 0], [0, 0, 1]])


@validate_call
def rotate(
    img: Picture,
    angle: float,
    interpolation: str = "nearest",
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Any = 0,
) -> Picture:
    """``img`` turned counter-clockwise by ``angle`` degrees; ``expand`` makes room for all of it."""
    if is_picture(img):
        colour = pictures.colour(img, fill)
        resample = pictures.resampling_filter(interpolation)
        return img.rotate(angle, resample, expand, None if center is None else tuple(center), fillcolor=colour)
    height, width = size_of(img)
    x, y = (width / 2.0, height / 2.0) if center is None else center
    turn = _turn(-angle, 1.0, 0.0, 0.0)
    size = (height, width)
    inverse = _shift(x, y) @ np.linalg.inv(turn) @ _shift(-x, -y)
    if expand:
        forward = np.linalg.inv(inverse)
        corners = forward @ np.array([[0, width, width, 0], [0, 0, height, height], [1.0, 1, 1, 1]])
        low, high = corners[:2].min(1), corners[:2].max(1)
        size = (
            math.ceil(high[1] - 1e-6) - math.floor(low[1] + 1e-6),
            math.ceil(high[0] - 1e-6) - math.floor(low[0] + 1e-6),
        )
        middle = (low + high) / 2
        inverse = inverse @ _shift(middle[0] - size[1] / 2, middle[1] - size[0] / 2)
    return _warp(img, inverse, interpolation, fill, size)


@validate_call
def perspective(
    img: Picture, startpoints: Any, endpoints: Any, interpolation: str = "nearest", fill: Any = 0
) -> Picture:
    """``img`` seen so that the four ``startpoints`` (x, y) come to lie at ``endpoints``."""
    rows, goals = [], []
    for (x, y), (u, v) in zip(endpoints, startpoints, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        goals += [u, v]
    found = np.linalg.lstsq(np.array(rows, np.float64), np.array(goals, np.float64), rcond=None)[0]
    return _warp(img, np.append(found, 1.0).reshape(3, 3), interpolation, fill)


# Colours


@validate_call
def adjust_brightness(img: Picture, brightness_factor: float) -> Picture:
    """0: black, 1: as it is."""
    if is_picture(img):
        return pillow("ImageEnhance", "adjust_brightness").Brightness(img).enhance(brightness_factor)
    return _colours(img, lambda a: arrays.blend(a, 0.0, brightness_factor))


@validate_call
def adjust_contrast(img: Picture, contrast_factor: float) -> Picture:
    """0: the mean brightness everywhere, 1: as it is."""
    if is_picture(img):
        return pillow("ImageEnhance", "adjust_contrast").Contrast(img).enhance(contrast_factor)
    return _colours(img, lambda a: arrays.blend(a, float(arrays.luma(a).mean()), contrast_factor))


@validate_call
def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """0: grey, 1: as it is."""
    if is_picture(img):
        return pillow("ImageEnhance", "adjust_saturation").Color(img).enhance(saturation_factor)
    return _colours(img, lambda a: arrays.saturation(a, saturation_factor))


@validate_call
def adjust_hue(img: Picture, hue_factor: float) -> Picture:
    """``img`` with hues moved by ``hue_factor``, from -0.5 to 0.5 of the circle."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor should be from -0.5 to 0.5, got {hue_factor}")
    if is_picture(img):
        return pictures.hue(img, hue_factor)
    return _colours(img, lambda a: arrays.hue(a, hue_factor))


@validate_call
def to_grayscale(img: Picture, num_output_channels: int = 1) -> Picture:
    """The brightness of ``img``, as one channel or as three equal ones."""
    if is_picture(img):
        return pictures.gray(img, num_output_channels)
    return _colours(img, lambda a: arrays.gray(a, num_output_channels))


@validate_call
def normalize(img: Any, mean: Any, std: Any, data_format: str = "CHW", to_rgb: bool = False) -> Any:
    """``(img - mean) / std`` by channel; ``to_rgb`` turns the order of the channels of arrays first.

    Returns a tensor for a tensor, an array of floats for others.
    """
    if isinstance(img, Tensor):
        sizes = [-1, 1, 1] if data_format == "CHW" else [-1]
        limits = [Tensor(np.asarray(v, img.dtype.numpy).reshape(sizes)) for v in (mean, std)]
        return (img - limits[0]) / limits[1]
    values = np.array(img).astype(np.float32)
    if values.ndim == 2:
        values = values[None] if data_format == "CHW" else values[..., None]
    first = data_format == "CHW"
    if to_rgb:
        values = values[::-1] if first else values[..., ::-1]
    shape = (-1, 1, 1) if first else (1, 1, -1)
    channels = values.shape[0 if first else -1]
    for name, given in (("mean", mean), ("std", std)):
        if np.size(given) not in (1, channels):
            raise ValueError(f"{name} should hold a number for each of {channels} channels, got {given!r}")
    mean, std = (np.float32(v).reshape(shape) for v in (mean, std))
    return (values - mean) / std


@validate_call
def erase(img: Picture, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Picture:
    """``img`` with the rectangle at row ``i`` and column ``j``, of size ``(h, w)``, set to ``v``."""
    if isinstance(img, Tensor):
        made = img if inplace else img.clone()
        made[..., i : i + h, j : j + w] = v
        return made
    if is_picture(img):
        image = pillow("Image", "erase")
        values = arrays.erase(np.array(img), i, j, h, w, host(v), True)
        return image.fromarray(values)
    return arrays.erase(img, i, j, h, w, host(v), inplace)
