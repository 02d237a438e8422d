"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.fleet.absent import GroupShardedOptimizerStage2 as GroupShardedOptimizerStage2
