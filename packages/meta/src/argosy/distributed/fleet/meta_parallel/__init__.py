"""Pipelines of layers, layers split over ranks, and models of them, by the names that scripts import."""

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
from argosy.distributed.fleet.meta_parallel.pipeline_parallel import DualPipeVParallel, PipelineParallel
from argosy.distributed.fleet.meta_parallel.wrappers import SegmentParallel, ShardingParallel, TensorParallel

__all__ = [
    "ColumnParallelLinear", "DualPipeVParallel", "LayerDesc", "LocalSharedLayerDesc", "ParallelCrossEntropy",
    "PipelineLayer", "PipelineParallel", "RNGStatesTracker", "RowParallelLinear", "SegmentParallel", "ShardingParallel",
    "SharedLayerDesc", "TensorParallel", "VocabParallelEmbedding", "get_rng_state_tracker",
    "model_parallel_random_seed",
]  # fmt: skip
