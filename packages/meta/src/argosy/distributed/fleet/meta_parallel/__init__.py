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
from argosy.distributed.fleet.meta_parallel.parallel_layers.spec_utils import LayerSpec, build_spec_layer
from argosy.distributed.fleet.meta_parallel.pipeline_hooks import (
    PipelineHook,
    PipelineParallelMicroStepCallback,
    PipelineParallelMicroStepLocations,
    register_global_pipeline_parallel_hook,
)
from argosy.distributed.fleet.meta_parallel.pipeline_parallel import (
    DualPipeVParallel,
    NoPipelineParallel,
    PipelineDatasetPreprocessor,
    PipelineParallel,
)
from argosy.distributed.fleet.meta_parallel.pp_utils.forward_backward_overlap_utils import ScheduleChunk, ScheduleNode
from argosy.distributed.fleet.meta_parallel.wrappers import SegmentParallel, ShardingParallel, TensorParallel

__all__ = [
    "ColumnParallelLinear", "DualPipeVParallel", "LayerDesc", "LayerSpec", "LocalSharedLayerDesc", "NoPipelineParallel",
    "ParallelCrossEntropy", "PipelineDatasetPreprocessor", "PipelineHook", "PipelineLayer", "PipelineParallel",
    "PipelineParallelMicroStepCallback", "PipelineParallelMicroStepLocations", "RNGStatesTracker",
    "RowParallelLinear", "ScheduleChunk", "ScheduleNode", "SegmentParallel", "ShardingParallel", "SharedLayerDesc",
    "TensorParallel", "VocabParallelEmbedding", "build_spec_layer", "get_rng_state_tracker",
    "model_parallel_random_seed", "register_global_pipeline_parallel_hook",
]  # fmt: skip
