"""Products that share the read of an operand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from argosy_cinn.forms.product import ProductForm
from argosy_cinn.fusion.products import are_siblings
from argosy_cinn.plan.steps import Step
from argosy_pir.rewrite.fuel import spend
from argosy_pir.values import Value


def with_siblings(steps: Sequence[Step], in_place: set[Value]) -> list[Step]:
    """Join neighbours that one read of their operand can serve: two products of few rows."""
    joined: list[Step] = []
    for step in steps:
        first = joined[-1] if joined else None
        if first is not None and not first.siblings and _may_join(first, step, in_place):
            first.siblings.append(step)
            first.forms = [replace(_product(first), siblings=[_product(step)])]  # it may run elsewhere, alone
        else:
            joined.append(step)
    return joined


def _product(step: Step) -> ProductForm:
    (form,) = step.forms
    assert isinstance(form, ProductForm)
    return form


def _may_join(first: Step, second: Step, in_place: set[Value]) -> bool:
    """Whether two steps are siblings. Their chunks run in any order, so that neither may write what the other reads."""
    x, y = first.group.product, second.group.product
    if x is None or y is None or not are_siblings(x, y):
        return False
    members = [*first.group.members, *second.group.members]
    versions = first.renamed or second.renamed or first.repeated or second.repeated
    if versions or in_place & set(members) or second.group.reads & set(first.group.members):
        return False
    return spend("siblings", members[0])
