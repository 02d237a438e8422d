"""From ``prim.grouped_dot``, ``prim.grouped_outer`` and ``cinn.scaled_grouped_dot`` to their form."""

from __future__ import annotations

from argosy_cinn.forms.grouped_product import GroupedForm
from argosy_pir.core import Operation


def lower_grouped(op: Operation) -> GroupedForm:
    """The form of a grouped product."""
    outer = op.name == "prim.grouped_outer"
    lhs, rhs, starts, *others = op.operands
    scales, offsets = (*others, None, None)[:2]
    turned = not outer and op.attributes["transposed"]
    return GroupedForm(lhs, rhs, starts, op.result, outer, turned, scales, offsets, op.attributes.get("numbers"))
