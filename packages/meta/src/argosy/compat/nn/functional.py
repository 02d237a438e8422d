"""Functions that take ``input`` and ``dim``."""

from __future__ import annotations

from typing import Any

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy.checked import named
from argosy_phi_ops.operator import get_operator as op
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["softmax"]


@named
def softmax(input: Tensor, dim: int | None = None, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """``exp(input)`` divided by its sum along ``dim``, computed in ``dtype`` if given; put in ``out`` if given.

    Without ``dim`` it is 0 for tensors with zero, one or three axes, else 1. ``nn.functional.softmax`` takes ``x`` and
    ``axis`` instead.
    """
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
    found: Tensor = op("softmax")(input, dim, None if dtype is None else as_dtype(dtype).name)
    if out is None:
        return found
    op("assign")(found, out)
    return out
