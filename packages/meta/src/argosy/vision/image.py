"""Pictures from files, by Pillow where it is installed, and the kinds of pictures that transforms take."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy_tensorcore.interchange import to_numpy
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "as_picture",
    "get_image_backend",
    "image_load",
    "is_picture",
    "pillow",
    "reading_picture",
    "set_image_backend",
]

_BACKENDS = ("pil", "cv2", "tensor")


class _ImageBackend:
    """What loaded pictures are: "pil", "cv2" (arrays, here in the order of OpenCV) or "tensor"."""

    backend = "pil"


def pillow(module: str, wanted_by: str) -> Any:
    """The module ``PIL.<module>``. Raises ImportError that names the extra where Pillow is missing."""
    try:
        return import_module(f"PIL.{module}")
    except ModuleNotFoundError as error:
        raise ImportError(f"{wanted_by} needs Pillow: python -m pip install argosy[vision]", name="PIL") from error


def is_picture(img: Any) -> bool:
    """Whether ``img`` is a picture of Pillow."""
    return type(img).__module__.partition(".")[0] == "PIL" and hasattr(img, "convert")


def set_image_backend(backend: str) -> None:
    """What :func:`image_load` and the data sets give: "pil", "cv2" or "tensor"."""
    _ImageBackend.backend = _check_backend(backend)


def get_image_backend() -> str:
    """What :func:`image_load` and the data sets give."""
    return _ImageBackend.backend


def _check_backend(backend: str) -> str:
    if backend not in _BACKENDS:
        raise ValueError(f"backend should be one of {_BACKENDS}, got {backend!r}")
    return backend


@validate_call
def image_load(path: str, backend: str | None = None) -> Any:
    """The picture in the file ``path``: of Pillow, an array ``[H, W, 3]`` (BGR, as OpenCV's) or a tensor of it.

    Returns a picture of Pillow, an array or a tensor.
    """
    backend = _ImageBackend.backend if backend is None else _check_backend(backend)
    with reading_picture(path):
        return as_picture(pillow("Image", "image_load").open(Path(path)), backend)


@contextmanager
def reading_picture(source: Any) -> Iterator[None]:
    """Raises OSError, as Pillow does of most pictures, where it finds ``source`` damaged in another way."""
    try:
        yield
    except (SyntaxError, ValueError, EOFError, IndexError, struct.error) as error:
        raise OSError(f"{source!s:.80} is damaged: {error}") from error


def as_picture(found: Any, backend: str | None = None) -> Any:
    """A picture of Pillow, as the backend shows pictures."""
    backend = _ImageBackend.backend if backend is None else _check_backend(backend)
    if backend == "pil":
        return found
    array = np.array(found.convert("RGB") if backend == "cv2" else found)
    return np.ascontiguousarray(array[..., ::-1]) if backend == "cv2" else Tensor(array)


def beside(x: Tensor, array: np.ndarray) -> Tensor:
    """A tensor of an array's values where ``x`` is."""
    return Tensor(array, place=x.place)


def host(img: Any) -> np.ndarray:
    """A tensor's values, or the array itself."""
    return to_numpy(img) if isinstance(img, Tensor) else np.asarray(img)
