"""Input specs at work: checking a call against them, and the types that tracing begins with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from argosy.jit.arguments import Call
from argosy.jit.input_spec import InputSpec
from argosy_pir.dims import Dim, SymExpr
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import DType

__all__ = ["alike", "matched_key", "spec_type", "spec_types", "traced_types"]

ONE = -1
"""In place of the number of an open size: it is 1 in this program."""


def matched_key(spec: Sequence[Any], call: Call, name: str) -> tuple[Any, ...]:
    """The key of a call of which the spec decides the shapes, and the call which of the open sizes are one.

    Raises ValueError where a tensor does not meet its spec.
    """
    wanted = [s for s in spec if isinstance(s, InputSpec)]
    if len(wanted) != len(call.tensors):
        raise ValueError(f"{name}: input_spec describes {len(wanted)} tensors, the call has {len(call.tensors)}")
    for i, (s, x) in enumerate(zip(wanted, call.tensors, strict=True)):
        if not s.describes(x.payload.shape, x.payload.dtype):
            raise ValueError(
                f"{name}: tensor {i} of the call has shape {list(x.payload.shape)} and dtype {x.payload.dtype.name}; "
                f"input_spec says {s}"
            )
    rest = tuple(part for part in call.key if not _is_tensor(part))
    return "spec", tuple(x.stop_gradient for x in call.tensors), rest, _equal_sizes(wanted, call)


def _is_tensor(part: Any) -> bool:
    return type(part) is tuple and len(part) == 3 and type(part[1]) is DType


def traced_types(call: Call, spec: Sequence[Any] | None) -> list[TensorType]:
    """The types of the program's tensor inputs; sizes that the spec leaves open become symbols ``s0``, ``s1``, ...

    Open sizes of one axis that are equal in the call are one symbol: a batch is. A call where they differ has another
    key, so that it gets a program of its own: one in which those that are 1 are repeated, or the error of an operator
    that needs them equal.
    """
    if spec is None:
        return [TensorType(x.payload.shape, x.payload.dtype.name) for x in call.tensors]
    wanted = [s for s in spec if isinstance(s, InputSpec)]
    return spec_types(wanted, _equal_sizes(wanted, call))


def _equal_sizes(specs: Sequence[InputSpec], call: Call) -> tuple[int, ...]:
    """For each open size the number of the first one of its axis that is equal in the call, or ``ONE``: a size of 1
    beside others of its axis, which is there to be repeated."""
    places = [(axis, x.payload.shape[axis]) for s, x in zip(specs, call.tensors, strict=True) for axis in s.open_axes()]
    longer = {axis for axis, size in places if size != 1}
    first: dict[tuple[int, int], int] = {}
    return tuple(
        ONE if place[1] == 1 and place[0] in longer else first.setdefault(place, i) for i, place in enumerate(places)
    )


def alike(specs: Sequence[InputSpec], axes: int) -> tuple[int, ...]:
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
    return 1 if number == ONE else SymExpr.symbol(f"s{number}")
