"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.fleet.meta_parallel.sharding_optimizer import DygraphShardingOptimizer as DygraphShardingOptimizer
from argosy.distributed.fleet.meta_parallel.sharding_optimizer import DygraphShardingOptimizerV2 as DygraphShardingOptimizerV2
