"""Where Paddle has ``distributed_model``."""

from argosy.distributed.fleet.absent import PipelineParallel, TensorParallel
from argosy.distributed.fleet.training import distributed_model

__all__ = ["PipelineParallel", "TensorParallel", "distributed_model"]
