"""LARS: momentum with a rate for each parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from argosy.optimizer.lr import LRScheduler
from argosy.optimizer.optimizer import Optimizer
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["LarsMomentumOptimizer"]


class LarsMomentumOptimizer(Optimizer):
    """``v = momentum * v + r * (g + d * p); p -= v`` with ``r = lr * lars_coeff * |p| / (|g| + d * |p| + epsilon)``,
    which is ``lr`` where a norm or ``d``, the ``lars_weight_decay``, is 0 (You, Gitman and Ginsburg, 2017).

    Parameters whose name has one of ``exclude_from_weight_decay`` in it have a ``d`` of 0; ``regularization`` adds to
    the gradients of all.
    """

    _reads_whole_parameters: ClassVar[bool] = True

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        momentum: float,
        lars_coeff: float = 0.001,
        lars_weight_decay: float = 0.0005,
        parameter_list: Sequence[Any] | None = None,
        regularization: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        exclude_from_weight_decay: Sequence[str] | None = None,
        epsilon: float = 0,
        multi_precision: bool = False,
        rescale_grad: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name, multi_precision)
        self._momentum, self._rescale = float(momentum), float(rescale_grad)
        self._lars_coeff, self._decoupled, self._epsilon = float(lars_coeff), float(lars_weight_decay), float(epsilon)
        self._excluded = tuple(exclude_from_weight_decay or ())

    def _update(self, parameter: Tensor, value: Any, grad: Any, rate: Any, shared: Any) -> Tensor:
        velocity: Any = self._accumulator("velocity", parameter)
        grad = grad * self._rescale if self._rescale != 1.0 else grad
        decay = 0.0 if any(name in parameter.name for name in self._excluded) else self._decoupled
        step = rate * grad
        if decay > 0:
            size, slope = ((x * x).sum().sqrt() for x in (value, grad))
            own = rate * self._lars_coeff * size / (slope + decay * size + self._epsilon)
            moves = (size > 0).logical_and(slope > 0)
            step = get_operator("where")(moves, own, rate.cast(own.dtype)) * (grad + value * decay)
        new = velocity * self._momentum + step
        write(velocity, new)
        return value - new  # type: ignore[no-any-return]
