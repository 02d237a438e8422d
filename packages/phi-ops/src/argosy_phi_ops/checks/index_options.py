"""Programs whose indices may be out of range, where :data:`argosy_phi_ops.settings.CHECK_INDEX` says so."""

from __future__ import annotations

from argosy_phi_ops.checks.index_errors import CHECK
from argosy_pir.program import Program

__all__ = ["unchecked"]


def unchecked(program: Program) -> Program:
    """``program``, or a copy without its checks."""
    if not any(op.name == CHECK for op in program.walk()):
        return program
    copy = program.clone()
    for op in [op for op in copy.walk() if op.name == CHECK]:
        op.erase()
    return copy
