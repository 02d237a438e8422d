"""Which operations a derivative has to visit: those on a path from the inputs to the outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from argosy_autograd.algebra import COMPLEX, INEXACT
from argosy_autograd.errors import MissingRule
from argosy_autograd.registry import NOT_APPLICABLE, STRUCTURED
from argosy_pir import Block, Operation, TensorType, Value
from argosy_pir.values import OpResult

__all__ = [
    "PRODUCTS",
    "active_operations",
    "captured_values",
    "differentiable_sources",
    "has_gradient",
    "has_no_derivative",
    "is_passive",
    "postorder",
    "read_values",
]

PRODUCTS = {"multiply": 2, "square": 1}
"""Operators whose derivatives count as depending on their operands at every order, with the number of these: where all
of them move. In Paddle a product's gradient depends on both factors, too, be it constant in one of them."""

_SILENT = frozenset({"builtin.constant"})


def has_gradient(value: Value) -> bool:
    """Whether a value is of a type that derivatives exist for: a tensor of floating or complex elements."""
    return isinstance(value.type, TensorType) and value.type.dtype in INEXACT


def captured_values(op: Operation) -> tuple[Value, ...]:
    """Values that the regions of ``op`` read and that are defined outside of it, each once."""
    found: dict[Value, None] = {}
    for region in op.regions:
        for inner in region.walk():
            for value in inner.operands:
                if not _is_defined_within(value, op):
                    found[value] = None
    return tuple(found)


def _is_defined_within(value: Value, op: Operation) -> bool:
    owner = value.owner
    if isinstance(owner, Block):
        holder = owner.parent_op
        return holder is not None and op.is_ancestor_of(holder)
    return owner is not op and op.is_ancestor_of(owner)


def read_values(op: Operation) -> tuple[Value, ...]:
    """The operands of ``op`` and the values that its regions read from around it."""
    return (*op.operands, *captured_values(op)) if op.regions else op.operands


def has_no_derivative(op: Operation) -> bool:
    """Whether ``op`` is a primitive without derivatives."""
    return op.dialect == "prim" and op.kind in NOT_APPLICABLE


def is_passive(op: Operation) -> bool:
    """Whether no gradient passes through ``op``. Raises :class:`MissingRule` for operations nobody can
    differentiate."""
    if op.dialect == "prim":
        return has_no_derivative(op) or (op.name == "prim.sign" and op.result.dtype not in COMPLEX)
    if op.name in STRUCTURED:
        return False
    if op.name in _SILENT:
        return True
    advice = {
        "phi": "it is an operator: run the pass decompose first",
        "ad": "it is a gradient not yet expanded: run the pass expand-gradients, which takes them in order",
    }.get(op.dialect, "only prim, control and builtin operations have derivatives")
    raise MissingRule(f"'{op.name}' cannot be differentiated ({op.location}); {advice}")


def differentiable_sources(value: Value) -> set[Value]:
    """The values that ``value`` depends on differentiably, itself and arguments among them."""
    found: set[Value] = set()
    stack = [value] if has_gradient(value) else []
    while stack:
        at = stack.pop()
        if at not in found:
            found.add(at)
            if isinstance(at, OpResult) and not (at.op.dialect == "prim" and is_passive(at.op)):
                stack.extend(v for v in read_values(at.op) if has_gradient(v))
    return found


def active_operations(
    outputs: Iterable[Value], wrt: Sequence[Value], scope: Block | None = None, constants: Sequence[Value] = ()
) -> tuple[list[Operation], set[Value]]:
    """The operations through which ``outputs`` depend differentiably on ``wrt``, in an order of dependence, and
    the values that do so. ``scope`` leaves out operations of other blocks; nothing goes through ``constants``.
    Linear in the operations that the outputs depend on; no recursion."""
    blockers = set(constants)
    active = {value for value in wrt if has_gradient(value)} - blockers
    order: list[Operation] = []
    for op in postorder(outputs, scope):
        if not any(value in active for value in read_values(op)) or is_passive(op):
            continue
        reached = [result for result in op.results if has_gradient(result) and result not in blockers]
        if reached:
            active.update(reached)
            order.append(op)
    return order, active


def postorder(outputs: Iterable[Value], scope: Block | None) -> list[Operation]:
    """The operations that ``outputs`` depend on, in an order of dependence; of the block ``scope`` alone if given."""
    order: list[Operation] = []
    seen: set[Operation] = set()
    stack = [(op, False) for op in _producers(outputs, scope)]
    while stack:
        op, ready = stack.pop()
        if ready:
            order.append(op)
        elif op not in seen:
            seen.add(op)
            stack.append((op, True))
            stack.extend((p, False) for p in _producers(read_values(op), scope) if p not in seen)
    return order


def _producers(values: Iterable[Value], scope: Block | None) -> list[Operation]:
    return [v.op for v in values if isinstance(v, OpResult) and (scope is None or v.op.parent is scope)]
