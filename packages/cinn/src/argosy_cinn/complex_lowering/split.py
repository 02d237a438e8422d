"""Complex values become pairs of real ones before anything else happens to a program.

What follows (folding, fusion, vectors, matrix products) then knows real numbers only. A complex tensor in memory is
interleaved as everywhere else: ``prim.real`` and ``prim.imag`` of it are loads of every second number, and
``prim.complex`` stores two. Only inputs, states, outputs and what Fourier transforms and decompositions read and make
are such tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy_cinn.complex_lowering.functions import is_complex
from argosy_cinn.complex_lowering.rules import RULES
from argosy_cinn.rewrites.builders import Rule, replacements
from argosy_pir.core import Operation
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.rewrite.driver import apply_patterns


@register_pass("split-complex")
@dataclass(frozen=True)
class SplitComplex(Pass):
    """Rewrites all operations on complex numbers that there is a rule for as operations on pairs of real ones."""

    def run(self, program: Program) -> bool:
        """Rewrite the program's own block; True where anything changed."""
        found = [op for op in program.block if _touches(op)]
        return bool(found) and apply_patterns(found, _PATTERNS, max_iterations=1, fold=False).has_changed


def _restrict_to_complex(rule: Rule) -> Rule:
    """A rule for operations that take or give a complex number."""
    return lambda op: rule(op) if _touches(op) else None


def _touches(op: Operation) -> bool:
    for value in (*op.operands, *op.results):  # any() takes twice as long
        if is_complex(value):
            return True
    return False


_PATTERNS = replacements("split-complex", {name: _restrict_to_complex(rule) for name, rule in RULES.items()})
