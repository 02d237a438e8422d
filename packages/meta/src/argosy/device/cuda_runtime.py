"""Questions about the CUDA runtime: there is no CUDA device, and what would need one says so."""

from __future__ import annotations

from typing import NoReturn

from argosy.device.streams import unavailable_function

__all__ = ["check_error", "cudart", "current_device", "is_initialized", "mem_get_info"]

mem_get_info = unavailable_function("cuda.mem_get_info", "CUDA device")
cudart = unavailable_function("cuda.cudart", "CUDA device")


def current_device() -> int:
    """The number of the device that operators run on: 0, the cpu."""
    return 0


def is_initialized() -> bool:
    """Whether an accelerator is in use: False."""
    return False


def check_error(res: int) -> NoReturn:
    """Raises ValueError: there is no CUDA device whose error ``res`` could be."""
    raise ValueError(f"cuda.check_error({res}): there is no CUDA device")
