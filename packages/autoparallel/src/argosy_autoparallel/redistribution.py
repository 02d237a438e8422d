"""Redistribution: the operator that lays a tensor out otherwise, which the layer of distributed tensors runs."""

from __future__ import annotations

from argosy_autoparallel.presence import presence
from argosy_autoparallel.tensor_layout import Layout, print_layout
from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import operator
from argosy_phi_ops.eager.dispatch import bind
from argosy_tensorcore.tensor import Tensor

__all__ = ["redistribute", "redistribute_op"]


@operator()
def redistribute_op(x: Tensor, target: str = "") -> Tensor:
    """``x`` laid out as ``target``, the text of a layout, says; its gradient is laid out like ``x``."""
    return prim.relayout(x, target=target)  # type: ignore[no-any-return]


def redistribute(x: Tensor, layout: Layout) -> Tensor:
    """``x`` in ``layout``, differentiably; an ordinary tensor counts as held by every rank."""
    present = presence()  # held until the result holds it: x may be an ordinary tensor
    made: Tensor = bind(redistribute_op, (x,), {"target": print_layout(layout)})
    del present
    return made
