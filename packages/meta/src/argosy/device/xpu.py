"""The questions about XPUs that scripts ask: there is none, and what would need one says so, as Paddle's build for the
CPU does."""

from __future__ import annotations

from argosy.device.queries import device_count
from argosy.device.streams import Event, Stream, unavailable_function
from argosy.device.tensor_types import get_rng_state, manual_seed, set_rng_state

__all__ = [
    "Event", "Stream", "current_stream", "device_count", "empty_cache", "get_rng_state", "manual_seed",
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_total",
    "memory_used", "reset_max_memory_allocated", "reset_max_memory_reserved", "set_debug_level", "set_rng_state",
    "synchronize",
]  # fmt: skip

current_stream = unavailable_function("xpu.current_stream", "XPU")
empty_cache = unavailable_function("xpu.empty_cache", "XPU")
max_memory_allocated = unavailable_function("xpu.max_memory_allocated", "XPU")
max_memory_reserved = unavailable_function("xpu.max_memory_reserved", "XPU")
memory_allocated = unavailable_function("xpu.memory_allocated", "XPU")
memory_reserved = unavailable_function("xpu.memory_reserved", "XPU")
memory_total = unavailable_function("xpu.memory_total", "XPU")
memory_used = unavailable_function("xpu.memory_used", "XPU")
reset_max_memory_allocated = unavailable_function("xpu.reset_max_memory_allocated", "XPU")
reset_max_memory_reserved = unavailable_function("xpu.reset_max_memory_reserved", "XPU")
set_debug_level = unavailable_function("xpu.set_debug_level", "XPU")
synchronize = unavailable_function("xpu.synchronize", "XPU")
