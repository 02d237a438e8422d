"""Devices by name: which one new tensors are made on."""

from __future__ import annotations

from argosy_tensorcore.place import Place, as_place

__all__ = ["CPUPlace", "get_available_device", "get_device", "set_device"]

_current = Place("cpu")


def get_device() -> str:
    """The name of the device that new tensors are made on: ``"cpu"``."""
    return str(_current)[len("Place(") : -1]


def set_device(device: str | Place) -> Place:
    """Make ``device`` the place of new tensors. Raises DeviceNotFound when there is no such device."""
    global _current
    place = as_place(device)
    place.device()
    if not place.is_cpu_place():
        raise NotImplementedError(f"set_device({device!r}): the operator library runs on the cpu only so far")
    _current = place
    return place


def get_available_device() -> list[str]:
    """Names of the kinds of devices that can be opened here."""
    from argosy_hwadapt import available

    return [name for name, reason in available().items() if reason is None]


def CPUPlace() -> Place:
    """The place of host memory."""
    return Place("cpu")
