"""Collapsing sums: ``f(a) + f(b)`` becomes ``f(a + b)`` for a linear f, all the way up a program.

The highest Taylor coefficients travel through linear operations only, so that their sum, a Laplacian say, needs one
travel instead of one for each direction (Dangel et al., Collapsing Taylor Mode AD, 2025, arXiv 2505.13644).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from argosy_autograd.taylor.functional import functional_of
from argosy_phi_ops import prim
from argosy_phi_ops.context import context, emit_at
from argosy_pir import Block, Builder, Operation, Program, Value
from argosy_pir.values import OpResult

__all__ = ["collapse"]

_UNARY = frozenset("neg reshape transpose slice reduce_sum broadcast reverse real imag cast".split())
_SCALING = frozenset(("mul", "dot_general"))

Key = tuple[Hashable, ...]


def collapse(program: Program) -> bool:
    """Rewrite the sums of the body of ``program``; returns whether anything changed. Costs nothing to run again."""
    pending = [op for op in program.block if _is_root(op)]
    changed = False
    while pending:
        root = pending.pop()
        made = _collapse_sum(root, program.block)
        if made is not None:
            changed = True
            pending.extend(made)
    return changed


def _is_root(op: Operation) -> bool:
    """Whether ``op`` is the last addition of a sum."""
    return op.name == "prim.add" and not (len(op.result.uses) == 1 and op.result.users[0].name == "prim.add")


def _terms(root: Operation, block: Block) -> tuple[list[Value], list[Operation]]:
    """The terms of a sum, and the additions on the way, which have no other use."""
    found: list[Value] = []
    additions: list[Operation] = []
    stack = list(reversed(root.operands))
    while stack:
        x = stack.pop()
        if isinstance(x, OpResult) and x.op.name == "prim.add" and len(x.uses) == 1 and x.op.parent is block:
            additions.append(x.op)
            stack.extend(reversed(x.op.operands))
        else:
            found.append(x)
    return found, additions


def _collapse_sum(root: Operation, block: Block) -> list[Operation] | None:
    """Join the terms of ``root`` that are the same linear function; gives the new inner sums, or None."""
    terms, additions = _terms(root, block)
    groups = _groups(terms, block)
    if not groups:
        return None
    inner: list[Operation] = []
    joined: list[Value] = []
    taken = {id(t) for group, _ in groups for t in group}
    with emit_at(Builder.before(root), root.location):
        for group, position in groups:
            if group[0].op.name == "ad.coefficient":
                joined.append(_join_deferred(group))
                continue
            total = _add([t.op.operand(position) for t in group])
            assert isinstance(total, OpResult)
            inner.append(total.op)
            joined.append(_replicate(group[0].op, position, total))
        result = _add([t for t in terms if id(t) not in taken] + joined)
    if isinstance(result, OpResult) and result.op.name == "prim.add":
        inner.append(result.op)
    root.replace_with([result])
    for op in (*additions, *(term.op for group, _ in groups for term in group)):
        op.erase()
    return inner


def _groups(terms: Sequence[Value], block: Block) -> list[tuple[list[OpResult], int]]:
    """Terms that may be joined, with the position of the operand in which they differ."""
    candidates: dict[Key, list[OpResult]] = {}
    for term in dict.fromkeys(terms):
        if isinstance(term, OpResult) and len(term.uses) == 1 and term.op.parent is block and len(term.op.results) == 1:
            for key in _keys(term.op):
                candidates.setdefault(key, []).append(term)
    found: list[tuple[list[OpResult], int]] = []
    taken: set[int] = set()
    for key, group in sorted(candidates.items(), key=lambda item: -len(item[1])):
        free = [t for t in group if id(t) not in taken]
        if len(free) > 1:
            position = key[0]
            assert isinstance(position, int)
            found.append((free, position))
            taken.update(map(id, free))
    return found


def _keys(op: Operation) -> list[Key]:
    """What terms must have in common to be joined, for each operand in which they may differ."""
    if op.name == "ad.coefficient":
        return [(0, op.name, op.operand(0))]
    name = op.kind if op.dialect == "prim" else ""
    if name in _UNARY:
        return [(0, name, op.operand(0).type, op.result.type, _attributes(op))]
    if name in _SCALING and op.operand(0) is not op.operand(1):
        return [(i, name, op.operand(1 - i), op.operand(i).type, op.result.type, _attributes(op)) for i in (0, 1)]
    if name == "div":
        return [(0, name, op.operand(1), op.result.type)]
    return []


def _join_deferred(group: Sequence[OpResult]) -> Value:
    builder = context().builder
    assert builder is not None
    total = sum((functional_of(t.op) for t in group[1:]), functional_of(group[0].op))
    request = max(t.op.attributes["request"] for t in group)
    attributes = {"terms": total.terms, "request": request}
    return builder.create("ad.coefficient", [group[0].op.operand(0)], attributes, location=context().location).result


def _attributes(op: Operation) -> Hashable:
    return tuple(sorted((k, repr(v)) for k, v in op.attributes.items()))


def _add(values: Sequence[Value]) -> Value:
    total = values[0]
    for value in values[1:]:
        total = prim.add(total, value)
    return total


def _replicate(op: Operation, position: int, value: Value) -> Value:
    builder = context().builder
    assert builder is not None
    copy = op.clone({})
    builder.insert(copy)
    copy.set_operand(position, value)
    return copy.result
