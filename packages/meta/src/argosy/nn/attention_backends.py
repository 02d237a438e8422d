"""``nn.attention``: which kernel computes ``scaled_dot_product_attention``. There is one; choices are checked only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(IntEnum):
    """Kernels that Paddle knows."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2


@contextmanager
def sdpa_kernel(backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """Allow ``backends`` alone within the block. All of them mean argosy's one implementation, so nothing changes.

    Raises TypeError for what is no backend, ValueError for none.
    """
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not all(isinstance(one, SDPBackend) for one in chosen):
        raise TypeError(f"sdpa_kernel: backends are of SDPBackend, got {backends!r}")
    if not chosen:
        raise ValueError("sdpa_kernel: at least one backend is needed")
    yield
