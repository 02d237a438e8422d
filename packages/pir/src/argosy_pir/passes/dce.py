"""dce: removes what has no effect and whose results nobody uses, in regions and through them."""

from __future__ import annotations

from dataclasses import dataclass

from argosy_pir.core import Block, Operation
from argosy_pir.effects import is_dead
from argosy_pir.passes.dead_results import drop_dead_results
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.rewrite.fuel import spend


@register_pass("dce")
@dataclass(frozen=True)
class DeadCode(Pass):
    """Removes dead operations, and the dead results and carried values of control flow."""

    def run(self, program: Program) -> bool:
        """Sweep the program and every function backwards; True where anything went."""
        regions = [program.region, *(function.region for function in program.functions.values())]
        return any([_sweep(block) for region in regions for block in region.blocks])


def _sweep(block: Block) -> bool:
    """One pass from the end suffices for a block: users come after what they use."""
    changed = False
    for op in reversed(block):
        if is_dead(op):
            if spend("dce", op):
                op.erase()
                changed = True
        elif op.regions:
            changed |= _sweep_regions(op)
    return changed


def _sweep_regions(op: Operation) -> bool:
    """Drop dead results first: what computed them inside is dead then."""
    replaced = drop_dead_results(op)
    op = replaced or op
    changed = [_sweep(block) for region in op.regions for block in region.blocks]
    return replaced is not None or any(changed)
