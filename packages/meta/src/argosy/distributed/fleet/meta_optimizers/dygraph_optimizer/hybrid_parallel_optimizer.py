"""Where Paddle has the optimizer of split models, which raises NotImplementedError."""

from argosy.distributed.fleet.absent import HybridParallelOptimizer
from argosy.distributed.fleet.training import obtain_optimizer_parameters_list as _obtain_optimizer_parameters_list

__all__ = ["HybridParallelOptimizer", "_obtain_optimizer_parameters_list"]
