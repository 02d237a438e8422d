"""What operations with regions read."""

from __future__ import annotations

from argosy_pir.core import Operation
from argosy_pir.values import Value


def host_reads(op: Operation) -> set[Value]:
    """Values that an operation reads, from its regions, too."""
    own = {v for inner in op.walk() for v in inner.operands}
    made = {r for inner in op.walk() for r in inner.results}
    arguments = {
        a for inner in op.walk() for region in inner.regions for block in region.blocks for a in block.arguments
    }
    return own - made - arguments
