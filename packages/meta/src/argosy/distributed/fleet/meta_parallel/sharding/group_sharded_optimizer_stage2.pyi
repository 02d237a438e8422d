"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.sharding.group_sharded import GroupShardedOptimizerStage2 as GroupShardedOptimizerStage2
