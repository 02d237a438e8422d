"""Questions about devices that packages add: operators run on none so far, and what would need one says so."""

from __future__ import annotations

from argosy.api import lazy_names, targets
from argosy.device.streams import unavailable_function

__all__ = [*targets(__name__), "device_count", "synchronize"]
__getattr__, __dir__ = lazy_names(__name__, globals())

synchronize = unavailable_function("custom_device.synchronize", "device of a package")


def device_count(device_type: str | None = None) -> int:
    """How many devices of this kind operators run on: 0."""
    return 0
