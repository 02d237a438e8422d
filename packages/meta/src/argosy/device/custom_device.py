"""Questions about devices that packages add."""

from __future__ import annotations

from argosy.api import lazy_names, targets
from argosy.device.queries import get_all_custom_device_type
from argosy_hwadapt import device_infos

__all__ = [*targets(__name__), "device_count"]
__getattr__, __dir__ = lazy_names(__name__, globals())


def device_count(device_type: str | None = None) -> int:
    """How many devices of this kind there are, of all kinds by default."""
    kinds = get_all_custom_device_type()
    return sum([len(device_infos(kind)) for kind in kinds if device_type in (None, kind)])
