"""Operators to primitives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy_phi_ops.checks.index_options import unchecked
from argosy_phi_ops.settings import CHECK_INDEX
from argosy_pir.program import Program


def to_primitives(program: Program, options: Mapping[str, Any] | None = None) -> Program:
    """The program with its operators decomposed, and without checks of indices where ``options`` leave them out;
    itself where there is nothing to do."""
    if any(op.dialect == "phi" for op in program.walk()):
        from argosy_phi_ops.passes.decompose import Decompose

        program = program.clone()
        Decompose().run(program)
    return program if CHECK_INDEX.chosen(options or {}) else unchecked(program)
