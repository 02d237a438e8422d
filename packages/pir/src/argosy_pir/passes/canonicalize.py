"""canonicalize: fold operations and apply the canonicalisation patterns of all dialects in the program."""

from __future__ import annotations

from dataclasses import dataclass

from argosy_pir.dialect import get_dialect
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.rewrite.driver import apply_patterns
from argosy_pir.rewrite.pattern import Pattern


@register_pass("canonicalize")
@dataclass(frozen=True)
class Canonicalize(Pass):
    """Rewrites to a simpler form of the same meaning; stops after ``max_iterations`` rounds."""

    max_iterations: int = 10
    fold: bool = True

    def run(self, program: Program) -> bool:
        """Apply folds and patterns; True where any applied."""
        patterns = dialect_patterns({op.dialect for op in program.walk()})
        return apply_patterns(program, patterns, self.max_iterations, self.fold).has_changed


def dialect_patterns(names: set[str]) -> list[Pattern]:
    """The canonicalisation patterns of the dialects ``names``; unknown dialects have none."""
    found: list[Pattern] = []
    for name in sorted(names):
        dialect = get_dialect(name)
        if dialect is not None:
            if callable(dialect.patterns):
                dialect.patterns = tuple(dialect.patterns())
            found.extend(dialect.patterns)
    return found
