"""Curves of schedules and of training, drawn by matplotlib where it is installed."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["plot_history", "plot_schedule", "schedule_values"]


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "plot() needs matplotlib: python -m pip install matplotlib", name=error.name
        ) from None
    return pyplot.subplots()[1]


def schedule_values(schedule: Any, epochs: int) -> list[float]:
    """The rates of the next epochs, beginning with today's; the schedule stays where it is."""
    ahead = copy.deepcopy(schedule)
    ahead.verbose = False
    rates = [float(ahead.get_last_lr() if hasattr(ahead, "get_last_lr") else ahead.last_lr)]
    while len(rates) < epochs:
        ahead.step()
        rates.append(float(ahead.last_lr))
    return rates


def plot_schedule(schedule: Any, epochs: int, ax: Any = None) -> Any:
    """Draw the rates of the next epochs; matplotlib's axes."""
    drawn = _axes(ax)
    start = schedule.last_epoch
    drawn.plot(range(start, start + epochs), schedule_values(schedule, epochs))
    drawn.set_xlabel("epoch")
    drawn.set_ylabel("learning rate")
    drawn.set_title(type(schedule).__name__)
    return drawn


def plot_history(history: Mapping[str, Sequence[Any]], names: Sequence[str] | None = None, ax: Any = None) -> Any:
    """Draw figures of every epoch; matplotlib's axes. Raises KeyError for a name that there is none of."""
    drawn = _axes(ax)
    for name in history if names is None else names:
        if name not in history:
            raise KeyError(f"the history has no {name!r}; it has {', '.join(history) or 'nothing yet'}")
        drawn.plot(range(1, len(history[name]) + 1), [_number(value) for value in history[name]], label=name)
    drawn.set_xlabel("epoch")
    drawn.legend()
    return drawn


def _number(value: Any) -> float:
    while isinstance(value, (list, tuple)):
        value = value[0]
    return float(value)
