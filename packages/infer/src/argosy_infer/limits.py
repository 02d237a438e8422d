"""What token ids and positions an incremental program takes, and whether those of a step are such.

The tables that they are looked up in tell, and the checks of indices that operators left in the program. A table that
is computed (rotary embeddings) has no end; the program's attribute ``positions_limit`` says which one the model has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from argosy_infer.errors import InputError
from argosy_pir.program import Program
from argosy_pir.values import OpResult, Value

__all__ = ["check_range", "input_limit", "integers"]

Array = np.ndarray[Any, Any]

_MOVES = frozenset({"prim.reshape", "prim.cast", "prim.broadcast", "prim.transpose", "prim.copy"})


def input_limit(program: Program, name: str) -> int | None:
    """The least number that is too large for elements of the input ``name``, by the program's attribute
    ``<name>_limit`` and the tables that they are looked up in; None where there is none."""
    source = next(x for x in program.inputs if x.name_hint == name)
    declared = program.attributes.get(f"{name}_limit")
    limits = [declared] if isinstance(declared, int) else []
    return min((*limits, *(n for value, n in _tables(program) if _origin(value) is source)), default=None)


def _tables(program: Program) -> Iterator[tuple[Value, int]]:
    """Indices, and the size of what they address."""
    for op in program.walk():
        size: Any = None
        if op.name == "prim.check_index":
            size = op.attributes["size"]
        elif op.name == "prim.gather" and len(op.attributes["axes"]) == 1:
            size = op.operand(0).shape[op.attributes["axes"][0]]
        if isinstance(size, int):
            yield op.operand(0 if op.name == "prim.check_index" else 1), size


def _origin(value: Value) -> Value:
    while isinstance(value, OpResult) and value.op.name in _MOVES:
        value = value.op.operand(0)
    return value


def integers(what: str, given: Sequence[int]) -> Array:
    """``given`` as a vector of int64. Raises :class:`InputError` for what is not a sequence of integers."""
    array = np.asarray(given)
    if not array.size and array.ndim == 1:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        shown = given if array.ndim == 1 and array.size <= 8 else f"{array.dtype} {list(array.shape)}"
        raise InputError(f"{what} should be a sequence of integers, got {shown}")
    if array.dtype == np.uint64 and int(array.max()) > np.iinfo(np.int64).max:
        raise InputError(f"{what} should be a sequence of integers of 64 bits, got {array.max()}")
    return array.astype(np.int64, copy=False)


def check_range(what: str, values: Array, limit: int | None, table: str = "") -> None:
    """Raise :class:`InputError` naming the first of ``values`` that is negative or not less than ``limit``."""
    wrong = values < 0 if limit is None else (values < 0) | (values >= limit)
    if wrong.any():
        known = "0 and more" if limit is None else f"0 to {limit - 1}"
        raise InputError(f"{what} {values[wrong][0]} is outside of the model's {table or what}: expected {known}")
