"""Stochastic gradient descent, plain and with momentum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from argosy.optimizer.lr import LRScheduler
from argosy.optimizer.native_pass import NativePass, Options, has_update_of
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

    def _native_pass(self) -> NativePass | None:
        return _SGDPass(self, "sgd") if has_update_of(self, SGD) else None


class _SGDPass(NativePass):
    __slots__ = ()

    def scalars(self, parameter: Tensor, rate: Any, options: Options, shared: Any) -> Sequence[Any] | None:
        """The rate."""
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

    def _native_pass(self) -> NativePass | None:
        if not has_update_of(self, Momentum):
            return None
        return _MomentumPass(self, "nesterov" if self._nesterov else "momentum")


class _MomentumPass(NativePass):
    __slots__ = ()

    def states(self, parameter: Tensor) -> list[Tensor]:
        """The velocity."""
        return [self.optimizer._accumulator("velocity", parameter)]

    def scalars(self, parameter: Tensor, rate: Any, options: Options, shared: Any) -> Sequence[Any] | None:
        """Rate, momentum and the factor of gradients."""
        rates = native.numbers(rate)
        return None if rates is None else (*rates, self.optimizer._momentum, self.optimizer._rescale)
