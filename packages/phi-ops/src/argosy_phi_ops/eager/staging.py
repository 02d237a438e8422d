"""Operands of collectives that pass through the host: counted, and in memory that devices copy at full speed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argosy_hwadapt import Device

__all__ = ["note_staged", "pinned", "staged"]

staged: dict[tuple[str, str], list[int]] = {}
"""Operands and results of collectives that went through the host though they lay on a device, by kind and device: how
many, and their bytes."""


def note_staged(kind: str, device: Device, nbytes: int) -> None:
    """Count an operand or result."""
    counted = staged.setdefault((kind, str(device)), [0, 0])
    counted[0] += 1
    counted[1] += nbytes


@contextmanager
def pinned(device: Device, nbytes: int) -> Iterator[Any]:
    """Host memory that the device copies from and to at full speed, for the length of a block."""
    memory = device.call("pinned_alloc", max(nbytes, 1))
    try:
        yield memory
    finally:
        device.call("pinned_free", memory)
