"""Lookahead: slow weights that follow those of another optimizer."""

# mypy: disable-error-code="operator,no-any-return"
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from argosy.argument_checks import validate_call
from argosy.optimizer.optimizer import Optimizer
from argosy_autograd.modes import no_grad
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["LookAhead"]

_OWN = ("_slow_0", "_lookahead_step_0")


class LookAhead(Optimizer):
    """After each ``k`` steps of ``inner_optimizer`` its weights and the slow ones both become ``slow + alpha * (fast -
    slow)`` (Zhang et al., 2019). The slow weights start as the weights after the first step, as in Paddle.

    The state dict holds that of the inner optimizer, too. ``get_lr`` gives ``alpha``; the rate is the inner one's.
    """

    @validate_call
    def __init__(self, inner_optimizer: Any, alpha: float = 0.5, k: int = 5, name: str | None = None) -> None:
        if not isinstance(inner_optimizer, Optimizer):
            raise TypeError(
                f"LookAhead(): argument 'inner_optimizer' must be an Optimizer, got {inner_optimizer!r:.60}"
            )
        if not 0.0 <= alpha <= 1.0:
            raise ValueError(f"LookAhead(): argument 'alpha' should be from 0 to 1, got {alpha}")
        if k < 1:
            raise ValueError(f"LookAhead(): argument 'k' should be positive, got {k}")
        super().__init__(alpha, inner_optimizer._parameter_list, name=name)
        self.inner_optimizer, self.alpha, self.k = inner_optimizer, alpha, int(k)

    def step(self) -> None:
        """A step of the inner optimizer; each ``k``-th moves the slow weights."""
        self.inner_optimizer.step()
        self._follow(p for p in self._parameter_list if not p.stop_gradient and p.grad is not None)

    def apply_gradients(self, params_grads: Any) -> None:
        """The same with these pairs of parameters and gradients."""
        self.inner_optimizer.apply_gradients(params_grads)
        self._follow(p for p, g in params_grads if g is not None)

    def _follow(self, parameters: Iterable[Tensor]) -> None:
        if not self._parameter_list:
            return
        with no_grad():
            count: Any = self._accumulator("lookahead_step", self._parameter_list[0], shape=[1], dtype="int32")
            write(count, count + 1)
            steps = count.reshape([])
            for parameter in parameters:
                self._move(parameter, steps)

    def _move(self, parameter: Any, steps: Any) -> None:
        slow: Any = self._accumulator("slow", parameter)
        turn = steps % self.k == 0
        start = op("where")(steps == 1, parameter, slow)
        mixed = parameter * self.alpha + start * (1.0 - self.alpha)
        write(parameter, op("where")(turn, mixed, parameter))
        write(slow, op("where")(turn, mixed, start))

    def state_dict(self) -> dict[str, Any]:
        """The slow weights, the number of steps, and the inner optimizer's state."""
        return {**self.inner_optimizer.state_dict(), **super().state_dict()}

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Put back what :meth:`state_dict` gave. Paddle's files have no number of steps: it begins anew, as there."""
        own = {name: value for name, value in state_dict.items() if name.endswith(_OWN)}
        if self._parameter_list:
            own.setdefault(f"{self._parameter_list[0].name}_lookahead_step_0", np.zeros(1, np.int32))
        rest = {name: value for name, value in state_dict.items() if not name.endswith(_OWN)}
        self.inner_optimizer.set_state_dict(rest)
        super().set_state_dict(own)
