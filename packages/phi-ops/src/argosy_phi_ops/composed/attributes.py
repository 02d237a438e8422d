"""Questions about tensors as functions, and small conversions."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from argosy_phi_ops.declare.composition import composed
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_phi_ops.eager.dispatch import write
from argosy_phi_ops.ops.forms import sizes_from
from argosy_tensorcore.dtype import default_dtype
from argosy_tensorcore.tensor import Tensor


@composed()
def rank(input: Tensor) -> Tensor:
    """The number of axes, as a 0-D int32 tensor."""
    return op("full")([], input.ndim, "int32")


@composed()
def shape(input: Tensor) -> Tensor:
    """The sizes of the axes, as an int64 vector. While capturing, its elements can be sizes of other tensors."""
    if input.payload.is_traced and input.ndim:
        return op("stack")([op("full")([], n, "int64") for n in input.payload.shape])
    return Tensor(list(input.shape), "int64")


@composed()
def is_empty(x: Tensor) -> Tensor:
    """Whether there are no elements, as a 0-D tensor."""
    return op("full")([], x.size == 0, "bool")


@composed()
def is_complex(x: Tensor) -> bool:
    """Whether the dtype is complex."""
    return _tensor("is_complex", x).is_complex()


@composed()
def is_integer(x: Tensor) -> bool:
    """Whether the dtype is one of the integers."""
    return _tensor("is_integer", x).is_integer()


@composed()
def is_floating_point(x: Tensor) -> bool:
    """Whether the dtype is a floating-point one."""
    return _tensor("is_floating_point", x).is_floating_point()


def _tensor(name: str, x: Any) -> Tensor:
    if type(x) is not Tensor:
        raise TypeError(f"{name}: argument 'x' must be a Tensor, got {type(x).__name__}")
    return x


@composed()
def tolist(x: Tensor) -> Any:
    """The elements as nested lists of numbers."""
    return x.tolist()


@composed(out=True)
def positive(x: Tensor) -> Tensor:
    """``x`` itself; refuses booleans as Python's numbers in disguise."""
    if x.dtype.kind == "b":
        raise TypeError("positive: the tensor of dtype bool has no sign")
    return x


@composed(out=True)
def msort(input: Tensor) -> Tensor:
    """The elements in order along the first axis."""
    return op("sort")(input, 0)


@composed()
def cast_(x: Tensor, dtype: object) -> Tensor:
    """``x`` itself with its elements as ``dtype``."""
    write(x, op("cast")(x, dtype))
    return x


@composed()
def view_as_complex(input: Tensor) -> Tensor:
    """Complex numbers from pairs along the last axis."""
    return op("as_complex")(input)


@composed()
def view_as_real(input: Tensor) -> Tensor:
    """Real and imaginary part along a new last axis."""
    return op("as_real")(input)


@composed(out=True)
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


@composed(form=sizes_from(1, 1))
def repeat(input: Tensor, repeats: Sequence[int]) -> Tensor:
    """The whole tensor repeated along each axis, missing axes added in front; ``repeats`` may be given one by one."""
    return op("tile")(input, list(repeats))


@composed()
def diagflat(x: Tensor, offset: int = 0) -> Tensor:
    """A square matrix with the elements of ``x`` in row-major order along its diagonal ``offset``."""
    return op("diag")(op("reshape")(x, [-1]), offset)
