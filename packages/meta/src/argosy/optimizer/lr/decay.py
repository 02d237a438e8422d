"""Schedules that are functions of the epoch."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise

from argosy.optimizer.lr.scheduler import LRScheduler

__all__ = [
    "CosineAnnealingDecay", "ExponentialDecay", "InverseTimeDecay", "LambdaDecay", "MultiStepDecay",
    "MultiplicativeDecay", "NaturalExpDecay", "NoamDecay", "PiecewiseDecay", "PolynomialDecay", "StepDecay",
]  # fmt: skip


class NoamDecay(LRScheduler):
    """``base * d_model^-0.5 * min(epoch^-0.5, epoch * warmup_steps^-1.5)`` (Vaswani et al., 2017)."""

    def __init__(
        self,
        d_model: int,
        warmup_steps: int,
        learning_rate: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if d_model <= 0:
            raise ValueError(f"NoamDecay: d_model must be positive, got {d_model}")
        if warmup_steps <= 0:
            raise ValueError(f"NoamDecay: warmup_steps must be positive, got {warmup_steps}")
        self.d_model, self.warmup_steps = d_model, warmup_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at this epoch; 0 at epoch 0."""
        rising = self.warmup_steps**-1.5 * self.last_epoch
        falling = self.last_epoch**-0.5 if self.last_epoch else 1.0
        return float(self.base_lr * self.d_model**-0.5 * min(falling, rising))


class PiecewiseDecay(LRScheduler):
    """``values[i]`` before ``boundaries[i]``, the last value after all."""

    def __init__(
        self, boundaries: Sequence[int], values: Sequence[float], last_epoch: int = -1, verbose: bool = False
    ) -> None:
        if len(values) != len(boundaries) + 1:
            raise ValueError(f"PiecewiseDecay: {len(boundaries)} boundaries need one value more, got {len(values)}")
        self.boundaries, self.values = list(boundaries), list(values)
        super().__init__(values[0], last_epoch, verbose)

    def get_lr(self) -> float:
        """The value of the interval that holds this epoch."""
        return self.values[bisect_right(self.boundaries, self.last_epoch)]


class _Gamma(LRScheduler):
    """Schedules of a rate and a factor ``gamma``."""

    def __init__(self, learning_rate: float, gamma: float, last_epoch: int = -1, verbose: bool = False) -> None:
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)


class NaturalExpDecay(_Gamma):
    """``base * exp(-gamma * epoch)``."""

    def get_lr(self) -> float:
        """The rate at this epoch."""
        return self.base_lr * math.exp(-self.gamma * self.last_epoch)


class InverseTimeDecay(_Gamma):
    """``base / (1 + gamma * epoch)``."""

    def get_lr(self) -> float:
        """The rate at this epoch."""
        return self.base_lr / (1 + self.gamma * self.last_epoch)


class ExponentialDecay(_Gamma):
    """``base * gamma^epoch``."""

    def get_lr(self) -> float:
        """The rate at this epoch."""
        return float(self.base_lr * self.gamma**self.last_epoch)


class PolynomialDecay(LRScheduler):
    """From ``base`` to ``end_lr`` in ``decay_steps`` along ``(1 - epoch / decay_steps)^power``; again with
    ``cycle``.
    """

    def __init__(
        self,
        learning_rate: float,
        decay_steps: int,
        end_lr: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if power < 0:
            raise ValueError(f"PolynomialDecay: power must not be negative, got {power}")
        if decay_steps <= 0:
            raise ValueError(f"PolynomialDecay: decay_steps must be positive, got {decay_steps}")
        self.decay_steps, self.end_lr, self.power, self.cycle = decay_steps, end_lr, power, cycle
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at this epoch."""
        epoch, length = self.last_epoch, self.decay_steps
        if self.cycle:
            length *= max(1, math.ceil(epoch / length))
        else:
            epoch = min(epoch, length)
        return float((self.base_lr - self.end_lr) * (1 - epoch / length) ** self.power + self.end_lr)


class StepDecay(LRScheduler):
    """``base * gamma^(epoch // step_size)``."""

    def __init__(
        self, learning_rate: float, step_size: int, gamma: float = 0.1, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        if not isinstance(step_size, int) or step_size <= 0:
            raise ValueError(f"StepDecay: step_size must be a positive integer, got {step_size!r}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at this epoch."""
        return float(self.base_lr * self.gamma ** (self.last_epoch // self.step_size))


class MultiStepDecay(LRScheduler):
    """``base * gamma^(number of milestones passed)``."""

    def __init__(
        self,
        learning_rate: float,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if any(a >= b for a, b in pairwise(milestones)):
            raise ValueError(f"MultiStepDecay: milestones must increase, got {list(milestones)}")
        self.milestones, self.gamma = list(milestones), gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at this epoch."""
        return float(self.base_lr * self.gamma ** bisect_right(self.milestones, self.last_epoch))


class LambdaDecay(LRScheduler):
    """``base * lr_lambda(epoch)``."""

    def __init__(
        self, learning_rate: float, lr_lambda: Callable[[int], float], last_epoch: int = -1, verbose: bool = False
    ) -> None:
        if not callable(lr_lambda):
            raise TypeError(f"{type(self).__name__}: lr_lambda must be a function, not {type(lr_lambda).__name__}")
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at this epoch."""
        return self.base_lr * self.lr_lambda(self.last_epoch)


class MultiplicativeDecay(LambdaDecay):
    """``base * lr_lambda(1) * ... * lr_lambda(epoch)``."""

    def get_lr(self) -> float:
        """The rate at this epoch."""
        rate = self.base_lr
        for epoch in range(1, self.last_epoch + 1):
            rate *= self.lr_lambda(epoch)
        return rate


class CosineAnnealingDecay(LRScheduler):
    """``eta_min + (base - eta_min) * (1 + cos(pi * epoch / T_max)) / 2`` (Loshchilov and Hutter, 2017)."""

    def __init__(
        self, learning_rate: float, T_max: int, eta_min: float = 0, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        if not T_max > 0:
            raise ValueError(f"CosineAnnealingDecay: T_max must be positive, got {T_max}")
        self.T_max, self.eta_min = T_max, float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at this epoch."""
        return self.eta_min + (self.base_lr - self.eta_min) * (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
