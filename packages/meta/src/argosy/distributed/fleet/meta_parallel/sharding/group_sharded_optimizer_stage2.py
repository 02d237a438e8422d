"""Where Paddle has the optimizer of split states and gradients, which raises NotImplementedError."""

from argosy.distributed.fleet.absent import GroupShardedOptimizerStage2

__all__ = ["GroupShardedOptimizerStage2"]
