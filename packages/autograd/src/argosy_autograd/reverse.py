"""Reverse accumulation over IR values: one sweep backwards over the active operations, whatever the number of
inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from argosy_autograd.activity import active_operations
from argosy_autograd.errors import DifferentiationError, MissingRule, explain_error
from argosy_autograd.insertion import Insertion, insertion
from argosy_autograd.registry import STRUCTURED, vjp
from argosy_autograd.tokens import token_chain
from argosy_phi_ops import prim
from argosy_phi_ops.context import context
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_pir import Block, Builder, Operation, Value

__all__ = ["plain_attributes", "vjp_values"]


def vjp_values(
    outputs: Sequence[Value],
    cotangents: Sequence[Value | None],
    wrt: Sequence[Value],
    builder: Builder,
    scope: Block | None = None,
    constants: Sequence[Value] = (),
) -> list[Value | None]:
    """Emit at ``builder`` the product of ``cotangents`` with the derivative of ``outputs`` with respect to ``wrt``.

    ``wrt`` are values, not variables: what leads to them plays no part, except where another of them lies there. The
    result has one value for each, None where the outputs do not depend on it. A None among the cotangents is zero.
    With ``scope`` only operations of that block count: what other blocks define is constant unless in ``wrt``.
    No derivative goes through ``constants``.
    Raises :class:`MissingRule` for operations on the way that have no rule.
    """
    order, active = active_operations(outputs, wrt, scope, constants)
    pending: dict[Value, Value] = {}
    with insertion(builder) as inserted, token_chain(builder):
        for value, g in zip(outputs, cotangents, strict=True):
            if g is not None and value in active:
                _accumulate(pending, value, g)
        for op in reversed(order):
            incoming = [pending.get(result) for result in op.results]
            if any(g is not None for g in incoming):
                context().location = op.location
                emitted = Insertion(builder)
                for value, g in _pull_back(op, incoming, active):
                    if g is not None and value in active:
                        _accumulate(pending, value, g)
                for each in emitted.operations():
                    each.annotations = op.annotations
        results = [pending.get(value) for value in wrt]
        inserted.erase_dead(results)
    return results


def _accumulate(pending: dict[Value, Value], value: Value, g: Value) -> None:
    if g.type != value.type:
        raise DifferentiationError(f"a cotangent of type {g.type} was made for a value of type {value.type}")
    known = pending.get(value)
    pending[value] = g if known is None else prim.add(known, g)


def _pull_back(op: Operation, incoming: list[Value | None], active: set[Value]) -> Iterable[tuple[Value, Value | None]]:
    if op.dialect != "prim":
        pairs: Iterable[tuple[Value, Value | None]] = STRUCTURED[op.name].reverse(op, incoming, active)
        return pairs
    single = len(op.results) == 1
    g, result = (incoming[0], op.result) if single else (tuple(incoming), op.results)
    try:
        made = vjp.find(op.kind)(g, result, *op.operands, **plain_attributes(op))
    except MissingRule as error:
        raise explain_error(error, describe_values(op)) from None
    if not isinstance(made, tuple):
        made = (made,)
    return zip(op.operands, made, strict=True)


def describe_values(op: Operation) -> str:
    """Where ``op`` was written, for errors; nothing where that is not known."""
    location = str(op.location)
    return "" if location == "unknown" else f"{op.name} at {location}"


def plain_attributes(op: Operation) -> dict[str, Any]:
    """The attributes of a primitive operation that are its own, defaults filled in."""
    primitive = PRIMITIVES[op.kind]
    return primitive.complete({k: v for k, v in op.attributes.items() if k in primitive.attributes})
