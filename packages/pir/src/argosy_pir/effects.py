"""What an operation does besides its results."""

from __future__ import annotations

from argosy_pir.dialect import get_definition
from argosy_pir.opdef import PURE, TERMINATOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argosy_pir.core import Operation

_PURE = frozenset({PURE})
_INSIDE = frozenset({PURE, TERMINATOR})


def is_pure(op: Operation) -> bool:
    """Whether nothing happens but the results: the operation is known as pure, and so is all in its
    regions."""
    return _has_no_effect(op, _PURE)


def is_dead(op: Operation) -> bool:
    """Whether it can go: nobody uses a result, and nothing else happens."""
    return not any(result._uses for result in op.results) and is_pure(op)


def _has_no_effect(op: Operation, allowed: frozenset[str]) -> bool:
    """Whether the operation has one of the ``allowed`` traits, and so has all in its regions, ends of blocks aside."""
    definition = get_definition(op.name)
    if definition is None or allowed.isdisjoint(definition.traits):
        return False
    return all(_has_no_effect(inner, _INSIDE) for region in op.regions for block in region.blocks for inner in block)
