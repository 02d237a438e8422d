"""The pass ``recompute-regions``: what marked regions compute is computed again for their gradients.

As in Chen et al., "Training deep nets with sublinear memory cost", 2016. A region is the operations with one number as
their annotation ``recompute``. Between its forward and its backward pass its inputs are kept alone, and what operations
annotated ``kept`` compute. What reads these the second time waits for a gradient, so that no pass finds both times
equal, and no order runs both at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import BlockArgument, Builder, Operation, Program, TensorType, Value
from argosy_pir.effects import is_pure
from argosy_pir.passes import Pass, register_pass
from argosy_pir.values import OpResult

__all__ = ["RecomputeRegions"]

_REGION, _PHASE = "recompute", "phase"
_FEW = 64


@register_pass("recompute-regions")
@dataclass(frozen=True)
class RecomputeRegions(Pass):
    """Computes marked regions again before their gradients; run ``expand-gradients`` and ``cse`` before, ``dce`` after.

    Regions whose gradients come first of all are left: nothing is read between both passes. What communicates, or
    is no primitive, is computed once.
    """

    def run(self, program: Program) -> bool:
        """Returns whether anything is computed again."""
        place = {op: number for number, op in enumerate(program.block)}
        regions: dict[int, list[Operation]] = {}
        readers: dict[int, list[Operation]] = {}
        latest: dict[Operation, Value] = {}  # before each operation of a backward pass: the last value of one
        last: Value | None = None
        for op in program.block:
            number = op.annotations.get(_REGION)
            if _PHASE not in op.annotations:
                if number is not None and _is_repeatable(op):
                    regions.setdefault(number, []).append(op)
                continue
            if number is not None:
                readers.setdefault(number, []).append(op)
            if last is not None:
                latest[op] = last
            last = next(filter(_is_gradient, op.results), last)
        return any(
            [_recompute(ops, readers.get(number, []), place, latest, program) for number, ops in regions.items()]
        )


def _recompute(
    region: Iterable[Operation], readers: Iterable[Operation], place: Mapping[Operation, int],
    latest: Mapping[Operation, Value], program: Program,
) -> bool:  # fmt: skip
    """Let ``readers`` read what is computed again. Whether there is anything."""
    own = set(region)
    reading = [op for op in readers if any(_maker(x) in own for x in op.operands)]
    first = next((op for op in reading if op in latest), None)
    if first is None:
        return False
    needed = _closure([x for op in reading for x in op.operands], own)
    small = {state.argument for state in program.states if _size(state.argument) <= _FEW}
    mapping: dict[Value, Value] = {}
    with emit_at(Builder.before(first), first.location):
        start = _zero_after(latest[first])
        for op in sorted(needed, key=place.__getitem__):
            for x in op.operands:
                if _maker(x) not in needed and x not in mapping:
                    mapping[x] = _delay(x, start) if not isinstance(x, BlockArgument) or x in small else x
    for op in sorted(needed, key=place.__getitem__):
        again = op.clone(mapping)
        again.annotations = first.annotations
        program.block.insert_before(first, again)
    for op in reading:
        if place[op] >= place[first]:
            for position, x in enumerate(op.operands):
                if _maker(x) in needed:
                    op.set_operand(position, mapping[x])
    return True


def _closure(values: Iterable[Value], own: set[Operation]) -> set[Operation]:
    """The operations of a region that values depend on within it."""
    found: set[Operation] = set()
    pending = list(values)
    while pending:
        op = _maker(pending.pop())
        if op in own and op not in found:
            assert op is not None
            found.add(op)
            pending += op.operands
    return found


def _zero_after(gradient: Value) -> Value:
    """An integer that is known when ``gradient`` is; as the start of a slice of everything it is moved to zero."""
    count = len(gradient.shape)
    head = prim.slice(gradient, start=(0,) * count, limit=(1,) * count, stride=(1,) * count)
    element = prim.reshape(head, shape=())
    made: Value = prim.cast(prim.ne(element, element), dtype="int32")
    return made


def _delay(x: Value, start: Value) -> Value:
    """``x``, not before ``start`` is known. Constants are as they are."""
    if x.op.name == "builtin.constant" if isinstance(x, OpResult) else not isinstance(x.type, TensorType):
        return x
    shape = tuple(x.shape)
    whole = x if shape else prim.reshape(x, shape=(1,))
    others = [prim.constant(0, "int32") for _ in whole.shape[1:]]
    made: Value = prim.dynamic_slice(whole, start, *others, sizes=tuple(whole.shape))
    if not shape:
        made = prim.reshape(made, shape=())
    return made


def _maker(x: Value) -> Operation | None:
    return x.op if isinstance(x, OpResult) else None


def _is_repeatable(op: Operation) -> bool:
    primitive = PRIMITIVES.get(op.kind) if op.dialect == "prim" and "kept" not in op.annotations else None
    return primitive is not None and primitive.category != "communication" and is_pure(op) and not op.regions


def _is_gradient(x: Value) -> bool:
    """Whether a value is one that others may wait for: floats, some of them."""
    type = x.type
    return isinstance(type, TensorType) and type.is_static and "float" in type.dtype and _size(x) > 0


def _size(x: Value) -> int:
    return prod(n for n in x.shape if isinstance(n, int))
