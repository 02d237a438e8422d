"""The base of all schedules."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from argosy.argument_checks import CheckedConstructor, validate_call
from argosy.optimizer.rate import Rate

__all__ = ["LRScheduler"]


_STATE = frozenset({"keys", "last_epoch", "last_lr", "rate", "verbose"})


class LRScheduler(CheckedConstructor):
    """``get_lr`` gives the rate of epoch ``last_epoch``; subclasses define it.

    learning_rate: the base rate; last_epoch: where to go on from (-1: from the start); verbose: print each change.
    """

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False) -> None:
        if not isinstance(learning_rate, (float, int)):
            raise TypeError(f"the learning rate must be a number, not {type(learning_rate).__name__}")
        if learning_rate < 0:
            raise ValueError(f"the learning rate must not be negative, got {learning_rate}")
        self.base_lr = float(learning_rate)
        self.last_lr = float(learning_rate)
        self.last_epoch = last_epoch
        self.verbose = verbose
        self.rate = Rate(self.last_lr)
        self._begin()

    def __call__(self) -> float:
        """The current rate."""
        return self.last_lr

    def _begin(self) -> None:
        """Go to the first epoch."""
        self.step()

    def get_lr(self) -> float:
        """The rate at epoch ``last_epoch``."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr()")

    @validate_call
    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to ``epoch``. Raises CaptureError inside a captured function."""
        if epoch is None:
            self.last_epoch += 1
            self._become(self.get_lr())
        else:
            self.last_epoch = epoch
            closed = getattr(self, "_get_closed_form_lr", self.get_lr)
            self._become(closed())

    def _become(self, rate: float) -> None:
        self.rate.set(rate)
        self.last_lr = self.rate.value
        if self.verbose:
            name, epoch = type(self).__name__, self.last_epoch
            sys.stdout.write(f"Epoch {epoch}: {name} set learning rate to {self.last_lr}.\n")

    def plot(self, epochs: int = 100, ax: Any = None) -> Any:
        """Draw the rates of the next ``epochs`` by matplotlib, on ``ax`` if given; the schedule stays where it is."""
        from argosy.notebook.curves import plot_schedule  # and matplotlib: few programs draw

        return plot_schedule(self, epochs, ax)

    def __repr__(self) -> str:
        own = {"base_lr": self.base_lr} | {n: v for n, v in vars(self).items() if n[0] != "_" and n not in _STATE}
        settings = ", ".join(f"{name}={value!r:.60}" for name, value in own.items())
        return f"{type(self).__name__}({settings}): {self.last_lr:g} in epoch {self.last_epoch}"

    def state_keys(self) -> None:
        """Name, in ``self.keys``, the attributes that :meth:`state_dict` holds."""
        self.keys = ["last_epoch", "last_lr"]

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs to go on from here."""
        self.state_keys()
        return {key: getattr(self, key) for key in self.keys}

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what :meth:`state_dict` gave. Raises RuntimeError naming a missing key; warns of others, which
        another kind of schedule has left."""
        if not isinstance(state_dict, dict):
            raise TypeError(f"set_state_dict(): argument 'state_dict' must be a dictionary, got {state_dict!r:.60}")
        self.state_keys()
        for key in self.keys:
            if key not in state_dict:
                raise RuntimeError(f"the state of {type(self).__name__} lacks {key!r}; it has {sorted(state_dict)}")
            setattr(self, key, state_dict[key])
        self.rate.set(self.last_lr)
        if unused := sorted(set(state_dict) - set(self.keys)):
            warnings.warn(f"the state of {type(self).__name__} has no {unused}: is it another's?", stacklevel=2)

    set_dict = set_state_dict
