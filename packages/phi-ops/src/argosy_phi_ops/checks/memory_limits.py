"""Results that the machine has no memory for, refused by name before anything is allocated.

Eager execution looks only where it may matter: where the attributes of an application, taken together with its largest
operand, could stand for very many elements. What exactly would come out, the operator's decomposition tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

import argosy_hwadapt
from argosy_phi_ops.errors import OperatorError
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import as_dtype

if TYPE_CHECKING:
    from argosy_phi_ops.declare.operator import Operator

__all__ = ["UNASKED", "OperatorMemoryError", "check_attributes", "check_program"]

_MANY = 1 << 28
UNASKED = 1 << 30
"""Bytes that are asked for without a look at what the machine has."""
_FREE = frozenset(
    "builtin.constant prim.broadcast prim.reshape prim.transpose prim.slice prim.reverse builtin.return".split()
)
"""Operations that the interpreter executes without memory for their results."""
_DRAWS = ("counter", "segments")


class OperatorMemoryError(OperatorError, MemoryError):
    """An operator's results, or what it needs on the way, do not fit in memory."""


def check_attributes(op: Operator, arrays: Sequence[Any], attributes: Mapping[str, Any]) -> None:
    """Raise :class:`OperatorMemoryError` where the kernel of ``op`` would make results that do not fit."""
    if op.opaque or op.view or _elements(arrays, attributes) < _MANY:
        return
    types = [TensorType(np.shape(a), as_dtype(np.asarray(a).dtype).name) for a in arrays]
    settled = {name: 0 if name == "counter" else value for name, value in attributes.items()}
    try:
        results = op.expand(types, settled).result_types
    except (OperatorError, NotImplementedError):  # the kernel has its own words for these
        return
    for result in results:
        _check(op.name, result)


def check_program(name: str, program: Program) -> None:
    """Raise :class:`OperatorMemoryError` where a value that the interpreter of ``program`` would make does not fit."""
    for value in program.outputs:
        _check(name, value.type)
    for op in program.block:
        if op.name not in _FREE:
            for result in op.results:
                _check(name, result.type)


def _elements(arrays: Sequence[Any], attributes: Mapping[str, Any]) -> int:
    """A number of elements that results hardly exceed: an integer may count for every axis."""
    largest = max((a for a in arrays if isinstance(a, np.ndarray)), key=lambda a: a.size, default=None)
    amount, rank = (1, 1) if largest is None else (max(largest.size, 1), max(largest.ndim, 1))
    for name, value in attributes.items():
        if type(value) is int and name not in _DRAWS:
            amount *= max(abs(value), 1) ** rank
        elif type(value) is tuple and name not in _DRAWS:
            amount *= prod(max(abs(n), 1) for n in value if type(n) is int)
    return amount


def _check(name: str, result: Any) -> None:
    if not isinstance(result, TensorType):
        return
    sizes = [n for n in result.shape if isinstance(n, int)]
    if len(sizes) < len(result.shape):
        return
    nbytes = prod(sizes) * as_dtype(result.dtype).itemsize
    if nbytes <= UNASKED:
        return
    free = argosy_hwadapt.available_memory()
    if nbytes > free:
        raise OperatorMemoryError(
            f"{name}: a result of shape {list(result.shape)} and dtype {result.dtype} takes {nbytes / 2**30:,.1f} GiB; "
            f"{free / 2**30:,.1f} GiB are free"
        )
