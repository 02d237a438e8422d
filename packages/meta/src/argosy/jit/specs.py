"""Input specs at work: checking a call against them, and the types that tracing begins with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from argosy.jit.arguments import Call
from argosy.jit.input_spec import InputSpec
from argosy_phi_ops.errors import ShapeError
from argosy_pir.dims import Dim, SymExpr
from argosy_pir.equations import solve_equality
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import DType

__all__ = [
    "equal_size_positions", "equal_sizes", "matched_key", "open_sizes", "solved_size", "spec_type", "spec_types",
    "traced_types", "with_sizes",
]  # fmt: skip

ONE, ZERO = -1, -2
"""In place of the number of an open size: it is 1, or 0, in this program."""
_FIXED = {ONE: 1, ZERO: 0}


def matched_key(spec: Sequence[Any], call: Call, name: str) -> tuple[Any, ...]:
    """The key of a call of which the spec decides the shapes, and the call which of the open sizes are one.

    Raises ValueError where a tensor does not meet its spec.
    """
    wanted = _tensors(spec)
    if len(wanted) != len(call.tensors):
        raise ValueError(f"{name}: input_spec describes {len(wanted)} tensors, the call has {len(call.tensors)}")
    for i, (s, x) in enumerate(zip(wanted, call.tensors, strict=True)):
        if not s.describes(x.payload.shape, x.payload.dtype):
            raise ValueError(
                f"{name}: tensor {i} of the call has shape {list(x.payload.shape)} and dtype {x.payload.dtype.name}; "
                f"input_spec says {s}"
            )
    rest = tuple(part for part in call.key if not _is_tensor(part))
    return "spec", tuple(x.stop_gradient for x in call.tensors), rest, equal_sizes(wanted, call)


def _is_tensor(part: Any) -> bool:
    return type(part) is tuple and len(part) == 3 and type(part[1]) is DType


def traced_types(call: Call, spec: Sequence[Any] | None = None) -> list[TensorType]:
    """The types of the program's tensor inputs; sizes that the spec leaves open become symbols ``s0``, ``s1``, ...

    Open sizes of one axis that are equal in the call are one symbol: a batch is. A call where they differ has another
    key, so that it gets a program of its own: one in which those that are 1 are repeated, or the error of an operator
    that needs them equal.
    """
    if spec is None:
        return [TensorType(x.payload.shape, x.payload.dtype.name) for x in call.tensors]
    wanted = _tensors(spec)
    return spec_types(wanted, equal_sizes(wanted, call))


def open_sizes(spec: Sequence[Any], call: Call) -> tuple[int, ...]:
    """The sizes of a call that the spec leaves open."""
    described = zip(_tensors(spec), call.tensors, strict=True)
    return tuple(x.payload.shape[axis] for s, x in described for axis in s.open_axes())


def with_sizes(type: TensorType, known: Mapping[str, int]) -> TensorType:
    """A type with numbers for the symbols that are ``known``."""
    sizes = (n.substitute(known) if isinstance(n, SymExpr) else n for n in type.shape)
    return TensorType(tuple(sizes), type.dtype)


def solved_size(error: BaseException | None) -> tuple[str, int] | None:
    """The symbol and its number that would have kept ``error``, or what it explains, from being raised."""
    while error is not None:
        if isinstance(error, ShapeError) and error.sizes is not None:
            return solve_equality(*error.sizes)  # type: ignore[arg-type]
        error = error.__cause__ or error.__context__
    return None


def _tensors(spec: Sequence[Any]) -> list[InputSpec]:
    return [s for s in spec if isinstance(s, InputSpec)]


def equal_sizes(specs: Sequence[InputSpec], call: Call) -> tuple[int, ...]:
    """For each open size the number of the first one of its axis that is equal in the call, or ``ONE``: a size of 1
    beside others of its axis, which is there to be repeated; or ``ZERO``: what operators do, and whether they refuse,
    is another matter without elements."""
    places = [(axis, x.payload.shape[axis]) for s, x in zip(specs, call.tensors, strict=True) for axis in s.open_axes()]
    longer = {axis for axis, size in places if size != 1}
    first: dict[tuple[int, int], int] = {}
    return tuple(
        ZERO if size == 0 else ONE if size == 1 and axis in longer else first.setdefault((axis, size), i)
        for i, (axis, size) in enumerate(places)
    )


def equal_size_positions(specs: Sequence[InputSpec], axes: int) -> tuple[int, ...]:
    """For each open size the number of the first one of its axis, where the axis is one of the first ``axes``."""
    first: dict[int, int] = {}
    found: list[int] = []
    for s in specs:
        for axis, n in enumerate(s.shape):
            if n == -1:
                found.append(first.setdefault(axis, len(found)) if axis < axes else len(found))
    return tuple(found)


def spec_types(specs: Sequence[InputSpec], symbols: Sequence[int]) -> list[TensorType]:
    """The types that specs mean, their open sizes ``s<number>`` by the ``symbols`` of all of them in order."""
    numbers = iter(symbols)
    return [_type(s, numbers) for s in specs]


def spec_type(spec: InputSpec, first: int) -> TensorType:
    """The type that a spec means, its open sizes named ``s<first>``, ``s<first + 1>``, ..."""
    return _type(spec, count(first))


def _type(spec: InputSpec, numbers: Iterator[int]) -> TensorType:
    shape = tuple(_size(next(numbers)) if n == -1 else n for n in spec.shape)
    return TensorType(shape, spec.dtype.name)


def _size(number: int) -> Dim:
    return _FIXED[number] if number < 0 else SymExpr.symbol(f"s{number}")
