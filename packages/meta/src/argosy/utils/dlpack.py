"""Tensors handed to other libraries, and taken from them."""

from __future__ import annotations

from typing import Any

import argosy.runtime  # noqa: F401  (operators come with the first tensor)
from argosy_tensorcore import interchange
from argosy_tensorcore.place import CPU, as_place
from argosy_tensorcore.tensor import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


class _Capsule:
    """A capsule as an object that offers it, which is what numpy takes."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **request: Any) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # host memory; numpy refuses a capsule that says otherwise


def to_dlpack(x: Tensor) -> object:
    """A capsule that shares the memory of ``x``, for the ``from_dlpack`` of a library, once."""
    if not isinstance(x, Tensor):
        raise TypeError(f"to_dlpack(): argument 'x' must be a Tensor, got {type(x).__name__}")
    return x.__dlpack__()


def from_dlpack(dlpack: Any, *, device: object = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of anything with ``__dlpack__``; with ``copy``, or on another ``device``, memory
    of its own.

    A bare capsule is copied, since numpy, which opens it, takes it as read-only.

    Raises TypeError for anything else, DeviceNotFound for a ``device`` that is not there.
    """
    found = interchange.from_dlpack(_Capsule(dlpack) if type(dlpack).__name__ == "PyCapsule" else dlpack)
    place = CPU if device is None or device == (1, 0) else as_place(device)
    return found if place.is_cpu_place() and not copy else Tensor(found, place=place)
