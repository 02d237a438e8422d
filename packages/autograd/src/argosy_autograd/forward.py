"""Forward accumulation over IR values: tangents are carried along the active operations."""

from __future__ import annotations

from collections.abc import Sequence

from argosy_autograd.activity import active_operations
from argosy_autograd.errors import DifferentiationError, MissingRule, explain_error
from argosy_autograd.insertion import insertion
from argosy_autograd.registry import STRUCTURED, jvp
from argosy_autograd.reverse import describe_values, plain_attributes
from argosy_autograd.tokens import token_chain
from argosy_phi_ops.context import context
from argosy_pir import Block, Builder, Operation, Value

__all__ = ["jvp_values"]


def jvp_values(
    outputs: Sequence[Value],
    wrt: Sequence[Value],
    tangents: Sequence[Value | None],
    builder: Builder,
    scope: Block | None = None,
) -> list[Value | None]:
    """Emit at ``builder`` the product of the derivative of ``outputs`` with respect to ``wrt`` with ``tangents``.

    One value for each output, None where it does not depend on ``wrt``. A None among the tangents is zero.
    With ``scope`` only operations of that block count: what other blocks define is constant unless in ``wrt``.
    Raises :class:`MissingRule` for operations on the way that have no rule.
    """
    moving = [value for value, t in zip(wrt, tangents, strict=True) if t is not None]
    order, _ = active_operations(outputs, moving, scope)
    known = {value: t for value, t in zip(wrt, tangents, strict=True) if t is not None}
    with insertion(builder) as inserted, token_chain(builder):
        for op in order:
            context().location = op.location
            for result, t in zip(op.results, _push_forward(op, known), strict=True):
                if t is None or result in known:
                    continue
                if t.type != result.type:
                    raise DifferentiationError(f"a tangent of type {t.type} was made for a value of type {result.type}")
                known[result] = t
        results = [known.get(value) for value in outputs]
        inserted.erase_dead(results)
    return results


def _push_forward(op: Operation, known: dict[Value, Value]) -> Sequence[Value | None]:
    if op.dialect != "prim":
        made: Sequence[Value | None] = STRUCTURED[op.name].forward(op, known)
        return made
    return push(op, [known.get(value) for value in op.operands])


def push(op: Operation, tangents: Sequence[Value | None]) -> Sequence[Value | None]:
    """The tangents of the results of a primitive, by its forward-mode rule; None is zero."""
    if all(t is None for t in tangents):
        return [None] * len(op.results)
    single = len(op.results) == 1
    result = op.result if single else op.results
    try:
        made = jvp.find(op.kind)(result, *op.operands, *tangents, **plain_attributes(op))
    except MissingRule as error:
        raise explain_error(error, describe_values(op)) from None
    return [made] if single else made
