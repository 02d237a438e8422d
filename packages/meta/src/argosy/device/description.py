"""A device as a string that knows its parts."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from argosy.device.places import get_device, set_device
from argosy.device.queries import device_guard
from argosy_tensorcore.place import Place

__all__ = ["Device", "get_default_device", "set_default_device"]

_KINDS = ("cpu", "gpu", "cuda", "xpu")


class Device(str):
    """``"cpu"``, or a kind and a number (``"cuda:0"``): whatever takes the name of a device takes it.

    type: a name, with or without the number, a place, or the number of a CUDA device; index: the number. As a context
    manager it is the place of new tensors, which only the cpu can be. Raises ValueError for kinds that Paddle does not
    know, and for an index without a kind.
    """

    type: str
    index: int | None  # type: ignore[assignment]  # as Paddle calls it; nobody searches in a device

    def __new__(cls, type: Any = None, index: int | None = None) -> Self:
        """Take the name apart."""
        kind, number = _parts(type, index)
        made = str.__new__(cls, kind if number is None else f"{kind}:{number}")
        made.type, made.index = kind, number
        return made

    def __enter__(self) -> Self:
        self._guard = device_guard(str(self))
        self._guard.__enter__()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, at: TracebackType | None) -> None:
        self._guard.__exit__(kind, error, at)


def _parts(given: Any, index: int | None) -> tuple[str, int | None]:
    if isinstance(given, Place):
        given = str(given)[len("Place(") : -1]
    if isinstance(given, int) and not isinstance(given, bool):
        return "cuda", int(given)
    if not isinstance(given, str):
        raise (ValueError if given is None and index is not None else TypeError)(
            f"device(): argument 'type' should be a name, a place or a number, got {given!r} with index {index!r}"
        )
    kind, _, number = given.lower().partition(":")
    if kind not in _KINDS or (number and not number.isdecimal()):
        raise ValueError(f"device(): argument 'type' should be one of {list(_KINDS)}, got {given!r}")
    if kind == "cpu":
        return kind, None
    return kind, index if index is not None else int(number or 0)


def get_default_device() -> Device:
    """What new tensors are made on: the cpu."""
    return Device(get_device())


def set_default_device(device: str | Place) -> None:
    """:func:`argosy.device.set_device`, under the name that it has in other frameworks. Raises what that does."""
    set_device(device)
