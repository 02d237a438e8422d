"""cse: common subexpression elimination. Pure operations with equal operands and attributes become one.

Regions see what the blocks around them compute, so an operation there is replaced by an equal one outside;
never the other way round.
"""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass

from argosy_pir.attributes import attributes_key
from argosy_pir.core import Block, Operation
from argosy_pir.dialect import get_definition
from argosy_pir.effects import is_pure
from argosy_pir.opdef import COMMUTATIVE
from argosy_pir.passes.registry import Pass, register_pass
from argosy_pir.program import Program
from argosy_pir.rewrite.fuel import spend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any

    Table = MutableMapping[Any, Operation]


@register_pass("cse")
@dataclass(frozen=True)
class CommonSubexpressions(Pass):
    """Merges equal pure operations, constants included. Operations with regions of their own stay.

    Operations with different annotations stay apart, unless ``ignore_annotations``: then those of the first remain.
    """

    ignore_annotations: bool = False

    def run(self, program: Program) -> bool:
        """Merge in the program and in every function; True where any operation went."""
        regions = [program.region, *(function.region for function in program.functions.values())]
        changed = [_merge(block, {}, self.ignore_annotations) for region in regions for block in region.blocks]
        return any(changed)


def _merge(block: Block, table: Table, ignore_annotations: bool) -> bool:
    changed = False
    for op in block:
        for region in op.regions:
            for inner in region.blocks:
                changed |= _merge(inner, ChainMap({}, table), ignore_annotations)
        if op.regions or not op.results or not is_pure(op):
            continue
        key = _key(op)
        if op.annotations and not ignore_annotations:
            key = (key, attributes_key(op.annotations))
        first = table.setdefault(key, op)
        if first is not op and spend("cse", op):
            op.replace_with(first.results)
            changed = True
    return changed


def _key(op: Operation) -> Any:
    """Equal for operations that compute the same; a commutative operation's first two operands are
    ordered."""
    operands = [id(value) for value in op._operands]
    if len(operands) > 1 and operands[0] > operands[1]:
        definition = get_definition(op.name)
        if definition is not None and COMMUTATIVE in definition.traits:
            operands[0], operands[1] = operands[1], operands[0]
    types = tuple([result.type for result in op.results])
    return (op.name, tuple(operands), types, attributes_key(op.attributes) if op.attributes else None)
