"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.fleet.meta_parallel.pipeline_parallel import PipelineParallel as PipelineParallel
from argosy.distributed.fleet.meta_parallel.wrappers import TensorParallel as TensorParallel
from argosy.distributed.fleet.training import distributed_model as distributed_model
