"""Applications that the layers have had their say about.

Autocast, the checkers and whoever else stands on the stack hand on bound operands and attributes; there is no call of a
user to tell them apart by. The short way is found by types and attributes, and what is hot is compiled all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from argosy_phi_ops.context import context
from argosy_phi_ops.declare.operator import Operator, attribute_key
from argosy_phi_ops.eager import dispatch
from argosy_phi_ops.eager.repeated import type_of
from argosy_phi_ops.eager.routes import KEPT, repeated_of, route_of

__all__ = ["settled"]


def settled(op: Operator, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Apply ``op`` beneath the layers: by what an earlier application that looked the same left, so that what is hot is
    compiled under autocast, too; else by the kernel runner."""
    try:
        key = (tuple([type_of(x) for x in operands]), attribute_key(attributes))
        found = op.beneath.get(key)
    except (AttributeError, TypeError):  # a payload that is no plain array, attributes that are no plain data
        return dispatch.run_kernel(op, operands, attributes)
    if found is not None:
        try:
            return found(operands, not context().grad_enabled)
        except (ValueError, TypeError, IndexError):
            return dispatch.run_kernel(op, operands, attributes)  # explains it
    result = dispatch.run_kernel(op, operands, attributes)
    if not op.random:  # the kernel runner counts those itself
        if len(op.beneath) >= KEPT:
            op.beneath.clear()
        found = route_of(op, operands, attributes, result, None) or repeated_of(op, operands, attributes, result, None)
        op.beneath[key] = found or partial(_as_ever, op, attributes)
    return result


def _as_ever(op: Operator, attributes: dict[str, Any], operands: Sequence[Any], silent: bool) -> Any:
    """Where there is no short way."""
    return dispatch.run_kernel(op, operands, attributes)


Operator.settled = staticmethod(settled)  # type: ignore[method-assign]
