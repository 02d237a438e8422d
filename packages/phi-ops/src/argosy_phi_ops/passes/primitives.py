"""Passes that make a program of primitives of what users have captured, before any compiler sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy_phi_ops.checks.index_errors import CHECK
from argosy_phi_ops.settings import CHECK_INDEX
from argosy_pir.passes import Pass
from argosy_pir.program import Program

__all__ = ["primitive_passes", "to_primitives"]


def primitive_passes(options: Mapping[str, Any] | None = None) -> tuple[Pass, ...]:
    """``decompose``, and ``drop-index-checks`` where the options of a compiler leave checks of indices out."""
    from argosy_phi_ops.passes.decompose import Decompose  # a process that finds all its programs never loads it
    from argosy_phi_ops.passes.drop_index_checks import DropIndexChecks

    return (Decompose(),) if CHECK_INDEX.resolve(options or {}) else (Decompose(), DropIndexChecks())


def to_primitives(program: Program, options: Mapping[str, Any] | None = None) -> Program:
    """A copy of the program after :func:`primitive_passes`; itself where they have nothing to do."""
    checked = CHECK_INDEX.resolve(options or {})
    if all(op.dialect != "phi" and (checked or op.name != CHECK) for op in program.walk()):
        return program
    program = program.clone()
    for step in primitive_passes(options):
        step.run(program)
    return program
