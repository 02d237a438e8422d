"""The questions about CUDA that scripts ask: there is none, and what would need one says so, as Paddle's build for the
CPU does."""

from __future__ import annotations

from typing import Any, NoReturn

from argosy.device.streams import Event, Stream, stream_guard

__all__ = [
    "Event", "Stream", "current_stream", "device_count", "empty_cache", "get_device_capability", "get_device_name",
    "get_device_properties", "is_available", "max_memory_allocated", "max_memory_reserved", "memory_allocated",
    "memory_reserved", "memory_summary", "reset_max_memory_allocated", "reset_max_memory_reserved", "stream_guard",
    "synchronize", "vmm_compact",
]  # fmt: skip


def device_count() -> int:
    """How many CUDA devices operators run on: 0."""
    return 0


def is_available() -> bool:
    """False."""
    return False


def empty_cache() -> None:
    """Give memory of CUDA devices back that is kept for later: there is none."""


def _refusing(name: str) -> Any:
    def function(device: object = None) -> NoReturn:
        raise ValueError(f"device.cuda.{name}(): there is no CUDA device: operators run on the cpu only so far")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises ValueError: there is no CUDA device."
    return function


current_stream = _refusing("current_stream")
get_device_capability = _refusing("get_device_capability")
get_device_name = _refusing("get_device_name")
get_device_properties = _refusing("get_device_properties")
max_memory_allocated = _refusing("max_memory_allocated")
max_memory_reserved = _refusing("max_memory_reserved")
memory_allocated = _refusing("memory_allocated")
memory_reserved = _refusing("memory_reserved")
memory_summary = _refusing("memory_summary")
reset_max_memory_allocated = _refusing("reset_max_memory_allocated")
reset_max_memory_reserved = _refusing("reset_max_memory_reserved")
synchronize = _refusing("synchronize")
vmm_compact = _refusing("vmm_compact")
