"""Random states by name, so that ranks draw alike in one place and apart in another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

import argosy.runtime  # noqa: F401  (the generator comes with it)
from argosy.distributed.fleet.base.topology import groups
from argosy.nn import functional as F
from argosy_phi_ops.context import RankState, context
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "MODEL_PARALLEL_RNG", "RNGStatesTracker", "add_state_of_parts", "dropout", "get_rng_state_tracker",
    "model_parallel_random_seed",
]  # fmt: skip

MODEL_PARALLEL_RNG = "model_parallel_rng"


class RNGStatesTracker:
    """Random states by name; drawing within :meth:`rng_state` goes on where the last block of that name stopped."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all states."""
        self.states_: dict[str, Any] = {}
        self.seeds_: set[int] = set()

    def add(self, name: str, seed: int) -> None:
        """A new state. Raises ValueError where the name or the seed is taken."""
        if seed in self.seeds_:
            raise ValueError(f"RNGStatesTracker: seed {seed} already exists")
        if name in self.states_:
            raise ValueError(f"RNGStatesTracker: state {name!r} already exists")
        self.seeds_.add(seed)
        generator = context().generator
        outer = generator.get_state()
        generator.manual_seed(seed)
        self.states_[name] = generator.get_state()
        generator.set_state(outer)

    def get_states_tracker(self) -> dict[str, Any]:
        """All states."""
        return dict(self.states_)

    def set_states_tracker(self, states: Mapping[str, Any]) -> None:
        """Go on from these states. Raises ValueError for a name that was not added."""
        for name in states:
            self._check(name)
        self.states_.update(states)

    @contextmanager
    def rng_state(self, name: str = MODEL_PARALLEL_RNG) -> Iterator[None]:
        """Draw from the state ``name`` within the block. Raises ValueError for a name that was not added."""
        self._check(name)
        generator = context().generator
        outer = generator.get_state()
        generator.set_state(self.states_[name])
        try:
            yield
        finally:
            self.states_[name] = generator.get_state()
            generator.set_state(outer)

    def _check(self, name: str) -> None:
        if name not in self.states_:
            raise ValueError(f"RNGStatesTracker: state {name!r} does not exist; there are {sorted(self.states_)}")


_tracker = RankState("argosy.fleet.rng", RNGStatesTracker)


def get_rng_state_tracker() -> RNGStatesTracker:
    """The tracker of this rank."""
    return _tracker.value


def model_parallel_random_seed(seed: int | None = None) -> None:
    """Seed the generator with ``seed`` (one drawn by NumPy), and the state ``model_parallel_rng`` apart from it and
    from other ranks with parts of the model."""
    first = int(np.random.randint(0, 10000)) if not seed else seed
    _tracker.value.reset()
    add_state_of_parts(first)
    context().generator.manual_seed(first)


def add_state_of_parts(seed: int | None = None) -> None:
    """Let parts of layers be drawn from the state ``model_parallel_rng``, seeded apart on each rank of a model: from
    ``seed``, by default the one that the generator has, which draws on as before. Nothing where there is the state."""
    made = groups.value
    place = 0
    if made is not None:
        place = made.get_model_parallel_rank() * made.get_pipe_parallel_world_size() + made.get_stage_id()
    first = context().generator.initial_seed() if seed is None else seed
    if MODEL_PARALLEL_RNG not in _tracker.value.states_:
        _tracker.value.add(MODEL_PARALLEL_RNG, first + 1 + place)


def dropout(
    x: Tensor,
    p: float = 0.5,
    axis: Any = None,
    rng_name: str | None = None,
    training: bool = True,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Tensor:
    """``nn.functional.dropout`` that draws from the state ``rng_name``, if one is given."""
    with nullcontext() if rng_name is None else _tracker.value.rng_state(rng_name):
        dropped: Tensor = F.dropout(x, p, axis=axis, training=training, mode=mode)
    return dropped
