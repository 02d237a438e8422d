"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.fleet.absent import DygraphShardingOptimizer as DygraphShardingOptimizer
from argosy.distributed.fleet.absent import HybridParallelOptimizer as HybridParallelOptimizer
