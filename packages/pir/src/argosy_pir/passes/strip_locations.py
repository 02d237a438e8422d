"""strip-locations: forgets where operations come from, for text that should not depend on it."""

from __future__ import annotations

from dataclasses import dataclass

from argosy_pir.location import UNKNOWN
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program


@register_pass("strip-locations")
@dataclass(frozen=True)
class StripLocations(Pass):
    """Makes every location unknown."""

    def run(self, program: Program) -> bool:
        """Strip all; True where any was known."""
        changed = False
        for op in program.walk():
            if not op.location.is_unknown:
                op.location = UNKNOWN
                changed = True
        return changed
