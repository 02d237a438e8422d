"""Places, and names that belong to chips that argosy does not run on."""

from __future__ import annotations

from collections.abc import Sequence

from argosy_tensorcore.place import Place

__all__ = ["cpu_places", "cuda_places", "xpu_places"]


def cpu_places(device_count: int | None = None) -> list[Place]:
    """``device_count`` times the cpu, by default once."""
    return [Place("cpu")] * (1 if device_count is None else device_count)


def cuda_places(device_ids: Sequence[int] | None = None) -> list[Place]:
    """Places of these GPUs, by default of none: operators run on the cpu."""
    return [Place("gpu", i) for i in device_ids or ()]


def xpu_places(device_ids: Sequence[int] | None = None) -> list[Place]:
    """Places of these XPUs, by default of none: operators run on the cpu."""
    return [Place("xpu", i) for i in device_ids or ()]
