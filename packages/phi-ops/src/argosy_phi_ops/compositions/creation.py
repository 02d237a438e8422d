"""Ranges, grids, diagonals and one-hot rows."""

# mypy: disable-error-code="no-any-return,index,operator"

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from argosy_phi_ops.declare.composition import compose
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.tensor import Tensor


@compose(out=True)
def range(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    dtype: object = None,
    *,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``start, start + step, ...`` up to and including ``end`` (``arange`` leaves it out)."""
    low, high = (0, start) if end is None else (start, end)
    low, high, step = (v.item() if isinstance(v, Tensor) else v for v in (low, high, step))
    beyond = low + (math.floor((high - low) / step) + 0.5) * step  # halfway to the first that is left out
    kind = dtype or default_dtype().name
    return op("arange")(low, beyond, step, kind, device=device, requires_grad=requires_grad)


@compose()
def diagflat(x: Tensor, offset: int = 0) -> Tensor:
    """A square matrix with the elements of ``x`` in row-major order along its diagonal ``offset``."""
    return op("diag")(op("reshape")(x, [-1]), offset)


@compose()
def one_hot(x: Tensor, num_classes: int = -1) -> Tensor:
    """A last axis of ``num_classes`` with 1 at the class and 0 elsewhere; -1 takes the largest class for the last."""
    count = int(get_operator("max")(x)) + 1 if num_classes == -1 else num_classes
    return get_operator("one_hot")(x, count)


@compose()
def meshgrid(args: Sequence[Tensor], name: str | None = None, indexing: str | None = None) -> list[Tensor]:
    """Vectors spread over the grid that they span: result i varies along axis i ("xy": the first two exchanged)."""
    return list(get_operator("meshgrid")(args, indexing))
