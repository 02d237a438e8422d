"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.fleet.meta_parallel.hybrid_parallel_optimizer import HybridParallelOptimizer as HybridParallelOptimizer
from argosy.distributed.fleet.training import obtain_optimizer_parameters_list as _own__obtain_optimizer_parameters_list
_obtain_optimizer_parameters_list = _own__obtain_optimizer_parameters_list
