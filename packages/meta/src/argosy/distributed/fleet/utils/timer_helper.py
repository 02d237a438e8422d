"""Timers by name, which a whole process shares."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from argosy.device.queries import synchronize

__all__ = ["Timer", "Timers", "get_timers", "is_timer_initialized", "set_timers"]


class Timer:
    """A clock that adds up the time between :meth:`start` and :meth:`stop`, in seconds, with all that devices do.

    Raises RuntimeError where it is started or stopped twice.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.elapsed_ = 0.0
        self.started_ = False
        self._since = 0.0

    def start(self) -> None:
        """Begin to count."""
        if self.started_:
            raise RuntimeError(f"timer {self.name!r} has already started")
        synchronize()
        self.started_, self._since = True, perf_counter()

    def stop(self) -> None:
        """Count no further."""
        if not self.started_:
            raise RuntimeError(f"timer {self.name!r} has not started")
        synchronize()
        self.started_ = False
        self.elapsed_ += perf_counter() - self._since

    def reset(self) -> None:
        """Begin at 0, stopped."""
        self.elapsed_, self.started_ = 0.0, False

    def elapsed(self, reset: bool = True) -> float:
        """The seconds counted so far; it begins at 0 again where ``reset``, and goes on counting if it did."""
        counting = self.started_
        if counting:
            self.stop()
        seconds = self.elapsed_
        if reset:
            self.reset()
        if counting:
            self.start()
        return seconds


class Timers:
    """Timers by name: ``timers("forward").start()``."""

    def __init__(self) -> None:
        self.timers: dict[str, Timer] = {}

    def __call__(self, name: str, use_event: bool = False) -> Timer:
        """The timer of that name. ``use_event`` changes nothing: there are no events of CUDA."""
        return self.timers.setdefault(name, Timer(name))

    def log(self, names: Sequence[str], normalizer: float = 1.0, reset: bool = True) -> None:
        """Print the milliseconds of the timers, divided by ``normalizer``. Raises ValueError unless it is positive."""
        if normalizer <= 0:
            raise ValueError(f"Timers.log: normalizer is positive, not {normalizer}")
        parts = [f"{name}: {self.timers[name].elapsed(reset) * 1e3 / normalizer:.2f}" for name in names]
        print(" | ".join(["time (ms)", *parts]), flush=True)  # noqa: T201 - it is what users call it for


_timers: Timers | None = None


def is_timer_initialized() -> bool:
    """Whether :func:`set_timers` was called."""
    return _timers is not None


def set_timers() -> None:
    """Make the timers of the process. Raises AssertionError the second time, as libraries
    expect it."""
    global _timers
    if _timers is not None:
        raise AssertionError("set_timers: timers has been already initialized")
    _timers = Timers()


def get_timers() -> Timers:
    """The timers of the process. Raises AssertionError before :func:`set_timers`, as libraries expect it."""
    if _timers is None:
        raise AssertionError("get_timers: timers is not initialized; call set_timers()")
    return _timers
