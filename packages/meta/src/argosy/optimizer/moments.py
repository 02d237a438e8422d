"""Relatives of Adam: other bounds, corrections and scales of its two moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from argosy.optimizer.lr import LRScheduler
from argosy.optimizer.optimizer import Optimizer
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.eager.dispatch import write
from argosy_tensorcore.tensor import Tensor

__all__ = ["Adamax", "Lamb", "NAdam", "RAdam"]


def _select(condition: Any, x: Any, y: Any) -> Any:
    return get_operator("where")(condition, x, y)


class _Moments(Optimizer):
    """What the relatives share: betas, epsilon, and both moments after a gradient."""

    _group_settings: ClassVar[Mapping[str, str]] = {"beta1": "_beta1", "beta2": "_beta2", "epsilon": "_epsilon"}

    def _set(self, beta1: float, beta2: float, epsilon: float) -> None:
        for label, value in (("beta1", beta1), ("beta2", beta2)):
            if not 0 <= float(value) < 1:
                raise ValueError(f"{type(self).__name__}: {label} must be in [0, 1), got {value}")
        self._beta1, self._beta2, self._epsilon = float(beta1), float(beta2), float(epsilon)

    def _need_rate(self) -> None:
        """Raise ValueError for a learning rate that is negative or NaN, as Paddle does in the newer ones."""
        if not self.get_lr() >= 0:
            raise ValueError(f"{type(self).__name__}: learning_rate must not be negative, got {self.get_lr()}")

    def _moments(self, parameter: Tensor, grad: Any) -> tuple[Any, Any]:
        first: Any = self._accumulator("moment1", parameter)
        second: Any = self._accumulator("moment2", parameter)
        m = first * self._beta1 + grad * (1 - self._beta1)
        v = second * self._beta2 + grad * grad * (1 - self._beta2)
        write(first, m)
        write(second, v)
        return m, v

    def _power(self, name: str, parameter: Tensor, beta: float, start: float) -> Any:
        """The state ``name`` times ``beta``, kept for each element as in Paddle's checkpoints."""
        held: Any = self._accumulator(name, parameter, start)
        power = held * beta
        write(held, power)
        return power


class Adamax(_Moments):
    """Adam with the largest decayed gradient in place of the second moment (Kingma and Ba, 2015)."""

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._set(beta1, beta2, epsilon)

    def _update(self, parameter: Tensor, value: Any, grad: Any, rate: Any, shared: Any) -> Tensor:
        moment: Any = self._accumulator("moment", parameter)
        norm: Any = self._accumulator("inf_norm", parameter)
        power: Any = self._accumulator("beta1_pow_acc", parameter, self._beta1, [1])
        m = moment * self._beta1 + grad * (1 - self._beta1)
        largest = grad.abs().maximum(norm * self._beta2 + self._epsilon)
        write(moment, m)
        write(norm, largest)
        size = rate / (1 - power.reshape([]))
        write(power, power * self._beta1)
        return value - size * (m / largest)  # type: ignore[no-any-return]


class Lamb(_Moments):
    """Adam whose step has the length ``lr * |p|`` for each parameter (You et al., 2020).

    lamb_weight_decay is decoupled; ``exclude_from_weight_decay_fn(parameter)`` says who goes without it. Unless
    ``always_adapt``, such a parameter is not rescaled by its length either.
    """

    _group_settings: ClassVar[Mapping[str, str]] = {
        **_Moments._group_settings,
        "lamb_weight_decay": "_decoupled",
        "exclude_from_weight_decay_fn": "_excluded",
    }
    _reads_whole_parameters: ClassVar[bool] = True

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        parameters: Sequence[Any] | None = None,
        grad_clip: Any = None,
        exclude_from_weight_decay_fn: Callable[[Tensor], bool] | None = None,
        multi_precision: bool = False,
        always_adapt: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, None, grad_clip, name, multi_precision)
        self._set(beta1, beta2, epsilon)
        self._decoupled = float(lamb_weight_decay)
        self._excluded = exclude_from_weight_decay_fn
        self._always_adapt = always_adapt

    def _update(self, parameter: Tensor, value: Any, grad: Any, rate: Any, shared: Any) -> Tensor:
        m, v = self._moments(parameter, grad)
        powers: list[Any] = [
            self._accumulator(name, parameter, beta, [1])
            for name, beta in (("beta1_pow_acc", self._beta1), ("beta2_pow_acc", self._beta2))
        ]
        first, second = (1 - power.reshape([]) for power in powers)
        for power, beta in zip(powers, (self._beta1, self._beta2), strict=True):
            write(power, power * beta)
        excluded = self._excluded is not None and self._excluded(parameter)
        decay = 0.0 if excluded else self._decoupled
        step = (m / first) / ((v / second).sqrt() + self._epsilon) + value * decay
        if decay == 0.0 and not self._always_adapt:
            return value - rate * step  # type: ignore[no-any-return]
        return value - rate * _trust(value, step) * step  # type: ignore[no-any-return]


def _trust(value: Any, step: Any) -> Any:
    """``|value| / |step|``, 1 where one of them is 0."""
    length, size = (value * value).sum().sqrt(), (step * step).sum().sqrt()
    some = (length > 0).logical_and(size > 0)
    one = get_operator("ones_like")(size)
    return _select(some, length / _select(some, size, one), one)


class NAdam(_Moments):
    """Adam with Nesterov's momentum, whose weight grows with ``momentum_decay`` (Dozat, 2016)."""

    _group_settings: ClassVar[Mapping[str, str]] = {**_Moments._group_settings, "momentum_decay": "_momentum_decay"}

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.002,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        momentum_decay: float = 0.004,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._need_rate()
        self._set(beta1, beta2, epsilon)
        self._momentum_decay = float(momentum_decay)

    def _update(self, parameter: Tensor, value: Any, grad: Any, rate: Any, shared: Any) -> Tensor:
        decay = self._power("momentum_decay_pow", parameter, 0.96, 1.0)
        correction = 1 - self._power("beta2_pow", parameter, self._beta2, 1.0)
        now = self._beta1 * (1 - 0.5 * decay**self._momentum_decay)
        after = self._beta1 * (1 - 0.5 * (decay * 0.96) ** self._momentum_decay)
        product: Any = self._accumulator("mu_product", parameter, 1.0)
        through = product * now
        write(product, through)
        m, v = self._moments(parameter, grad)
        estimate = m * (after / (1 - through * after)) + grad * ((1 - now) / (1 - through))
        return value - rate * estimate / ((v / correction).sqrt() + self._epsilon)  # type: ignore[no-any-return]


class RAdam(_Moments):
    """Adam that trusts its second moment only once enough gradients were seen (Liu et al., 2020)."""

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._need_rate()
        self._set(beta1, beta2, epsilon)

    def _update(self, parameter: Tensor, value: Any, grad: Any, rate: Any, shared: Any) -> Tensor:
        first = self._power("beta1_pow", parameter, self._beta1, 1.0)
        second = self._power("beta2_pow", parameter, self._beta2, 1.0)
        most = 2.0 / (1 - self._beta2) - 1
        # The length of the average needs s(t) = t b^t / (1 - b^t) = (s(t - 1) (b - b^t) + b^t) / (1 - b^t), which
        # is what Paddle keeps in its files, too.
        held: Any = self._accumulator("rho", parameter)
        weighted = (held * (self._beta2 - second) + second) / (1 - second)
        write(held, weighted)
        length = most - 2 * weighted
        m, v = self._moments(parameter, grad)
        unbiased = m / (1 - first)
        enough = length > 5
        safe = _select(enough, length, get_operator("full_like")(length, 6.0))
        root = ((safe - 4) * (safe - 2) * most / ((most - 4) * (most - 2) * safe)).sqrt()
        adaptive = unbiased * root * (1 - second).sqrt() / (v.sqrt() + self._epsilon)
        return value - rate * _select(enough, adaptive, unbiased)  # type: ignore[no-any-return]
