"""Which half-precision types the device computes with, and ``auto_cast`` by its older names."""

from __future__ import annotations

from typing import Any

from argosy.device.places import get_device
from argosy_tensorcore.place import as_place

__all__ = [
    "autocast", "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype", "is_autocast_enabled",
    "is_bfloat16_supported", "is_float16_supported",
]  # fmt: skip


def autocast(
    device_type: str | None = None, dtype: Any = "float16", enabled: bool = True, cache_enabled: bool = True
) -> Any:
    """``amp.auto_cast(enabled, dtype=dtype)``: a block of mixed precision on the device of its operands.

    ``device_type`` and ``cache_enabled`` change nothing. Raises TypeError for a device type that is no string.
    Returns a context manager.
    """
    from argosy.amp.casting import auto_cast

    if device_type is not None and not isinstance(device_type, str):
        raise TypeError(f"autocast: device_type should be a string or None, got {type(device_type).__name__}")
    return auto_cast(enabled, dtype=dtype)


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether ``auto_cast`` is active here, at a level other than O0."""
    from argosy.amp.casting import current

    active = current()
    return active is not None and active.key[0] != "O0"


def get_autocast_dtype(device_type: str | None = None) -> str:
    """The name of the type that ``auto_cast`` computes in: the active one's, or float16, which is its default."""
    from argosy.amp.casting import current

    active = current()
    return "float16" if active is None else active.dtype.name


def get_autocast_cpu_dtype(device_type: str | None = None) -> str:
    """:func:`get_autocast_dtype`."""
    return get_autocast_dtype(device_type)


def get_autocast_gpu_dtype(device_type: str | None = None) -> str:
    """:func:`get_autocast_dtype`."""
    return get_autocast_dtype(device_type)


def is_bfloat16_supported(device: object = None) -> bool:
    """Whether a device, by default that of new tensors, computes with bfloat16. The cpu does: it loads, widens and
    stores it. Raises DeviceNotFound."""
    return _is_supported("bfloat16", device)


def is_float16_supported(device: object = None) -> bool:
    """Whether a device, by default that of new tensors, computes with float16. The cpu does: it loads, widens and
    stores it. Raises DeviceNotFound."""
    return _is_supported("float16", device)


def _is_supported(dtype: str, device: object) -> bool:
    place = as_place(get_device() if device is None else device)
    return place.is_cpu_place() or dtype in place.device().info.dtypes
