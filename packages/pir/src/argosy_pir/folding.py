"""Folding: what is known about a value or an operation at compile time. Dialects do the arithmetic, not this
package."""

from __future__ import annotations

from collections.abc import Sequence

from argosy_pir.attributes import Dense
from argosy_pir.builder import Builder
from argosy_pir.dialect import get_definition
from argosy_pir.errors import PassError
from argosy_pir.opdef import CONSTANT
from argosy_pir.types import TensorType
from argosy_pir.values import OpResult, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argosy_pir.core import Operation
    from argosy_pir.opdef import OpDef


def constant_of(value: Value) -> Dense | None:
    """The tensor that ``value`` is known to hold, if a constant operation makes it."""
    if not isinstance(value, OpResult):
        return None
    definition = get_definition(value.op.name)
    if definition is None or CONSTANT not in definition.traits:
        return None
    data = value.op.attributes.get("value")
    return data if isinstance(data, Dense) else None


def fold_operation(op: Operation) -> list[Value] | None:
    """Values that can stand for all results of ``op``; None where it does not fold.

    Asks the dialect's ``fold`` and makes constants for the attributes it gives, before ``op``. Raises
    ``PassError`` where ``fold`` gives something that does not fit the results.
    """
    definition = get_definition(op.name)
    return None if definition is None or not folds(definition) else apply_fold(definition, op)


def folds(definition: OpDef) -> bool:
    """Whether operations of this description may fold."""
    return definition.fold is not None and CONSTANT not in definition.traits


def apply_fold(definition: OpDef, op: Operation) -> list[Value] | None:
    """:func:`fold_operation` for the description of ``op``, which folds."""
    assert definition.fold is not None
    folded = definition.fold(op)
    if folded is None:
        return None
    items = list(folded) if isinstance(folded, Sequence) else [folded]
    if len(items) != len(op.results):
        raise PassError(f"fold of '{op.name}' gives {len(items)} values for {len(op.results)} results")
    if any(item is None for item in items):
        return None
    for item, result in zip(items, op.results, strict=True):
        if not isinstance(item, (Value, Dense)) or item.type != result.type:
            raise PassError(f"fold of '{op.name}' gives {item!r} for a result of type {result.type}")
    return [_materialise(item, op) for item in items]


def _materialise(item: Value | Dense, op: Operation) -> Value:
    if isinstance(item, Value):
        return item
    assert isinstance(item.type, TensorType)
    return Builder.before(op).constant(item.type, item)
