"""Redistribution: the operator that lays a tensor out otherwise, which the layer of distributed tensors runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from argosy_autoparallel.presence import presence
from argosy_autoparallel.tensor_layout import Layout, print_layout
from argosy_phi_ops import prim
from argosy_phi_ops.declare.operator import operator
from argosy_phi_ops.eager.dispatch import bind, suspend_layers
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_autoparallel.dist_tensor import ShardedArray

__all__ = ["redistribute", "redistribute_op", "relayout"]


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


def relayout(payload: ShardedArray, layout: Layout) -> ShardedArray:
    """The payload in another layout; nothing is recorded. Every rank that takes part must call."""
    if payload.layout == layout:
        return payload
    with suspend_layers():
        made: ShardedArray = redistribute(Tensor._wrap(payload), layout).payload
    return made
