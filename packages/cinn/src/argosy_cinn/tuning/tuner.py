"""Measured choices: which blocking of a matrix product is fastest on this machine (``ARGOSY_TUNE=1``, option ``tune``).

While a program is emitted, each product of known sizes that is large enough is run in every blocking of
`contraction.blocking.candidates`, in turn, and the fastest is kept on disk beside compiled objects: it is measured once
for a machine. All candidates give the same bits, so that only time depends on what was measured. Without tuning
nothing is timed and nothing that was measured before is read.

``python -m argosy_cinn tuned`` lists what is kept. Row kernels have one schedule, which is not tuned.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from argosy_cinn.contraction.blocking import Blocking, candidates, chooser, estimate_blocking
from argosy_cinn.contraction.problem import Contraction
from argosy_cinn.runtime.cache import ObjectCache, cache_key, default_cache
from argosy_cinn.settings import TUNE
from argosy_cinn.target import Target
from argosy_cinn.tuning.measure_product import Shape, product_call

_PREFIX = "tuned-"
_ROUNDS = 5
#: Multiply-adds below which a product is not worth a measurement, and above which it would take too long.
_LEAST, _MOST = 1 << 20, 1 << 36
#: The share of time that another blocking must save: less is noise.
_GAIN = 0.02


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for a product: the number of the candidate, how it is cut, and the least nanoseconds of every
    candidate (the first is the estimated one)."""

    product: str
    index: int
    cut: str
    nanoseconds: list[float]

    def line(self) -> str:
        """One line about it."""
        gain = self.nanoseconds[0] / self.nanoseconds[self.index]
        return f"{self.product}: {self.cut}, {self.nanoseconds[self.index] / 1e6:.3f} ms, {gain:.2f}x the estimate"


class Tuner:
    """Chooses blockings by time. ``store``: where choices are kept; ``clock``: nanoseconds, CPU time by default;
    ``prepare`` makes the callable that runs one product in one blocking.
    """

    def __init__(
        self,
        store: ObjectCache,
        clock: Callable[[], float] = time.thread_time_ns,
        prepare: Callable[[Shape, Blocking, Target], Callable[[], None]] = product_call,
    ) -> None:
        self._store, self._clock, self._prepare = store, clock, prepare
        self._known: dict[str, Choice] = {}

    def choose_blocking(self, problem: Contraction, target: Target) -> Blocking | None:
        """The fastest blocking of a product; None where it is not one to measure."""
        shape = Shape.from_problem(problem)
        if shape is None or not _LEAST <= shape.m * shape.n * shape.k <= _MOST:
            return None
        plain = shape.problem(None)
        if estimate_blocking(plain, target) != estimate_blocking(problem, target):
            return None
        options = candidates(plain, target)
        return options[self.choice(shape, options, target).index]

    def choice(self, shape: Shape, options: list[Blocking], target: Target) -> Choice:
        """The choice among some blockings: known, kept on disk, or measured now."""
        key = _PREFIX + cache_key(f"{shape} {options}", target.key)
        if key not in self._known:
            found = _read(self._store, key)
            if found is None or found.index >= len(options):
                found = self._measure(shape, options, target)
                self._store.put(key, json.dumps(asdict(found)).encode())
            self._known[key] = found
        return self._known[key]

    def _measure(self, shape: Shape, options: list[Blocking], target: Target) -> Choice:
        runs = [self._prepare(shape, option, target) for option in options]
        least = [float("inf")] * len(runs)
        for _ in range(_ROUNDS):
            for i, run in enumerate(runs):
                start = self._clock()
                run()
                least[i] = min(least[i], self._clock() - start)
        best = min(range(len(least)), key=least.__getitem__)
        best = best if least[best] < (1 - _GAIN) * least[0] else 0
        return Choice(str(shape), best, cut(options[best]), least)


def cut(blocking: Blocking) -> str:
    """How a product is cut, in words."""
    tile = f"tile {blocking.tile_rows} x {blocking.tile_columns}"
    return f"{tile}, steps of {blocking.depth}, blocks of {blocking.columns} columns"


@contextmanager
def tune(options: Mapping[str, Any]) -> Iterator[None]:
    """Let measurements choose in the block, where the options ask for it."""
    if not TUNE.resolve(options):
        yield
        return
    token = chooser.set(Tuner(options.get("cache") or default_cache()).choose_blocking)
    try:
        yield
    finally:
        chooser.reset(token)


def choices(store: ObjectCache) -> list[Choice]:
    """Everything that is kept, by product."""
    names = store.names(_PREFIX)
    return sorted((c for c in (_read(store, name) for name in names) if c is not None), key=lambda c: c.product)


def _read(store: ObjectCache, key: str) -> Choice | None:
    data = store.get(key)
    try:
        found = None if data is None else Choice(**json.loads(data))
        usable = found is not None and 0 <= found.index < len(found.nanoseconds) and min(found.nanoseconds) >= 0
    except (ValueError, TypeError):  # whole, but not what this version writes
        return None
    return found if usable else None
