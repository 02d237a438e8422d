"""Operators without a decomposition because the size of their result depends on values.

Once they have run the size is known: they are recorded as the indexing that they turned out to be, a program of
primitives, which has derivatives of every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from argosy_autograd.derivatives import ProgramOperator
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Builder, Program, TensorType
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["EQUIVALENTS"]

Equivalent = tuple[ProgramOperator, list[Any]]


def _type(x: Tensor) -> TensorType:
    return TensorType(x.payload.shape, x.payload.dtype.name)


def _masked_select(operands: Sequence[Any], results: Sequence[Tensor]) -> Equivalent:
    x, mask = operands
    shape = np.broadcast_shapes(x.payload.shape, mask.payload.shape)
    positions = np.argwhere(np.broadcast_to(mask.payload.ndarray, shape))
    indices = Tensor._wrap(StridedArray(positions))
    return _selection(_type(x), _type(indices), shape), [x, indices]


@lru_cache(maxsize=256)
def _selection(x: TensorType, indices: TensorType, shape: tuple[int, ...]) -> ProgramOperator:
    program = Program("masked_select")
    source, where = program.add_input(x), program.add_input(indices)
    with emit_at(Builder.at_end(program.block)):
        spread = prim.broadcast_to(source, shape)
        program_result = prim.gather(spread, where, axes=tuple(range(len(shape))))
    program.set_outputs([program_result])
    return ProgramOperator("masked_select", program)


def _bincount(operands: Sequence[Any], results: Sequence[Tensor]) -> Equivalent | None:
    if len(operands) != 2:
        return None
    x, weights = operands
    return _weighted_count(_type(x), _type(weights), results[0].payload.shape), [x, weights]


@lru_cache(maxsize=256)
def _weighted_count(x: TensorType, weights: TensorType, shape: tuple[int, ...]) -> ProgramOperator:
    program = Program("bincount")
    numbers, updates = program.add_input(x), program.add_input(weights)
    with emit_at(Builder.at_end(program.block)):
        indices = prim.reshape(numbers, shape=(*x.shape, 1))
        zeros = prim.constant(0, weights.dtype, shape)
        total = prim.scatter(zeros, indices, updates, axes=(0,), kind="add")
    program.set_outputs([total])
    return ProgramOperator("bincount", program)


EQUIVALENTS: dict[str, Callable[[Sequence[Any], Sequence[Tensor]], Equivalent | None]] = {
    "masked_select": _masked_select,
    "bincount": _bincount,
}
"""By operator name: the equivalent operator and its operands, given operands and results of an application."""
