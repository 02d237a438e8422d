"""Dynamic mode as older scripts ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from argosy.framework.creation import to_tensor
from argosy.framework.modes import disable_static, enable_static
from argosy.framework.typed_creation import create_tensor as _made
from argosy.static.session import in_static_mode
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.place import Place
from argosy_tensorcore.tensor import Tensor

__all__ = ["create_tensor", "guard", "no_grad", "to_variable"]


@contextmanager
def guard(place: str | Place | None = None) -> Iterator[None]:
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


def create_tensor(
    type: Any = None,
    name: str | None = None,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    persistable: bool | None = None,
    **kwargs: Any,
) -> Tensor:
    """A tensor of that shape, to be written to: of zeros, [0] where no shape is given."""
    made = _made("float32" if dtype is None else dtype, name, bool(persistable))
    if shape:
        made.payload = get_operator("zeros")(list(shape), made.dtype.name).payload
    return made
