"""The learning rate as a 0-D tensor, so that changing it changes no program.

Whoever owns a rate (an optimizer, or a schedule) holds one ``Rate``; optimizers compute with its tensor, and a
captured step reads it as a state. It is written from outside the step only.
"""

from __future__ import annotations

import numpy as np

from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.errors import CaptureError
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["Rate"]


class Rate:
    """A float and the float32 0-D tensor that follows it."""

    __slots__ = ("tensor", "value")

    def __init__(self, value: float) -> None:
        self.value = float(value)
        self.tensor = Tensor._wrap(StridedArray(np.array(self.value, np.float32)))
        self.tensor.name = "learning_rate"

    def set(self, value: float) -> None:
        """Change the rate. Raises CaptureError inside a captured function, where it would happen at capture only."""
        tracer = active_tracer()
        if tracer is not None and not tracer.stays_open:
            raise CaptureError(
                "the learning rate is being changed inside a captured function, where Python runs only once. Call "
                "scheduler.step() or set_lr() outside, after the compiled step; the step reads the new value"
            )
        self.value = float(value)
        self.tensor.payload.ndarray[...] = self.value
        self.tensor.payload.bump_version()
