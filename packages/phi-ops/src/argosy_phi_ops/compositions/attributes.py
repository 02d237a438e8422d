"""Attributes of tensors: rank, shape, kinds of elements."""

# mypy: disable-error-code="no-any-return,index,operator"

from __future__ import annotations

from typing import Any

from argosy_phi_ops.declare.composition import compose
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_tensorcore.tensor import Tensor


@compose()
def rank(input: Tensor) -> Tensor:
    """The number of axes, as a 0-D int32 tensor."""
    return op("full")([], input.ndim, "int32")


@compose()
def shape(input: Tensor) -> Tensor:
    """The sizes of the axes, as an int64 vector. While capturing, its elements can be sizes of other tensors."""
    if input.payload.is_traced and input.ndim:
        return op("stack")([op("full")([], n, "int64") for n in input.payload.shape])
    return Tensor(list(input.shape), "int64")


@compose()
def is_empty(x: Tensor) -> Tensor:
    """Whether there are no elements, as a 0-D tensor."""
    return op("full")([], x.size == 0, "bool")


@compose()
def is_complex(x: Tensor) -> bool:
    """Whether the dtype is complex."""
    return _tensor("is_complex", x).is_complex()


@compose()
def is_integer(x: Tensor) -> bool:
    """Whether the dtype is one of the integers."""
    return _tensor("is_integer", x).is_integer()


@compose()
def is_floating_point(x: Tensor) -> bool:
    """Whether the dtype is a floating-point one."""
    return _tensor("is_floating_point", x).is_floating_point()


def _tensor(name: str, x: Any) -> Tensor:
    if type(x) is not Tensor:
        raise TypeError(f"{name}: argument 'x' must be a Tensor, got {type(x).__name__}")
    return x


@compose()
def tolist(x: Tensor) -> Any:
    """The elements as nested lists of numbers. Returns a list, of a 0-D tensor a number."""
    return x.tolist()
