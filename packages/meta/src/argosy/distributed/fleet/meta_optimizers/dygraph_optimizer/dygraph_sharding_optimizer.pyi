"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.fleet.absent import DygraphShardingOptimizer as DygraphShardingOptimizer
from argosy.distributed.fleet.absent import DygraphShardingOptimizerV2 as DygraphShardingOptimizerV2
