"""Operators to primitives."""

from __future__ import annotations

from argosy_pir.program import Program


def to_primitives(program: Program) -> Program:
    """The program with its operators decomposed; itself where there are none."""
    if not any(op.dialect == "phi" for op in program.walk()):
        return program
    from argosy_phi_ops.passes.decompose import Decompose

    copy = program.clone()
    Decompose().run(copy)
    return copy
