"""Questions about devices that packages add: operators run on none so far, and what would need one says so."""

from __future__ import annotations

from argosy.device.queries import empty_cache
from argosy.device.streams import (
    Event,
    Stream,
    current_stream,
    get_device_properties,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    refusing,
    reset_max_memory_allocated,
    reset_max_memory_reserved,
)  # fmt: skip
from argosy.device.typed import get_rng_state, manual_seed, set_rng_state

__all__ = [
    "Event", "Stream", "current_stream", "device_count", "empty_cache", "get_device_properties", "get_rng_state",
    "manual_seed", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "reset_max_memory_allocated", "reset_max_memory_reserved", "set_rng_state", "synchronize",
]  # fmt: skip

synchronize = refusing("custom_device.synchronize", "device of a package")


def device_count(device_type: str | None = None) -> int:
    """How many devices of this kind operators run on: 0."""
    return 0
