"""A part of a model that runs forward and backward by itself, so that somebody else decides when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy_autograd.engine import backward
from argosy_tensorcore.tensor import Tensor

__all__ = ["ScheduleChunk", "ScheduleNode"]


class ScheduleNode:
    """``fwd_func`` with the tape of its last call, cut from what its inputs were computed from.

    ``labels`` is its second argument where that is set, ``scale_loss_factor`` what its result is divided by.
    """

    def __init__(self, fwd_func: Callable[..., Any] | None, name: str = "") -> None:
        self.name, self.fwd_func = name, fwd_func
        self.inputs: Any = None
        self.outputs: Any = None
        self.labels: Any = None
        self.scale_loss_factor: float | None = None

    def forward(self, inputs: Any = (), **kwargs: Any) -> Any:
        """The function's outputs for ``inputs``, a tensor or a tuple, list or dict of them."""
        if self.fwd_func is None:
            raise TypeError(f"ScheduleNode {self.name!r} has no fwd_func, and no forward() of its own")
        self.inputs = _map(_cut, inputs)
        given = () if self.labels is None else (self.labels,)
        outputs = self.fwd_func(self.inputs, *given, **kwargs)
        if self.scale_loss_factor is not None:
            outputs = outputs / self.scale_loss_factor
        self.outputs = outputs
        return outputs

    def backward(self, output_grad: Any = None, scaler: Any = None) -> Any:
        """The gradients of the inputs, one for each tensor that has one, alone or as a tuple; parameters add theirs.

        ``output_grad`` is one for each output that depends on something; without it the output is a loss, which
        ``scaler`` scales. Raises ValueError for another number, or before :meth:`forward`.
        """
        if self.outputs is None:
            raise ValueError(f"ScheduleNode {self.name!r}: backward() comes after forward()")
        outputs = [t for t in _tensors(self.outputs) if not t.stop_gradient]
        if output_grad is None:
            if len(outputs) != 1:
                raise ValueError(f"ScheduleNode {self.name!r}: {len(outputs)} outputs need output_grad")
            backward([outputs[0] if scaler is None else scaler.scale(outputs[0])])
        else:
            gradients = _tensors(output_grad)
            if len(gradients) != len(outputs):
                raise ValueError(
                    f"ScheduleNode {self.name!r}: {len(gradients)} gradients for {len(outputs)} outputs that have one"
                )
            backward(outputs, gradients)
        found = tuple(t.grad for t in _tensors(self.inputs) if not t.stop_gradient)
        self._reset_states()
        return found[0] if len(found) == 1 else found

    def _reset_states(self) -> None:
        self.inputs = self.outputs = self.labels = self.scale_loss_factor = None


class ScheduleChunk:
    """Nodes one after the other; backward in the opposite order. Raises TypeError for what is no node or chunk."""

    def __init__(self, nodes: Sequence[ScheduleNode | ScheduleChunk]) -> None:
        self.nodes = nodes
        for node in nodes:
            if not isinstance(node, (ScheduleNode, ScheduleChunk)):
                raise TypeError(f"ScheduleChunk takes ScheduleNodes and ScheduleChunks, got {type(node).__name__}")

    def forward(self, inputs: Any) -> Any:
        """The last node's outputs."""
        for node in self.nodes:
            inputs = node.forward(inputs)
        return inputs

    def backward(self, output_grad: Any) -> Any:
        """The gradients of the first node's inputs."""
        for node in reversed(self.nodes):
            output_grad = node.backward(output_grad)
        return output_grad


def _cut(x: Any) -> Any:
    """``x`` without what it was computed from; gradients are those with respect to it."""
    if not isinstance(x, Tensor):
        return x
    alone: Tensor = x.detach()
    alone.stop_gradient = x.stop_gradient
    return alone


def _map(function: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_map(function, x) for x in value)
    if isinstance(value, dict):
        return {key: _map(function, x) for key, x in value.items()}
    return function(value)


def _tensors(value: Any) -> list[Any]:
    """The tensors of a nest of tuples, lists and dicts, in order."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return [t for x in value for t in _tensors(x)]
    return [value] if isinstance(value, Tensor) else []
