"""Sorting and searching."""

# mypy: disable-error-code="no-any-return,index,operator"

from __future__ import annotations

from typing import NamedTuple

from argosy_phi_ops.declare.composition import compose
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor


@compose(out=True)
def msort(input: Tensor) -> Tensor:
    """The elements in order along the first axis."""
    return op("sort")(input, 0)


class TopKRetType(NamedTuple):
    """What :func:`topk` gives."""

    values: Tensor
    indices: Tensor


@compose(aliases={"input": "x", "dim": "axis"}, out=True)
def topk(x: Tensor, k: int, axis: int | None = None, largest: bool = True, sorted: bool = True) -> TopKRetType:
    """The ``k`` largest (or smallest) elements along ``axis`` in order, and their indices; of equals the first ones."""
    return TopKRetType(*get_operator("topk")(x, k, axis, largest, sorted))
