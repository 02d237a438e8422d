"""Tensors as authors of layers made them in Paddle 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.legacy import create_tensor as _made
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

__all__ = ["create_tensor"]


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
