"""What scripts ask before they choose a device, and ask of it after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from argosy.device.places import get_device, set_device
from argosy_tensorcore.place import as_place

__all__ = [
    "IPUPlace", "XPUPlace", "device_count", "device_guard", "empty_cache", "get_all_custom_device_type",
    "get_all_device_type", "get_available_custom_device", "get_cudnn_version", "is_available", "is_bf16_supported",
    "synchronize",
]  # fmt: skip


def device_count(device: object = None) -> int:
    """How many devices there are of the kind of ``device``, by default of the one that is set; where that is the cpu,
    of all kinds that packages add."""
    from argosy_hwadapt import device_infos

    if device is None and get_device() == "cpu":
        return sum([len(device_infos(kind)) for kind in get_all_custom_device_type()])
    found = as_place(get_device() if device is None else device).device()
    return 0 if found.is_host else len(device_infos(found.name))


def is_available() -> bool:
    """Whether there are devices as `device_count` counts them."""
    return device_count() > 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether operators take bfloat16: True, the cpu's compute in it or by way of float32."""
    return True


def empty_cache() -> None:
    """Give memory of the device that is set back that is kept for later."""
    as_place(get_device()).device().allocator.release_cached()


def XPUPlace(id: int) -> NoReturn:
    """Raises ValueError as Paddle's build for the CPU does: there is no XPU."""
    raise ValueError(f"XPUPlace({id}): there is no XPU; use CPUPlace()")


def IPUPlace() -> NoReturn:
    """Raises ValueError as Paddle's build for the CPU does: there is no IPU."""
    raise ValueError("IPUPlace(): there is no IPU; use CPUPlace()")


def get_cudnn_version() -> int | None:
    """None: there is no cuDNN."""
    return None


def get_all_device_type() -> list[str]:
    """The kinds of devices that can be opened here: the cpu and those that plug-ins offer."""
    return ["cpu", *get_all_custom_device_type()]


def get_all_custom_device_type() -> list[str]:
    """Those of :func:`get_all_device_type` that plug-ins offer."""
    from argosy_hwadapt import registry

    return [name for name in registry.plugin_names() if registry.why(name) is None]


def get_available_custom_device() -> list[str]:
    """The first device of each kind that packages add: ``"mychip:0"``."""
    return [f"{name}:0" for name in get_all_custom_device_type()]


def synchronize(device: object = None) -> None:
    """Return when the device (that of new tensors by default) has done what it was given, and raise what went wrong in
    it: an index out of range, say. Raises DeviceNotFound for a device that is not there."""
    as_place(get_device() if device is None else device).device().synchronize()


@contextmanager
def device_guard(device: str) -> Iterator[None]:
    """Make ``device`` the place of new tensors within the block."""
    before = get_device()
    set_device(device)
    try:
        yield
    finally:
        set_device(before)
