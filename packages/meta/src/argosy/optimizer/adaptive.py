"""Optimizers that scale each element's step by a history of its gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from argosy.optimizer.lr import LRScheduler
from argosy.optimizer.optimizer import Optimizer
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["Adadelta", "Adagrad", "RMSProp"]


class Adagrad(Optimizer):
    """``s += g^2; p -= lr * g / (sqrt(s) + epsilon)`` (Duchi et al., 2011)."""

    _group_settings: ClassVar[Mapping[str, str]] = {"epsilon": "_epsilon", "initial_accumulator_value": "_initial"}

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        epsilon: float = 1e-6,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._epsilon, self._initial = float(epsilon), float(initial_accumulator_value)

    def _update(self, parameter: Tensor, value: Any, grad: Any, rate: Any, shared: Any) -> Tensor:
        moment: Any = self._accumulator("moment", parameter, self._initial)
        total = moment + grad * grad
        write(moment, total)
        return value - rate * grad / (total.sqrt() + self._epsilon)  # type: ignore[no-any-return]


class RMSProp(Optimizer):
    """``s = rho * s + (1 - rho) * g^2; v = momentum * v + lr * g / sqrt(s + epsilon); p -= v`` (Hinton, 2012).

    ``centered`` takes the square of the running mean of gradients from ``s``.
    """

    _group_settings: ClassVar[Mapping[str, str]] = {
        "rho": "_rho",
        "epsilon": "_epsilon",
        "momentum": "_momentum",
        "centered": "_centered",
    }

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        momentum: float = 0.0,
        centered: bool = False,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        for label, number in (("rho", rho), ("epsilon", epsilon), ("momentum", momentum)):
            if number < 0:
                raise ValueError(f"RMSProp: {label} must not be negative, got {number}")
        self._rho, self._epsilon, self._momentum = float(rho), float(epsilon), float(momentum)
        self._centered = centered

    def _update(self, parameter: Tensor, value: Any, grad: Any, rate: Any, shared: Any) -> Tensor:
        velocity: Any = self._accumulator("momentum", parameter)
        square: Any = self._accumulator("mean_square", parameter)
        average: Any = self._accumulator("mean_grad", parameter)
        scale = square * self._rho + grad * grad * (1 - self._rho)
        write(square, scale)
        if self._centered:
            mean = average * self._rho + grad * (1 - self._rho)
            write(average, mean)
            scale = scale - mean * mean
        step = velocity * self._momentum + rate * grad / (scale + self._epsilon).sqrt()
        write(velocity, step)
        return value - step  # type: ignore[no-any-return]


class Adadelta(Optimizer):
    """Steps in the units of the parameter: the root of the mean square of steps over that of gradients (Zeiler,
    2012).
    """

    _group_settings: ClassVar[Mapping[str, str]] = {"epsilon": "_epsilon", "rho": "_rho"}

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        epsilon: float = 1e-6,
        rho: float = 0.95,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._epsilon, self._rho = float(epsilon), float(rho)

    def _update(self, parameter: Tensor, value: Any, grad: Any, rate: Any, shared: Any) -> Tensor:
        gradients: Any = self._accumulator("_avg_squared_grad", parameter)
        steps: Any = self._accumulator("_avg_squared_update", parameter)
        scale = gradients * self._rho + grad * grad * (1 - self._rho)
        step = ((steps + self._epsilon) / (scale + self._epsilon)).sqrt() * grad
        write(gradients, scale)
        write(steps, steps * self._rho + step * step * (1 - self._rho))
        return value - rate * step  # type: ignore[no-any-return]
