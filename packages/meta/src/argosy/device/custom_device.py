"""Questions about devices that packages add: operators run on none so far, and what would need one says so."""

from __future__ import annotations

from argosy.device.streams import refusing
from argosy.faces import face

_AS_IN_DEVICE = (
    "Event", "Stream", "current_stream", "empty_cache", "get_device_properties", "get_rng_state", "manual_seed",
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "reset_max_memory_allocated",
    "reset_max_memory_reserved", "set_rng_state",
)  # fmt: skip
_TABLE = {name: f"argosy.device:{name}" for name in _AS_IN_DEVICE}

__all__ = [*_TABLE, "device_count", "synchronize"]
__getattr__, __dir__ = face(__name__, _TABLE, globals())

synchronize = refusing("custom_device.synchronize", "device of a package")


def device_count(device_type: str | None = None) -> int:
    """How many devices of this kind operators run on: 0."""
    return 0
