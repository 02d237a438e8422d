"""Where Paddle has optimizers whose states are split; each raises NotImplementedError."""

from argosy.distributed.fleet.absent import DygraphShardingOptimizer, DygraphShardingOptimizerV2

__all__ = ["DygraphShardingOptimizer", "DygraphShardingOptimizerV2"]
