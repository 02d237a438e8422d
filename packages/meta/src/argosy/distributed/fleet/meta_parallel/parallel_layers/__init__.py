"""Layers of tensor and pipeline parallelism, for groups of one rank."""

from argosy.distributed.fleet.layers.mpu import (
    ColumnParallelLinear,
    ParallelCrossEntropy,
    RNGStatesTracker,
    RowParallelLinear,
    VocabParallelEmbedding,
    get_rng_state_tracker,
    model_parallel_random_seed,
)
from argosy.distributed.fleet.meta_parallel.parallel_layers.pp_layers import (
    LayerDesc,
    LocalSharedLayerDesc,
    PipelineLayer,
    SharedLayerDesc,
)

__all__ = [
    "ColumnParallelLinear", "LayerDesc", "LocalSharedLayerDesc", "ParallelCrossEntropy", "PipelineLayer",
    "RNGStatesTracker", "RowParallelLinear", "SharedLayerDesc", "VocabParallelEmbedding", "get_rng_state_tracker",
    "model_parallel_random_seed",
]  # fmt: skip
