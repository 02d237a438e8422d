"""Results of control flow that nobody needs: they are dropped together with what carries them through the
regions."""

from __future__ import annotations

from argosy_pir.core import Block, Operation
from argosy_pir.effects import is_pure
from argosy_pir.rewrite.fuel import spend
from argosy_pir.values import BlockArgument, OpResult, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def drop_dead_results(op: Operation) -> Operation | None:
    """The operation that takes the place of ``op`` with fewer results, or None where it keeps all.

    A result of ``control.if`` is dead when unused; so is a stacked result of a scan. A carried value is dead
    when its result is unused and it helps to compute nothing but itself: found by propagating need through
    the region until nothing changes.
    """
    layout = _LAYOUTS.get(op.name)
    if layout is None or all(result._uses for result in op.results):
        return None
    first_operand, first_argument = layout(op)
    stacked = len(op.results) - (len(op.operands) - first_operand) if op.name != "control.if" else len(op.results)
    keep = _find_needed(op, stacked, first_argument)
    if all(keep) or not spend("dead-result"):
        return None
    return _rebuild(op, keep, stacked, first_operand, first_argument)


# Per operation: where the carried values begin among the operands and among the region's arguments.
_LAYOUTS: dict[str, Callable[[Operation], tuple[int, int]]] = {
    "control.if": lambda op: (1, 0),
    "control.while": lambda op: (0, 0),
    "control.for": lambda op: (3, 1),
    "control.scan": lambda op: (op.attributes["inputs"], op.attributes["inputs"]),
}


def _find_needed(op: Operation, stacked: int, first_argument: int) -> list[bool]:
    """Which results to keep."""
    keep = [bool(result._uses) for result in op.results]
    if stacked == len(keep):
        return keep
    while True:
        live = _live_arguments(op, keep)
        found = list(keep)
        for argument in live:
            position = stacked + argument.index - first_argument
            if argument.index >= first_argument:
                found[position] = True
        if found == keep:
            return keep
        keep = found


def _live_arguments(op: Operation, keep: Sequence[bool]) -> set[BlockArgument]:
    """The arguments of the regions that kept yields, conditions and effects depend on."""
    live: set[BlockArgument] = set()
    for region in op.regions:
        block = region.block
        last = block.last
        assert last is not None
        roots = list(last.operands)
        if last.name == "control.yield":
            roots = [value for value, kept in zip(roots, keep, strict=True) if kept]
        live |= _reachable_arguments(block, roots)
    return live


def _reachable_arguments(block: Block, roots: list[Value]) -> set[BlockArgument]:
    """The arguments of ``block`` that ``roots`` and its impure operations depend on."""
    pending = list(roots)
    for op in block:
        if op is not block.last and not is_pure(op):
            pending.extend(_inputs(op))
    seen: set[Value] = set()
    while pending:
        value = pending.pop()
        if value not in seen:
            seen.add(value)
            if isinstance(value, OpResult):
                pending.extend(_inputs(value.op))
    return {value for value in seen if isinstance(value, BlockArgument) and value.block is block}


def _inputs(op: Operation) -> list[Value]:
    return [value for inner in op.walk() for value in inner.operands]


def _rebuild(op: Operation, keep: Sequence[bool], stacked: int, first_operand: int, first_argument: int) -> Operation:
    """Make the smaller operation around the same regions and put it in place of ``op``."""
    carried = range(stacked, len(keep))
    gone = [i for i in carried if not keep[i]]
    for region in op.regions:
        _shrink(region.block, keep, [first_argument + i - stacked for i in gone])
        region.parent = None
    dropped = {first_operand + i - stacked for i in gone}
    operands = [value for i, value in enumerate(op.operands) if i not in dropped]
    kept = [result for result, needed in zip(op.results, keep, strict=True) if needed]
    made = Operation(op.name, operands, [r.type for r in kept], op.attributes, op.regions, op.location)
    made.annotations = op.annotations
    assert op.parent is not None
    op.parent.insert_before(op, made)
    for old, new in zip(kept, made.results, strict=True):
        old.replace_all_uses_with(new)
    op.regions = ()
    op.erase()
    return made


def _shrink(block: Block, keep: Sequence[bool], arguments: Sequence[int]) -> None:
    """Yield only what is kept, and drop the arguments once nothing that is left uses them."""
    last = block.last
    assert last is not None
    if last.name == "control.yield":
        last.set_operands([value for value, kept in zip(last.operands, keep, strict=True) if kept])
    for op in reversed(block):
        if op is not last and is_pure(op) and not any(result._uses for result in op.results):
            op.erase()
    for index in sorted(arguments, reverse=True):
        block.erase_argument(index)
