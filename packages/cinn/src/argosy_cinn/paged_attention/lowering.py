"""From ``prim.paged_attention`` to its form."""

from __future__ import annotations

from argosy_cinn.forms.paged_attention import PagedAttentionForm
from argosy_pir.core import Operation


def lower_paged_attention(op: Operation) -> PagedAttentionForm:
    """The form of a ``prim.paged_attention``."""
    a = op.attributes
    return PagedAttentionForm(list(op.operands), op.result, a["scale"], a["window"], a["softcap"])
