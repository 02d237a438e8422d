"""A ``GradScaler``'s scale and counts as tensors, so that captured steps read and change them as states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy.jit.conversion.runtime import choose
from argosy.nn.meshes import full_mesh, mesh_of, on_mesh, replicate_on, whole_of
from argosy_autograd.modes import no_grad
from argosy_phi_ops.capture.regions import unbroken
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["ScaleState", "any_overflow", "step_unless"]


class ScaleState:
    """The scale (float32), and the counts of good and of overflowing steps (int64), 0-D, on ``mesh`` or on none."""

    def __init__(self, scale: float, good: int, bad: int, mesh: Any = None) -> None:
        self.scale = _scalar_state(scale, np.float32, mesh)
        self.good, self.bad = _scalar_state(good, np.int64, mesh), _scalar_state(bad, np.int64, mesh)

    def set(self, scale: float, good: int, bad: int) -> None:
        """Give the tensors these numbers."""
        for tensor, value in ((self.scale, scale), (self.good, good), (self.bad, bad)):
            payload = getattr(tensor.payload, "local", tensor.payload)
            if payload.ndarray != np.asarray(value, payload.ndarray.dtype):
                payload.ndarray[...] = value
                payload.bump_version()

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


def _scalar_state(value: float, dtype: Any, mesh: Any) -> Tensor:
    made: Tensor = replicate_on(mesh, Tensor._wrap(StridedArray(np.array(value, dtype))))
    made.persistable = True
    return made


def any_overflow(gradients: Sequence[Any]) -> Any:
    """Whether an element of these traced gradients is infinite or NaN, as a 0-D bool; of several meshes, or of one that
    lacks ranks, on one that has all."""
    if not gradients:
        return None
    found: dict[Any, list[Any]] = {}
    for gradient in gradients:
        found.setdefault(mesh_of(gradient), []).append(gradient.isfinite().all())
    mesh = full_mesh(next((mesh for mesh in found if mesh is not None), None))
    return _all([on_mesh(mesh, _all(each)) for each in found.values()]).logical_not()


def _all(finite: Sequence[Any]) -> Any:
    together: Any = get_operator("stack")(finite)  # so that what ranks find meets once
    return together.all()


def step_unless(overflow: Any, optimizer: Any) -> None:
    """Record the optimizer's step for when there is no ``overflow``. That of distributed parameters, which may
    communicate, is computed all the same, and everything keeps its value."""
    if all(parameter.process_mesh is None for parameter in optimizer._parameter_list):
        choose(overflow.logical_not(), optimizer.step, lambda: None)
        return
    tracer, where = active_tracer(), get_operator("where")
    assert tracer is not None
    with unbroken(tracer) as overwritten:
        optimizer.step()
    with no_grad():
        everywhere = {None: whole_of(overflow), mesh_of(overflow): overflow}
        for place, (before, *_) in list(overwritten.values()):
            state = getattr(place, "tensor", None)  # none where a traced tensor was overwritten, which nobody reads
            if state is not None:
                mesh = mesh_of(state)
                if mesh not in everywhere:
                    everywhere[mesh] = on_mesh(mesh, overflow)
                write(state, where(everywhere[mesh], tracer.wrap(before), state))
