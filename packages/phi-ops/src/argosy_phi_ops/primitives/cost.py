"""The cost of applying a primitive: operations and bytes. Who knows a machine makes seconds of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from argosy_pir.types import ITEM_SIZES, TensorType, Type

__all__ = ["UNKNOWN", "Cost", "cost_of_moving", "elements", "no_cost"]

UNKNOWN = 1024
"""The number that a symbolic size counts as."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Bytes read and written, and operations on single elements, a multiplication with its addition counting as two."""

    read: float = 0
    written: float = 0
    operations: float = 0


def no_cost(*_: Any, **__: Any) -> Cost:
    """The cost rule of a view: the elements of an operand, or numbers of positions, which who reads them computes."""
    return Cost()


def elements(shape: Iterable[Any]) -> float:
    """The number of elements of ``shape``, a symbolic size counting as :data:`UNKNOWN`."""
    return prod((float(n) if isinstance(n, int) else float(UNKNOWN) for n in shape), start=1.0)


def cost_of_moving(operands: Sequence[Type], results: Sequence[Type], operations: float) -> Cost:
    """The cost of reading all operands and writing all results with so many ``operations``."""
    return Cost(sum(map(_bytes, operands)), sum(map(_bytes, results)), operations)


def _bytes(type_: Type) -> float:
    return elements(type_.shape) * ITEM_SIZES[type_.dtype] if isinstance(type_, TensorType) else 0.0
