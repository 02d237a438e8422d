"""Optimizers by the last gradients' mean, and by the signs of gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.optimizer.lr import LRScheduler
from argosy.optimizer.optimizer import Optimizer
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["ASGD", "Rprop"]


class ASGD(Optimizer):
    """Steps along the mean of the last gradient of each of ``batch_num`` batches (Schmidt et al., 2017).

    The gradients of the last round are kept; until every batch was seen, the mean is over those seen.
    """

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        batch_num: int = 1,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, multi_precision)
        if batch_num < 1:
            raise ValueError(f"ASGD: batch_num must be positive, got {batch_num}")
        self._batches = int(batch_num)

    def _update(self, parameter: Tensor, value: Any, grad: Any, rate: Any, shared: Any) -> Tensor:
        total: Any = self._accumulator("d", parameter)
        last: Any = self._accumulator("y", parameter, shape=[self._batches, *parameter.shape])
        steps: Any = self._accumulator("m", parameter, shape=[1], dtype="int64")
        place = steps % self._batches
        new = total - last.index_select(place).reshape(parameter.shape) + grad
        write(total, new)
        row = get_operator("arange")(self._batches).reshape([-1, *[1] * len(parameter.shape)])
        write(last, get_operator("where")(row == place, grad.unsqueeze(0), last))
        write(steps, steps + 1)
        seen = steps.reshape([]).clip(max=self._batches).astype(new.dtype)
        return value - rate * new / seen  # type: ignore[no-any-return]


class Rprop(Optimizer):
    """Each element's step grows while its gradient keeps its sign and shrinks when that changes (Riedmiller and
    Braun, 1993).

    etas: the factors of shrinking and growing; learning_rate_range: the bounds of steps.
    """

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        learning_rate_range: Sequence[float] = (1e-5, 50),
        parameters: Sequence[Any] | None = None,
        etas: Sequence[float] = (0.5, 1.2),
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, None, grad_clip, name, multi_precision)
        low, high = learning_rate_range
        shrink, grow = etas
        if not 0 < low <= high:
            raise ValueError(f"Rprop: learning_rate_range must be positive and in order, got {low}, {high}")
        if not 0 < shrink < 1 < grow:
            raise ValueError(f"Rprop: etas must be below and above 1, got {shrink}, {grow}")
        self._range, self._etas = (float(low), float(high)), (float(shrink), float(grow))
        self._start = self.get_lr()
        if not low <= self._start <= high:
            raise ValueError(f"Rprop: learning_rate must lie in learning_rate_range {low} to {high}, got {self._start}")

    def _update(self, parameter: Tensor, value: Any, grad: Any, rate: Any, shared: Any) -> Tensor:
        before: Any = self._accumulator("prevs", parameter)
        sizes: Any = self._accumulator("learning_rates", parameter, self._start)
        agreement, one = before * grad, get_operator("ones_like")(grad)
        where = get_operator("where")
        factor = where(agreement > 0, one * self._etas[1], where(agreement < 0, one * self._etas[0], one))
        size = (sizes * factor).clip(*self._range)
        kept = where(agreement < 0, get_operator("zeros_like")(grad), grad)
        write(sizes, size)
        write(before, kept)
        return value - kept.sign() * size  # type: ignore[no-any-return]
