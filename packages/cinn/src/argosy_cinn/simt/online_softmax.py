"""Softmax in one phase: where running sums may be scaled when a larger maximum is met."""

from __future__ import annotations

from typing import NamedTuple

from argosy_cinn.forms.attention import AttentionForm
from argosy_cinn.forms.expressions import Expression
from argosy_pir.scalars import decode_scalar


class OnlineSoftmax(NamedTuple):
    """The number of the reduction that is a softmax's maximum, and the exponential of scores less it."""

    maximum: int
    exponential: Expression


def online_softmax(form: AttentionForm) -> OnlineSoftmax | None:
    """Where a maximum and sums of exponentials of what it is taken of, less it, can be one phase: all that is summed
    is such an exponential, times what does not depend on the maximum."""
    found = [(i, r) for i, r in enumerate(form.reductions) if r.body.level == 0]
    if form.phases != 2 or len(found) != 1 or any(sink.along == "rows" for sink in form.sinks):
        return None
    ((number, maximum),) = found
    others = [r for r in form.reductions if r is not maximum]
    if (
        maximum.kind != "max"
        or any(r.kind != "sum" for r in others)
        or any(r.dtype != "float32" for r in form.reductions)
    ):
        return None
    exponentials: list[Expression] = []

    def scales(node: Expression) -> bool:
        a = node.arguments
        if node.level == 0 or node.dtype != "float32":
            return False
        if node.kind == "exp":
            exponentials.append(node)
            argument = a[0]
            return argument.kind == "sub" and argument.arguments == (maximum.body, maximum.result)
        if node.kind == "mul":
            return any(scales(x) and y.level == 0 for x, y in (a, a[::-1]))
        if node.kind == "select" and a[0].level == 0:
            return all(scales(x) or _is_zero(x) for x in a[1:])
        return node.kind == "div" and a[1].level == 0 and scales(a[0])

    roots = [*(r.body for r in others), *(sink.root for sink in form.sinks)]
    return OnlineSoftmax(number, exponentials[0]) if all(map(scales, roots)) and exponentials else None


def _is_zero(node: Expression) -> bool:
    return node.kind == "constant" and decode_scalar(node.payload, node.dtype) == 0
