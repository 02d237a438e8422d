"""Gradient slots that branches and loops on traced tensors change: what they hold travels as values.

A slot that holds nothing counts as zeros where the other branch, or another step, puts a gradient in it.
"""

from __future__ import annotations

from typing import Any

from argosy_autograd.gradients import is_symbolic_zero
from argosy_phi_ops.capture.tracer import TracedPayload, Tracer
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.user_line import user_location
from argosy_pir.values import Value
from argosy_tensorcore.tensor import Tensor

__all__ = ["is_empty", "merge_empty", "put_gradient", "slot_value"]


def is_empty(gradient: Any) -> bool:
    """Whether a slot that holds ``gradient`` has nothing to add to."""
    return gradient is None or is_symbolic_zero(gradient)


def merge_empty(a: Any, b: Any) -> Any:
    """What a slot holds that is empty either way."""
    return b if a is None else a


def slot_value(tracer: Tracer, tensor: Tensor, gradient: Any) -> Value:
    """The value of ``gradient``, which a slot of ``tensor`` holds, where the tracer records now."""
    if is_empty(gradient):
        gradient = get_operator("zeros")(list(tensor.payload.shape), tensor.payload.dtype)
    return tracer.value(gradient)


def put_gradient(tracer: Tracer, tensor: Tensor, value: Value) -> None:
    """Let the slot of ``tensor`` hold ``value``, which later gradients do not go through."""
    tracer.touch_grad(tensor)
    tensor._grad = Tensor._wrap(TracedPayload(value, tracer, user_location(), True), True)
