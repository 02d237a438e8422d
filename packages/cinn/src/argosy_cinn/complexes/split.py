"""Complex values become pairs of real ones before anything else happens to a program.

What follows (folding, fusion, vectors, matrix products) then knows real numbers only. A complex tensor in memory is
interleaved as everywhere else: ``prim.real`` and ``prim.imag`` of it are loads of every second number, and
``prim.complex`` stores two. Only inputs, states, outputs and what Fourier transforms and decompositions read and make
are such tensors.
"""

from __future__ import annotations

from argosy_cinn.complexes.functions import is_complex
from argosy_cinn.complexes.rules import RULES
from argosy_phi_ops.context import building
from argosy_pir.builder import Builder
from argosy_pir.core import Operation
from argosy_pir.program import Program


def split_complex(program: Program) -> None:
    """Rewrite all operations of ``program`` on complex numbers that there is a rule for, in place."""
    for op in list(program.block):
        rule = RULES.get(op.name) if _touches(op) else None
        if rule is None:
            continue
        with building(Builder.before(op)):
            results = rule(op)
        if results is not None:
            op.replace_with(results)


def _touches(op: Operation) -> bool:
    return any(is_complex(v) for v in (*op.operands, *op.results))
