"""A ``GradScaler``'s scale and counts as tensors, so that captured steps read and change them as states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.jit.conversion.runtime import choose
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["ScaleState", "any_overflow", "step_unless"]


class ScaleState:
    """The scale (float32), and the counts of good and of overflowing steps (int64), 0-D."""

    def __init__(self, scale: float, good: int, bad: int) -> None:
        self.scale = _scalar_state(scale, np.float32)
        self.good, self.bad = _scalar_state(good, np.int64), _scalar_state(bad, np.int64)

    def set(self, scale: float, good: int, bad: int) -> None:
        """Give the tensors these numbers."""
        for tensor, value in ((self.scale, scale), (self.good, good), (self.bad, bad)):
            if tensor.payload.ndarray != np.asarray(value, tensor.payload.ndarray.dtype):
                tensor.payload.ndarray[...] = value
                tensor.payload.bump_version()

    def numbers(self) -> tuple[float, int, int]:
        """Scale and counts."""
        return float(self.scale.numpy()), int(self.good.numpy()), int(self.bad.numpy())

    def adapt(self, overflow: Any, up: float, down: float, up_after: int, down_after: int) -> None:
        """Record what :meth:`GradScaler.update` does, for ``overflow``, a 0-D bool."""
        where: Any = get_operator("where")
        scale: Any = self.scale
        good: Any = self.good
        bad: Any = self.bad
        with no_grad():
            zero = good * 0
            good, bad = where(overflow, zero, good + 1), where(overflow, bad + 1, zero)
            shrinks, grows = bad >= down_after, good >= up_after
            least = get_operator("ones_like")(scale)
            smaller = get_operator("maximum")(scale * down, least)
            write(self.scale, where(shrinks, smaller, where(grows, scale * up, scale)))
            write(self.good, where(grows, zero, good))
            write(self.bad, where(shrinks, zero, bad))


def _scalar_state(value: float, dtype: Any) -> Tensor:
    made = Tensor._wrap(StridedArray(np.array(value, dtype)))
    made.persistable = True
    return made


def any_overflow(gradients: Sequence[Any]) -> Any:
    """Whether an element of these traced gradients is infinite or NaN, as a 0-D bool."""
    found: Any = None
    for gradient in gradients:
        bad = gradient.isfinite().all().logical_not()
        found = bad if found is None else found.logical_or(bad)
    return found


def step_unless(overflow: Any, optimizer: Any) -> None:
    """Record the optimizer's step for when there is no ``overflow``."""
    choose(overflow.logical_not(), optimizer.step, lambda: None)
