"""Devices by name: which one new tensors are made on."""

from __future__ import annotations

from importlib.util import find_spec

from argosy_phi_ops.context import RankState
from argosy_phi_ops.eager.creation import set_creation_device
from argosy_tensorcore.place import Place, as_place

__all__ = [
    "CPUPlace", "CustomPlace", "get_available_device", "get_device", "is_compiled_with_cinn", "is_compiled_with_cuda",
    "is_compiled_with_custom_device", "is_compiled_with_distribute", "is_compiled_with_ipu", "is_compiled_with_rocm",
    "is_compiled_with_xpu", "set_device",
]  # fmt: skip

_current = RankState("argosy.device", lambda: Place("cpu"))


def expected_place() -> Place:
    """The place that new tensors are made on, of the class that libraries look for."""
    return CPUPlace() if _current.value.is_cpu_place() else _current.value


def as_optional_place(place: object) -> Place | None:
    """The place of a name, or of a place itself; None stays None."""
    return None if place is None else as_place(place)


def get_device() -> str:
    """The name of the device that new tensors are made on, such as ``"cpu"`` or ``"opencl:0"``."""
    return str(_current.value)[len("Place(") : -1]


def set_device(device: str | Place) -> Place:
    """Make ``device`` the place of new tensors. Raises DeviceNotFound when there is no such device."""
    place = as_place(device)
    set_creation_device(place.device())
    _current.value = place
    return place


def get_available_device() -> list[str]:
    """Names of the kinds of devices that can be opened here."""
    from argosy_hwadapt import available

    return [name for name, reason in available().items() if reason is None]


class CPUPlace(Place):
    """The place of host memory: equal to every other place there."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("cpu")


class CustomPlace(Place):
    """The place of a device's memory, by the device's kind ``device_type`` and its number ``device_id``: equal to
    ``Place("kind:number")``."""

    __slots__ = ()

    def __init__(self, device_type: str, device_id: int = 0) -> None:
        super().__init__(device_type, device_id)


def is_compiled_with_cuda() -> bool:
    """False: devices come as packages of their own, see :func:`get_available_device`."""
    return False


def is_compiled_with_rocm() -> bool:
    """False, as :func:`is_compiled_with_cuda`."""
    return False


def is_compiled_with_xpu() -> bool:
    """False, as :func:`is_compiled_with_cuda`."""
    return False


def is_compiled_with_ipu() -> bool:
    """False, as :func:`is_compiled_with_cuda`."""
    return False


def is_compiled_with_custom_device(device_type: str) -> bool:
    """Whether a plug-in offers the kind of device ``device_type``; what is built in for tests is none."""
    from argosy_hwadapt import registry

    return device_type in registry.plugin_names() and registry.why(device_type) is None


def is_compiled_with_cinn() -> bool:
    """Whether the compiler argosy-cinn is installed."""
    return find_spec("argosy_cinn") is not None


def is_compiled_with_distribute() -> bool:
    """True: collectives between processes are part of argosy."""
    return True
