"""Constant folding as patterns, for rewritings that fold together with other things."""

from __future__ import annotations

from argosy_pir.folding import apply_fold, folds
from argosy_pir.rewrite.pattern import Pattern, Rewriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argosy_pir.core import Operation
    from argosy_pir.dialect import Dialect
    from argosy_pir.opdef import OpDef


class Fold(Pattern):
    """The fold of one kind of operation, before other patterns of it."""

    name = "fold"
    benefit = 2

    def __init__(self, definition: OpDef) -> None:
        self.root = definition.name
        self._definition = definition

    def rewrite(self, op: Operation, rewriter: Rewriter) -> bool:
        """Put what is known of the results in the place of ``op``."""
        values = apply_fold(self._definition, op)
        if values is not None:
            rewriter.replace(op, values)
        return values is not None


def fold_patterns(dialect: Dialect) -> list[Pattern]:
    """The folds of all operations of a dialect that have one."""
    return [Fold(definition) for definition in dialect.ops.values() if folds(definition)]
