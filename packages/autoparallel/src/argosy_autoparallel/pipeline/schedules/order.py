"""The pieces of a stage, and what every schedule checks of its arguments.

A stage is a chunk of a model. ``forward`` runs it, ``backward`` gives the gradients of its input and its weights;
zero-bubble schedules run these two apart, ``backward_input`` and ``backward_weight``.
"""

from __future__ import annotations

from argosy_autoparallel.schedule.instructions import Run
from argosy_autoparallel.schedule.lists import ScheduleError

__all__ = ["Order", "Stage", "backward", "backward_input", "backward_weight", "check_sizes", "forward"]

Order = list[Run]
"""What one rank runs, in order. The order of all ranks is a list of these."""


def forward(stage: int, microbatch: int) -> Run:
    """The forward pass of a stage."""
    return Run("forward", stage, microbatch)


def backward(stage: int, microbatch: int) -> Run:
    """The whole backward pass of a stage."""
    return Run("backward", stage, microbatch)


def backward_input(stage: int, microbatch: int) -> Run:
    """The gradient of a stage's input."""
    return Run("backward_input", stage, microbatch)


def backward_weight(stage: int, microbatch: int) -> Run:
    """The gradient of a stage's weights."""
    return Run("backward_weight", stage, microbatch)


def check_sizes(name: str, ranks: int, microbatches: int, at_least: int = 1, multiple_of: int = 1) -> None:
    """Raise :class:`ScheduleError` for numbers that a schedule does not take."""
    if ranks < 1 or microbatches < 1:
        raise ScheduleError(f"{name}: needs at least one rank and one microbatch, got {ranks} and {microbatches}")
    if microbatches < at_least:
        raise ScheduleError(f"{name}: {ranks} ranks need at least {at_least} microbatches, got {microbatches}")
    if microbatches % multiple_of:
        raise ScheduleError(
            f"{name}: the number of microbatches must be divisible by {multiple_of}, got {microbatches}"
        )


class Stage:
    """A stage and how many microbatches it has done of each pass."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.forwards = self.inputs = self.weights = 0

    def forward(self) -> Run:
        """The forward pass of the next microbatch."""
        self.forwards += 1
        return forward(self.number, self.forwards - 1)

    def input(self) -> Run:
        """The gradient of the stage's input for the next one."""
        self.inputs += 1
        return backward_input(self.number, self.inputs - 1)

    def weight(self) -> Run:
        """The gradient of its weights for the next one."""
        self.weights += 1
        return backward_weight(self.number, self.weights - 1)
