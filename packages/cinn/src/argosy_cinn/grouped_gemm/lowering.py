"""From ``prim.grouped_dot`` and ``prim.grouped_outer`` to their form."""

from __future__ import annotations

from argosy_cinn.forms.grouped_product import GroupedForm
from argosy_pir.core import Operation


def lower_grouped(op: Operation) -> GroupedForm:
    """The form of a grouped product."""
    outer = op.name == "prim.grouped_outer"
    lhs, rhs, starts = op.operands
    return GroupedForm(lhs, rhs, starts, op.result, outer, not outer and op.attributes["transposed"])
