"""From ``cinn.note_index`` to its form."""

from __future__ import annotations

from argosy_cinn.checks.rewrite import SITE
from argosy_cinn.forms.index_check import IndexCheckForm
from argosy_pir.core import Operation


def lower_check(op: Operation) -> IndexCheckForm:
    """The form of a ``cinn.note_index``."""
    return IndexCheckForm(op.operand(0), op.operand(1), op.attributes["count"], op.attributes[SITE])
