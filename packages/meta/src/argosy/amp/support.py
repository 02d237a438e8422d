"""Which half-precision types the device computes with."""

from __future__ import annotations

__all__ = ["is_bfloat16_supported", "is_float16_supported"]


def is_bfloat16_supported(device: object = None) -> bool:
    """True: the cpu computes with bfloat16, which it loads, widens and stores."""
    _only_cpu("is_bfloat16_supported", device)
    return True


def is_float16_supported(device: object = None) -> bool:
    """True: the cpu computes with float16, which it loads, widens and stores."""
    _only_cpu("is_float16_supported", device)
    return True


def _only_cpu(function: str, device: object) -> None:
    if device is not None and str(device).partition(":")[0] not in ("cpu", "Place(cpu)"):
        raise NotImplementedError(f"{function}({device!r}): operators run on the cpu only so far")
