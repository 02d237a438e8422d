"""Optimizers of split models, each raising NotImplementedError."""

from argosy.distributed.fleet.absent import DygraphShardingOptimizer, HybridParallelOptimizer

__all__ = ["DygraphShardingOptimizer", "HybridParallelOptimizer"]
