"""Simplification: one forward sweep that folds operations of numbers and brings others into a normal form.

Fusion relies on that form: no identities (reshape to the same shape, cast to the same dtype, copies), no chains of
reshapes or transposes, broadcasts without axes of size one, powers with small constant exponents as products,
reductions over no elements as constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy_cinn.rewrites import arithmetic, layout, products, reductions
from argosy_cinn.rewrites.builders import Replacement, Rule
from argosy_cinn.rewrites.reductions import of_nothing
from argosy_phi_ops.primitives.dialect import DIALECT
from argosy_pir.core import Operation
from argosy_pir.effects import is_dead
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.rewrite.constants import fold_patterns
from argosy_pir.rewrite.driver import apply_patterns
from argosy_pir.rewrite.pattern import Pattern, PatternTable

RULES: dict[str, Rule] = {
    **layout.RULES,
    **arithmetic.RULES,
    **reductions.RULES,
    **products.RULES,
}
"""By primitive."""


@register_pass("simplify")
@dataclass(frozen=True)
class Simplify(Pass):
    """Folds primitives of numbers and brings others into a normal form, each before those that read it."""

    def run(self, program: Program) -> bool:
        """Rewrite the program's own block; True where anything changed."""
        return apply_patterns(program.block, PATTERNS, max_iterations=1, fold=False).has_changed


def simplify_operations(operations: Sequence[Operation]) -> None:
    """Simplify operations that were put into a simplified program, and remove those of them that are dead then."""
    if not operations:
        return
    before, end = operations[0].previous, operations[-1].next
    apply_patterns(operations, PATTERNS, max_iterations=1, fold=False)
    assert end is not None
    op = end.previous
    while op is not None and op is not before:
        earlier = op.previous
        if is_dead(op):
            op.erase()
        op = earlier


def _patterns() -> list[Pattern]:
    rules = [Replacement(f"rewrite.{name}", f"prim.{name}", rule) for name, rule in RULES.items()]
    summed = [name for name in RULES if name == "dot_general" or name.startswith("reduce_")]
    empty = [Replacement("empty-reduction", f"prim.{name}", of_nothing, benefit=0) for name in summed]
    return [*fold_patterns(DIALECT), *rules, *empty]


PATTERNS = PatternTable(_patterns())
"""Of `Simplify`; ``empty-reduction`` is no optimisation: a loop nest without rows or columns is that of something
else."""
