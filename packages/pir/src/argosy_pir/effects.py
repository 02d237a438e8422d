"""What an operation does besides its results."""

from __future__ import annotations

from argosy_pir.dialect import get_definition
from argosy_pir.opdef import PURE, TERMINATOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argosy_pir.core import Operation


def is_pure(op: Operation) -> bool:
    """Whether nothing happens but the results: the operation is known as pure, and so is all in its
    regions."""
    definition = get_definition(op.name)
    if definition is None or PURE not in definition.traits:
        return False
    return all(_is_pure_inside(inner) for region in op.regions for block in region.blocks for inner in block)


def is_dead(op: Operation) -> bool:
    """Whether it can go: nobody uses a result, and nothing else happens."""
    return not any(result._uses for result in op.results) and is_pure(op)


def _is_pure_inside(op: Operation) -> bool:
    definition = get_definition(op.name)
    return (definition is not None and TERMINATOR in definition.traits) or is_pure(op)
