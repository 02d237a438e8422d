"""Pipelines of layers, and layers that Paddle splits over ranks, here for one, by the names that scripts import."""

from argosy.distributed.fleet.absent import TensorParallel
from argosy.distributed.fleet.meta_parallel.parallel_layers import (
    ColumnParallelLinear,
    LayerDesc,
    LocalSharedLayerDesc,
    ParallelCrossEntropy,
    PipelineLayer,
    RNGStatesTracker,
    RowParallelLinear,
    SharedLayerDesc,
    VocabParallelEmbedding,
    get_rng_state_tracker,
    model_parallel_random_seed,
)
from argosy.distributed.fleet.meta_parallel.pipeline_parallel import PipelineParallel

__all__ = [
    "ColumnParallelLinear", "LayerDesc", "LocalSharedLayerDesc", "ParallelCrossEntropy", "PipelineLayer",
    "PipelineParallel", "RNGStatesTracker", "RowParallelLinear", "SharedLayerDesc", "TensorParallel",
    "VocabParallelEmbedding", "get_rng_state_tracker", "model_parallel_random_seed",
]  # fmt: skip
