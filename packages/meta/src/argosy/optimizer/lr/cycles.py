"""Schedules that rise and fall: in one cycle, in many, with restarts; and a linear factor."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from argosy.optimizer.lr.scheduler import LRScheduler

__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "LinearLR", "OneCycleLR"]


class LinearLR(LRScheduler):
    """``base`` times a factor that goes from ``start_factor`` to ``end_factor`` in ``total_steps``."""

    def __init__(
        self,
        learning_rate: float,
        total_steps: int,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: factors must be within (0, 1], got {start_factor} and {end_factor}")
        if total_steps <= 0:
            raise ValueError(f"LinearLR: total_steps must be positive, got {total_steps}")
        self.total_steps, self.start_factor, self.end_factor = total_steps, start_factor, end_factor
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at this epoch."""
        done = min(self.last_epoch, self.total_steps) / self.total_steps
        return self.base_lr * (self.start_factor + (self.end_factor - self.start_factor) * done)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that begins anew after ``T_0`` epochs, then after ``T_mult`` times as many each (Loshchilov
    and Hutter, 2017).
    """

    def __init__(
        self,
        learning_rate: float,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: T_0 must be a positive integer, got {T_0!r}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"CosineAnnealingWarmRestarts: T_mult must be an integer >= 1, got {T_mult!r}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at this epoch."""
        epoch, length = self.last_epoch, self.T_0
        while epoch >= length:
            epoch, length = epoch - length, length * self.T_mult
            if self.T_mult == 1:
                epoch %= length
        return self.eta_min + (self.base_lr - self.eta_min) * (1 + math.cos(math.pi * epoch / length)) / 2


class OneCycleLR(LRScheduler):
    """From ``max_learning_rate / divide_factor`` up for ``phase_pct`` of the steps, then down to
    ``end_learning_rate`` (Smith and Topin, 2019).

    With ``three_phase`` down as steeply as up, then on to the end. Step ``total_steps``, one after the last, goes on
    along the last phase, as in Paddle. Raises ValueError for a later one.
    """

    def __init__(
        self,
        max_learning_rate: float,
        total_steps: int,
        divide_factor: float = 25.0,
        end_learning_rate: float = 0.0001,
        phase_pct: float = 0.3,
        anneal_strategy: str = "cos",
        three_phase: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if total_steps <= 0 or not 0 <= phase_pct <= 1:
            raise ValueError(
                f"OneCycleLR: needs total_steps > 0 and 0 <= phase_pct <= 1, got {total_steps} and {phase_pct}"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR: anneal_strategy is 'cos' or 'linear', got {anneal_strategy!r}")
        self._anneal = _cosine if anneal_strategy == "cos" else _linear_anneal
        start, rise = max_learning_rate / float(divide_factor), phase_pct * total_steps - 1
        last = total_steps - 1
        if three_phase:
            if phase_pct >= 0.5:
                raise ValueError(f"OneCycleLR: three phases need phase_pct < 0.5, got {phase_pct}")
            bends = [(0.0, start), (rise, max_learning_rate), (2 * rise, start), (last, end_learning_rate)]
        else:
            bends = [(0.0, start), (rise, max_learning_rate), (last, end_learning_rate)]
        self._bends, self.total_steps = bends, total_steps
        super().__init__(start, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at this step. Raises ValueError beyond ``total_steps``."""
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR: step {step} is beyond total_steps, {self.total_steps}")
        phases = [pair for pair in pairwise(self._bends) if pair[1][0] > pair[0][0]]
        if not phases:
            return self._bends[-1][1]
        (begin, low), (end, high) = next((pair for pair in phases if step <= pair[1][0]), phases[-1])
        return self._anneal(low, high, (step - begin) / (end - begin))


def _cosine(start: float, end: float, done: float) -> float:
    return end + (start - end) / 2.0 * (1 + math.cos(math.pi * done))


def _linear_anneal(start: float, end: float, done: float) -> float:
    return start + (end - start) * done


_SCALES: dict[str, Callable[[float, float], float]] = {
    "triangular": lambda x, gamma: 1.0,
    "triangular2": lambda x, gamma: 1 / (2.0 ** (x - 1)),
    "exp_range": lambda x, gamma: gamma**x,
}


class CyclicLR(LRScheduler):
    """Up from ``base_learning_rate`` in ``step_size_up`` steps and down in ``step_size_down``, again and again
    (Smith, 2017).

    mode: the height stays (triangular), halves each cycle (triangular2) or is ``exp_gamma^step`` (exp_range);
    ``scale_fn`` of the cycle or the iteration (``scale_mode``) replaces it.
    """

    def __init__(
        self,
        base_learning_rate: float,
        max_learning_rate: float,
        step_size_up: int,
        step_size_down: int | None = None,
        mode: str = "triangular",
        exp_gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        down = step_size_up if step_size_down is None else step_size_down
        if step_size_up <= 0 or down <= 0:
            raise ValueError(f"CyclicLR: step sizes must be positive, got {step_size_up} and {down}")
        if mode not in _SCALES and scale_fn is None:
            raise ValueError(f"CyclicLR: mode is one of {sorted(_SCALES)}, got {mode!r}")
        if scale_mode not in ("cycle", "iterations"):
            raise ValueError(f"CyclicLR: scale_mode is 'cycle' or 'iterations', got {scale_mode!r}")
        self.amplitude = max_learning_rate - base_learning_rate
        self.cycle_size, self.rising = step_size_up + down, step_size_up / (step_size_up + down)
        self.mode, self.exp_gamma, self.scale_fn = mode, exp_gamma, scale_fn
        default = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode = scale_mode if scale_fn is not None else default
        super().__init__(base_learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate at this step."""
        cycle = 1 + self.last_epoch // self.cycle_size
        place = 1.0 + self.last_epoch / self.cycle_size - cycle
        height = place / self.rising if place <= self.rising else (1 - place) / (1 - self.rising)
        counted = cycle if self.scale_mode == "cycle" else self.last_epoch
        scale = self.scale_fn(counted) if self.scale_fn else _SCALES[self.mode](counted, self.exp_gamma)
        return self.base_lr + self.amplitude * height * scale
