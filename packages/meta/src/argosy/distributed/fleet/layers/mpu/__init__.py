"""Layers split over the ranks of a group, what passes between those, and random states by name."""

from argosy.distributed.fleet.layers.mpu.mp_layers import (
    ColumnParallelLinear,
    ParallelCrossEntropy,
    RowParallelLinear,
    VocabParallelEmbedding,
)
from argosy.distributed.fleet.layers.mpu.random import (
    RNGStatesTracker,
    dropout,
    get_rng_state_tracker,
    model_parallel_random_seed,
)

__all__ = [
    "ColumnParallelLinear", "ParallelCrossEntropy", "RNGStatesTracker", "RowParallelLinear", "VocabParallelEmbedding",
    "dropout", "get_rng_state_tracker", "model_parallel_random_seed",
]  # fmt: skip
