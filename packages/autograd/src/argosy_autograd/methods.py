"""The methods of ``Tensor`` that this package provides."""

from __future__ import annotations

from argosy_autograd.engine import backward as _backward
from argosy_autograd.gradients import clear_grad, clear_gradient
from argosy_autograd.hooks import register_hook, retain_grads
from argosy_tensorcore.tensor import Tensor

__all__ = ["backward", "clear_grad", "clear_gradient", "register_hook", "retain_grads"]


def backward(
    self: Tensor,
    grad_tensor: Tensor | None = None,
    retain_graph: bool = False,
    *,
    dump_backward_graph_path: str | None = None,
) -> None:
    """Add the gradients of this tensor, weighted with ``grad_tensor`` (ones by default), to those of the leaves.

    Raises ``NotImplementedError`` when a drawing of the graph is asked for.
    """
    if dump_backward_graph_path is not None:
        raise NotImplementedError("backward: drawing the graph (dump_backward_graph_path) is not implemented")
    _backward([self], None if grad_tensor is None else [grad_tensor], retain_graph)
