"""Program-level simplification: one forward sweep that folds and commons operations, then removal of dead ones.

What remains is in a normal form that fusion relies on: no identities (reshape to the same shape, cast to the same
dtype, copies), no chains of reshapes or transposes, broadcasts without axes of size one, powers with small constant
exponents as products, reductions over no elements as constants, calls inlined.
"""

from __future__ import annotations

from typing import Any

from argosy_cinn.fuel import allowed
from argosy_cinn.rewrites import arithmetic, layout, products, reductions
from argosy_cinn.rewrites.building import Rule
from argosy_cinn.rewrites.constants import fold_constants
from argosy_cinn.rewrites.convolution import as_product
from argosy_cinn.rewrites.reductions import of_nothing
from argosy_phi_ops.context import building
from argosy_pir.attributes import attributes_key
from argosy_pir.builder import Builder
from argosy_pir.core import Block, Operation
from argosy_pir.dialect import get_definition
from argosy_pir.opdef import EFFECT
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_pir.values import Value


def simplify(program: Program) -> None:
    """Simplify ``program``, which calls no functions, in place."""
    remove_dead(program.block)
    _sweep(program.block)
    remove_dead(program.block)


def simplify_until(first: Operation | None, end: Operation) -> None:
    """Simplify the operations from ``first`` to ``end``, exclusively, which were put into a simplified program."""
    assert end.parent is not None
    before = None if first is None else first.previous
    op = first
    while op is not None and op is not end:
        following = op.next
        _rewritten(op)
        op = following
    op = end.previous
    while op is not None and op is not before:
        earlier = op.previous
        if op.results and not any(r.has_uses for r in op.results) and not has_effect(op):
            op.erase()
        op = earlier


def inline_calls(program: Program) -> None:
    """Replace calls by the bodies of the functions they call."""
    calls = [op for op in program.walk() if op.name == "builtin.call"]
    while calls:
        for call in calls:
            if call.parent is None:
                continue
            block = program.functions[call.attributes["callee"].name].block
            mapping: dict[Value, Value] = dict(zip(block.arguments, call.operands, strict=True))
            terminator = block.last
            assert terminator is not None
            for op in block:
                if op is not terminator:
                    call.parent.insert_before(call, op.clone(mapping))
            call.replace_with([mapping.get(v, v) for v in terminator.operands])
        calls = [op for op in program.region.walk() if op.name == "builtin.call"]
    program.functions.clear()


def remove_dead(block: Block) -> None:
    """Erase operations without effect whose results nobody uses."""
    for op in reversed(list(block)):
        if op.results and not any(r.has_uses for r in op.results) and not has_effect(op):
            op.erase()


def has_effect(op: Operation) -> bool:
    """Whether the order of the operation matters, or that of one inside it."""
    return any(map(_has_effect_itself, op.walk()))


def _has_effect_itself(op: Operation) -> bool:
    definition = get_definition(op.name)
    return definition is None or EFFECT in definition.traits


def _sweep(block: Block) -> None:
    seen: dict[Any, Operation] = {}
    for op in list(block):
        if op.parent is not block:
            continue
        for made in _rewritten(op):
            _common(made, seen)


def _rewritten(op: Operation) -> list[Operation]:
    """Apply rules until none does anything; the operations that now stand for ``op`` and are new."""
    if op.dialect != "prim" or not op.results or not all(isinstance(r.type, TensorType) for r in op.results):
        return [op] if op.name == "builtin.constant" else []
    fresh: list[Operation] = []
    builder = Builder.before(op)
    with building(builder):
        previous = op.previous
        replacement = _apply(op)
        if replacement is None:
            return [op]
        new = previous.next if previous is not None else op.parent.first  # type: ignore[union-attr]
        while new is not None and new is not op:
            following = new.next
            fresh.append(new)
            new = following
    op.replace_with([replacement])
    return [made for o in fresh if o.parent is not None for made in _rewritten(o)]


def _apply(op: Operation) -> Value | None:
    name = op.kind
    if len(op.results) != 1:
        return None
    for rule in (fold_constants, RULES.get(name)):
        result = rule(op) if rule is not None else None
        if result is not None:  # what a refused rule has built is dead, and removed at the end
            if allowed(f"rewrite.{name}", op):
                return result
            break
    return of_nothing(op)  # always: a loop nest without rows or columns is that of something else


def _common(op: Operation, seen: dict[Any, Operation]) -> None:
    if op.parent is None or op.regions or has_effect(op):
        return
    attributes = {k: v for k, v in op.attributes.items() if k != "phase"}
    if op.name == "builtin.constant":
        value = attributes["value"]
        key: Any = (op.name, value.type, value.data)
    else:
        operands = [id(v) for v in op.operands]
        if op.name in _COMMUTATIVE:
            operands.sort()
        key = (op.name, *operands, attributes_key(attributes))
    first = seen.setdefault(key, op)
    if first is not op and allowed("common", op):
        op.replace_with(list(first.results))


_COMMUTATIVE = frozenset({"prim.add", "prim.mul"})

RULES: dict[str, Rule] = {
    **layout.RULES,
    **arithmetic.RULES,
    **reductions.RULES,
    **products.RULES,
    "conv": as_product,
}
"""By primitive."""
