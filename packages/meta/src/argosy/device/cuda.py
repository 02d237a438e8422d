"""The questions about CUDA that scripts ask: there is none, and what would need one says so, as Paddle's build for the
CPU does."""

from __future__ import annotations

from argosy.device.streams import Event, Stream, stream_guard, unavailable_function

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


current_stream = unavailable_function("cuda.current_stream", "CUDA device")
get_device_capability = unavailable_function("cuda.get_device_capability", "CUDA device")
get_device_name = unavailable_function("cuda.get_device_name", "CUDA device")
get_device_properties = unavailable_function("cuda.get_device_properties", "CUDA device")
max_memory_allocated = unavailable_function("cuda.max_memory_allocated", "CUDA device")
max_memory_reserved = unavailable_function("cuda.max_memory_reserved", "CUDA device")
memory_allocated = unavailable_function("cuda.memory_allocated", "CUDA device")
memory_reserved = unavailable_function("cuda.memory_reserved", "CUDA device")
memory_summary = unavailable_function("cuda.memory_summary", "CUDA device")
reset_max_memory_allocated = unavailable_function("cuda.reset_max_memory_allocated", "CUDA device")
reset_max_memory_reserved = unavailable_function("cuda.reset_max_memory_reserved", "CUDA device")
synchronize = unavailable_function("cuda.synchronize", "CUDA device")
vmm_compact = unavailable_function("cuda.vmm_compact", "CUDA device")
