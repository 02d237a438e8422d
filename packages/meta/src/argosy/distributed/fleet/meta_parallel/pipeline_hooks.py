"""Functions that a training script has called where passes of microbatches begin and end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from argosy_phi_ops.context import RankState
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "PassHooks", "PipelineHook", "PipelineParallelMicroStepCallback", "PipelineParallelMicroStepLocations",
    "register_global_pipeline_parallel_hook",
]  # fmt: skip


class PipelineParallelMicroStepLocations(Enum):
    """Where a hook is called: around the forward or backward pass of a microbatch through a stage."""

    FORWARD_BEGIN = "forward_begin"
    FORWARD_END = "forward_end"
    BACKWARD_BEGIN = "backward_begin"
    BACKWARD_END = "backward_end"


class PipelineParallelMicroStepCallback:
    """Hooks by location."""

    def __init__(self) -> None:
        self.hooks: dict[PipelineParallelMicroStepLocations, list[Callable[..., Any]]]
        self.hooks = {location: [] for location in PipelineParallelMicroStepLocations}

    def register_hook(self, location: PipelineParallelMicroStepLocations, hook: Callable[..., Any]) -> None:
        """Call ``hook`` there, with keywords: ``step_id``, the microbatch; forward ``input_tensor``, and at the end
        ``output_tensor``; backward ``output_tensor_grad``, and at the end ``input_tensor_grad``. Each is a tensor,
        or a tuple of what the stage is given, or gives to others: what the last one gives is the loss. Raises
        ValueError for another location."""
        if location not in self.hooks:
            raise ValueError(f"register_hook: there is no location {location!r} among {[*self.hooks]}")
        self.hooks[location].append(hook)

    def on_location(self, location: PipelineParallelMicroStepLocations, **kwargs: Any) -> None:
        """Call the hooks of a location."""
        for hook in self.hooks[location]:
            hook(**kwargs)


_callbacks: RankState[PipelineParallelMicroStepCallback] = RankState(
    "argosy.pipeline_callbacks", PipelineParallelMicroStepCallback
)


def register_global_pipeline_parallel_hook(
    location: PipelineParallelMicroStepLocations, hook: Callable[..., Any]
) -> None:
    """As ``register_hook`` of every ``PipelineParallel`` of this rank, which scripts need not have."""
    _callbacks.value.register_hook(location, hook)


def global_callbacks() -> PipelineParallelMicroStepCallback:
    """The hooks of this rank."""
    return _callbacks.value


class PipelineHook:
    """Hooks by the number of a pass within a step, of which there are so many."""

    def __init__(self, capacity: int) -> None:
        self.hooks_capacity = capacity
        self.hooks: dict[int, list[Callable[[int], Any]]] = {}

    def register_hook(self, hook_id: int, hook: Callable[[int], Any]) -> None:
        """Call ``hook(hook_id)`` before that pass. Raises ValueError for a number that there is not."""
        if not 0 <= hook_id < self.hooks_capacity:
            raise ValueError(f"register_hook: hook_id {hook_id} is none of {self.hooks_capacity}")
        self.hooks.setdefault(hook_id, []).append(hook)

    def run_hook(self, number: int) -> None:
        """Call the hooks of a pass."""
        for hook in self.hooks.get(number, ()):
            hook(number)


class PassHooks:
    """All hooks of a pipeline's training steps, called by :meth:`begin` and :meth:`end` of a pass."""

    def __init__(self, capacity: int) -> None:
        self.inputs = 1
        self.callbacks = global_callbacks()
        self.forward, self.backward = PipelineHook(capacity), PipelineHook(capacity)

    def __bool__(self) -> bool:
        found = (*self.callbacks.hooks.values(), self.forward.hooks, self.backward.hooks)
        return any(found)

    def begin(self, piece: str, number: int, microbatch: int, given: Sequence[Tensor]) -> None:
        """Before the ``number``-th pass of its direction in the step, which is given these tensors."""
        where, ids = PipelineParallelMicroStepLocations, {"step_id": microbatch}
        if piece == "forward":
            self.forward.run_hook(number)
            self.callbacks.on_location(where.FORWARD_BEGIN, input_tensor=_one_or_all(given), **ids)
        else:
            self.backward.run_hook(number)
            self.callbacks.on_location(where.BACKWARD_BEGIN, output_tensor_grad=_one_or_all(given), **ids)

    def end(self, piece: str, microbatch: int, given: Sequence[Tensor], made: Sequence[Tensor]) -> None:
        """After a pass, which has made these tensors."""
        where, ids = PipelineParallelMicroStepLocations, {"step_id": microbatch}
        before, after = _one_or_all(given), _one_or_all(made)
        if piece == "forward":
            self.callbacks.on_location(where.FORWARD_END, input_tensor=before, output_tensor=after, **ids)
        else:
            self.callbacks.on_location(
                where.BACKWARD_END, output_tensor_grad=before, input_tensor_grad=after, **ids
            )  # fmt: skip


def _one_or_all(tensors: Sequence[Tensor]) -> Any:
    return tensors[0] if len(tensors) == 1 else tuple(tensors)
