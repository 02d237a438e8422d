"""From ``cinn.order`` to its form."""

from __future__ import annotations

from math import prod

from argosy_cinn.forms.order import OrderForm
from argosy_cinn.shapes import sizes
from argosy_pir.core import Operation


def lower_order(op: Operation) -> OrderForm:
    """The form of a ``cinn.order``."""
    axis, shape = op.attributes["axis"], sizes(op.operand(0))
    return OrderForm(
        list(op.operands), op.result, prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]),
        op.attributes["descending"], sizes(op.result)[axis],
    )  # fmt: skip
