"""Input specs at work: checking a call against them, and the types that tracing begins with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.jit.arguments import Call
from argosy.jit.input_spec import InputSpec
from argosy_pir.dims import SymExpr
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import DType

__all__ = ["matched_key", "spec_type", "traced_types"]


def matched_key(spec: Sequence[Any], call: Call, name: str) -> tuple[Any, ...]:
    """The key of a call of which the spec decides the shapes. Raises ValueError where a tensor does not meet its
    spec.
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
    return "spec", tuple(x.stop_gradient for x in call.tensors), rest


def _is_tensor(part: Any) -> bool:
    return type(part) is tuple and len(part) == 3 and type(part[1]) is DType


def traced_types(call: Call, spec: Sequence[Any] | None) -> list[TensorType]:
    """The types of the program's tensor inputs; sizes that the spec leaves open become symbols ``s0``, ``s1``, ..."""
    if spec is None:
        return [TensorType(x.payload.shape, x.payload.dtype.name) for x in call.tensors]
    wanted = [s for s in spec if isinstance(s, InputSpec)]
    first = 0
    types = []
    for s in wanted:
        types.append(spec_type(s, first))
        first += s.shape.count(-1)
    return types


def spec_type(spec: InputSpec, first: int) -> TensorType:
    """The type that a spec means, its open sizes named ``s<first>``, ``s<first + 1>``, ..."""
    sizes: list[Any] = []
    for n in spec.shape:
        if n == -1:
            sizes.append(SymExpr.symbol(f"s{first}"))
            first += 1
        else:
            sizes.append(n)
    return TensorType(tuple(sizes), spec.dtype.name)
