"""The pass ``drop-index-checks``: indices may be out of range."""

from __future__ import annotations

from dataclasses import dataclass

from argosy_phi_ops.checks.index_errors import CHECK
from argosy_pir.passes import Pass, register_pass
from argosy_pir.program import Program

__all__ = ["DropIndexChecks"]


@register_pass("drop-index-checks")
@dataclass(frozen=True)
class DropIndexChecks(Pass):
    """Remove ``prim.check_index``: what is out of range is clamped where it is read and dropped where it is written."""

    def run(self, program: Program) -> bool:
        """Erase them; returns whether there were any."""
        found = [op for op in program.walk() if op.name == CHECK]
        for op in found:
            op.erase()
        return bool(found)
