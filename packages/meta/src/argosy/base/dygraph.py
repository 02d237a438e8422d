"""Dynamic mode as older scripts ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from argosy.autograd import no_grad
from argosy.creation import to_tensor
from argosy.modes import disable_static, enable_static
from argosy.static.session import in_static_mode
from argosy_tensorcore.tensor import Tensor

__all__ = ["guard", "no_grad", "to_variable"]


@contextmanager
def guard(place: object = None) -> Iterator[None]:
    """Dynamic mode within the block; static mode again after it where it was on."""
    static = in_static_mode()
    disable_static(place)
    try:
        yield
    finally:
        if static:
            enable_static()


def to_variable(value: Any, name: str | None = None, zero_copy: bool | None = None, dtype: Any = None) -> Tensor:
    """``to_tensor`` under its older name."""
    made = to_tensor(value, dtype)
    if name is not None:
        made.name = name
    return made
