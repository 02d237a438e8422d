"""Where Paddle has random states by name."""

from argosy.distributed.fleet.layers.mpu.random import (
    RNGStatesTracker,
    get_rng_state_tracker,
    model_parallel_random_seed,
)

__all__ = ["RNGStatesTracker", "get_rng_state_tracker", "model_parallel_random_seed"]
