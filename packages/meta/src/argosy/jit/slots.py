"""Gradient slots around a captured call: what they must hold on entry, and what they hold after it.

A slot is empty (None, or a symbolic zero that nobody has looked at: both are nothing to add to) or holds a tensor. A
capture is valid for slots as it found them: empty ones empty, and the same tensors in the others, which are updated in
place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_autograd.gradients import is_symbolic_zero, symbolic_zero
from argosy_phi_ops.capture.tracer import CapturedProgram
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["GradientSlots", "write_over"]

_wrap = Tensor._wrap
_ZERO = type(symbolic_zero(_wrap(StridedArray(np.zeros((), np.float32)))).payload.storage)


class GradientSlots:
    """The slots that a capture touched or that its optimizers read."""

    __slots__ = ("empty", "final", "held")

    def __init__(self, captured: CapturedProgram, read: list[Tensor]) -> None:
        tensors = {id(t): t for t in (*read, *(t for t, _, _ in captured.grads))}
        self.empty = [t for t in tensors.values() if _is_empty(t)]
        self.held = [(t, t._grad) for t in tensors.values() if not _is_empty(t)]
        self.final = [(t, position, last, None if _is_empty(t) else t._grad) for t, position, last in captured.grads]

    def hold(self) -> bool:
        """Whether the slots are as the capture found them. Part of every call: loops, and no calls of functions."""
        for tensor, grad in self.held:
            if tensor._grad is not grad:
                return False
        for tensor in self.empty:
            grad = tensor._grad
            if grad is not None:
                storage = getattr(grad.payload, "_storage", None)  # a distributed tensor has none
                if type(storage) is not _ZERO or storage._bytes is not None:  # type: ignore[union-attr]
                    return False
        return True

    def set(self, outputs: list[Any]) -> None:
        """Put the gradients of one call in the touched slots. A tensor that was there is overwritten in place."""
        for tensor, position, last, before in self.final:
            if before is not None:
                _overwrite(tensor, before, None if position is None else outputs[position], last)
            elif position is not None:
                tensor._grad = _wrap(outputs[position], False)
            elif last is None or last.payload._storage._bytes is None:
                tensor._grad = last
            else:  # somebody looked at the zero of the call before
                tensor._grad = symbolic_zero(tensor)


def _is_empty(tensor: Tensor) -> bool:
    return tensor._grad is None or is_symbolic_zero(tensor._grad)


def _overwrite(tensor: Tensor, grad: Any, output: Any, last: Any) -> None:
    if output is None and last is None:
        tensor._grad = None
    elif output is None:
        grad.payload.fill_from(0)
        grad.payload.bump_version()
    else:
        write_over(grad, output)


def write_over(tensor: Tensor, value: Any) -> None:
    """Overwrite a tensor in place with the payload ``value`` that a program gave: of a distributed one each rank its
    part, where it is.
    """
    payload = tensor.payload
    if type(payload) is StridedArray or type(value) is StridedArray:
        payload.fill_from(value.to_host())
    else:
        payload.overwrite(value)
    payload.bump_version()
