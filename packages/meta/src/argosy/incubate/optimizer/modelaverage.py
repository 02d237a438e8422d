"""Averages of weights over the last steps, to evaluate with."""

# mypy: disable-error-code="operator,no-any-return"
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from argosy.argument_checks import validate_call
from argosy.optimizer.optimizer import Optimizer
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["ModelAverage"]

_SUMMED = 16384
"""Steps after which a sum goes on in a second one, so that little is lost to rounding."""


class ModelAverage(Optimizer):
    """Sums of the weights over a window of steps that grows with training (Polyak and Juditsky, 1992).

    Call :meth:`step` after that of the optimizer which trains. The window holds at least ``min_average_window`` steps
    and at most ``max_average_window``, or ``average_window_rate`` of all steps where that is less; what was summed
    before counts until a window is full. ``with average.apply():`` puts the averages in place of the weights.
    """

    @validate_call
    def __init__(
        self,
        average_window_rate: float,
        parameters: Sequence[Any] | None = None,
        min_average_window: int = 10000,
        max_average_window: int = 10000,
        name: str | None = None,
    ) -> None:
        super().__init__(0.0, parameters, name=name)
        self.average_window, self.min_average_window = average_window_rate, int(min_average_window)
        self.max_average_window = int(max_average_window)

    def step(self) -> None:
        """Add the weights that have gradients to their sums."""
        with no_grad():
            for parameter in self._parameter_list:
                self._accumulator("restore", parameter)  # Paddle wants all states of all parameters in its files
                sums, counts = self._sums(parameter), self._counts(parameter)
                if not parameter.stop_gradient and parameter.grad is not None:
                    self._add(parameter, sums, counts)

    def minimize(
        self, loss: Tensor, startup_program: object = None, parameters: Any = None, no_grad_set: Any = None
    ) -> None:
        """:meth:`step`; the loss is not looked at."""
        self.step()

    def _counts(self, parameter: Tensor) -> list[Any]:
        names = ("num_accumulates", "old_num_accumulates", "num_updates")
        return [self._accumulator(name, parameter, shape=[1], dtype="int64") for name in names]

    def _sums(self, parameter: Tensor) -> list[Any]:
        return [self._accumulator(f"sum_{i}", parameter) for i in (1, 2, 3)]

    def _add(self, parameter: Tensor, sums: list[Any], counts: list[Any]) -> None:
        (first, second, third), (held, before, updates) = sums, counts
        held, updates = held + 1, updates + 1
        one = first + parameter
        carry = (updates % _SUMMED == 0).reshape([])
        two = op("where")(carry, second + one, second)
        one = op("where")(carry, 0.0, one)
        window = (updates.cast("float32") * self.average_window).cast("int64").clip(max=self.max_average_window)
        full = op("logical_and")(held >= self.min_average_window, held >= window)
        whole = full.reshape([])
        new = [op("where")(whole, 0.0, one), op("where")(whole, 0.0, two), op("where")(whole, one + two, third)]
        for state, value in zip(sums, new, strict=True):
            write(state, value)
        numbers = [op("where")(full, 0, held), op("where")(full, held, before), updates]
        for state, value in zip(counts, numbers, strict=True):
            write(state, value)

    @contextmanager
    def apply(self, executor: object = None, need_restore: bool = True) -> Iterator[None]:
        """Within the block weights are their averages; afterwards what they were, unless ``need_restore`` is False.
        Weights that were never added stay."""
        with no_grad():
            for parameter in self._parameter_list:
                write(self._accumulator("restore", parameter), parameter)
                write(parameter, self._average(parameter))
        try:
            yield
        finally:
            if need_restore:
                self.restore()

    def _average(self, parameter: Tensor) -> Any:
        first, second, third = self._sums(parameter)
        held, before, _ = self._counts(parameter)
        count = (held + before).reshape([])
        mean = (first + second + third) / count.clip(min=1).cast(parameter.dtype.name)
        return op("where")(count > 0, mean, parameter)

    def restore(self, executor: object = None) -> None:
        """Put back the weights that :meth:`apply` replaced."""
        with no_grad():
            for parameter in self._parameter_list:
                write(parameter, self._accumulator("restore", parameter))
