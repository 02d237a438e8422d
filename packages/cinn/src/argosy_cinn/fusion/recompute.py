"""Values that are kept for later only (a forward activation for the backward sweep) and are cheap to compute again.

Such a value is taken out of memory where every later reader reads all large tensors it is made of anyway: then
computing it again costs some arithmetic, and saves its memory, its store and its loads.
"""

from __future__ import annotations

from argosy_cinn.forms.cost import COSTS
from argosy_cinn.fusion.group import Group
from argosy_cinn.fusion.groups import Fusion
from argosy_cinn.fusion.memory import Memory
from argosy_cinn.lowering.classify import INLINE
from argosy_cinn.lowering.elements import VIEWS, splat_constant
from argosy_cinn.shapes import count, estimate
from argosy_pir.rewrite.fuel import spend
from argosy_pir.values import OpResult, Value

_MOST_COST = 40
_LARGE = 1 << 14


def drop_recomputed(memory: Memory, fusion: Fusion) -> bool:
    """Take values out of ``memory``; whether any was, so that fusion has to run again."""
    readers: dict[Value, list[Group]] = {}
    for group in fusion.groups.values():
        for value in group.reads:
            readers.setdefault(value, []).append(group)
    stored = {v for v in readers if v in fusion.maker} | memory.returned | set(memory.program.block.arguments)
    dropped = False
    for value in list(memory.values):
        may_go = value in readers and _may_go(value, memory, fusion, readers[value], stored)
        if may_go and spend("recompute", value):
            del memory.values[value]
            stored.discard(value)
            dropped = True
    return dropped


def _may_go(value: Value, memory: Memory, fusion: Fusion, readers: list[Group], stored: set[Value]) -> bool:
    maker = fusion.maker.get(value)
    if not isinstance(value, OpResult) or memory.kinds.get(value.op) != INLINE or maker is None:
        return False
    if value in memory.returned or estimate(count(value)) < _LARGE:
        return False
    if any(_needs_memory(group, value) for group in readers):
        return False
    cost, leaves = _pull(value, memory)
    if cost > _MOST_COST:
        return False
    large = {leaf for leaf in leaves if 2 * estimate(count(leaf)) >= estimate(count(value))}
    return all(leaf in stored and (leaf in g.reads or leaf in g.members) for leaf in large for g in readers)


def _needs_memory(group: Group, value: Value) -> bool:
    if not group.kind.takes_readers:
        return True
    product = group.product
    return product is not None and value in product.buffers


def _pull(value: Value, memory: Memory) -> tuple[int, set[Value]]:
    """What it costs to compute an element from memory, and what is read for it."""
    cost, leaves, seen = 0, set(), set()
    stack = [value]
    while stack:
        current = stack.pop()
        assert isinstance(current, OpResult)
        name = current.op.kind
        cost += 0 if name in VIEWS else COSTS.get(name, 1)
        for operand in current.op.operands:
            if operand in memory.values:
                leaves.add(operand)
            elif operand not in seen and splat_constant(operand) is None:
                seen.add(operand)
                stack.append(operand)
    return cost, leaves
