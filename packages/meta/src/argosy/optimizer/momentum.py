"""Stochastic gradient descent, plain and with momentum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from argosy.optimizer.lr import LRScheduler
from argosy.optimizer.optimizer import Optimizer
from argosy_phi_ops.eager import native
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["SGD", "Momentum"]


class SGD(Optimizer):
    """``p -= lr * g``."""

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, multi_precision)

    def _update(self, parameter: Tensor, value: Any, grad: Any, rate: Any, shared: Any) -> Tensor:
        return value - rate * grad  # type: ignore[no-any-return]

    def _rule(self) -> str | None:
        return "sgd" if self._follows(SGD) else None

    def _scalars(self, parameter: Tensor, rate: Any, options: Mapping[str, Any], shared: Any) -> Sequence[Any] | None:
        return native.numbers(rate)


class Momentum(Optimizer):
    """``v = momentum * v + g; p -= lr * v``, or with Nesterov ``p -= lr * (g + momentum * v)`` (Sutskever et al.,
    2013).
    """

    _group_settings: ClassVar[Mapping[str, str]] = {
        "momentum": "_momentum",
        "use_nesterov": "_nesterov",
        "rescale_grad": "_rescale",
    }

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        momentum: float = 0.9,
        parameters: Sequence[Any] | None = None,
        use_nesterov: bool = False,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        rescale_grad: float = 1.0,
        use_multi_tensor: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, multi_precision)
        self._momentum = float(momentum)
        self._nesterov = use_nesterov
        self._rescale = float(rescale_grad)

    def _update(self, parameter: Tensor, value: Any, grad: Any, rate: Any, shared: Any) -> Tensor:
        velocity: Any = self._accumulator("velocity", parameter)
        if self._rescale != 1.0:
            grad = grad * self._rescale
        new = velocity * self._momentum + grad
        write(velocity, new)
        step = grad + new * self._momentum if self._nesterov else new
        return value - rate * step  # type: ignore[no-any-return]

    def _rule(self) -> str | None:
        if not self._follows(Momentum):
            return None
        return "nesterov" if self._nesterov else "momentum"

    def _states(self, parameter: Tensor) -> list[Tensor]:
        return [self._accumulator("velocity", parameter)]

    def _scalars(self, parameter: Tensor, rate: Any, options: Mapping[str, Any], shared: Any) -> Sequence[Any] | None:
        held = native.numbers(rate)
        return None if held is None else (*held, self._momentum, self._rescale)
