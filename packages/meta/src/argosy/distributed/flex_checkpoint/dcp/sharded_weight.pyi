"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.sharded_weight import ShardedStateDict as ShardedStateDict
from argosy.distributed.sharded_weight import ShardedWeight as ShardedWeight
from argosy.distributed.sharded_weight import ShardedWeightDesc as ShardedWeightDesc
from argosy.distributed.sharded_weight import build_sharded_state_dict as build_sharded_state_dict
from argosy.distributed.sharded_weight import create_sharded_weight_with_new_local as create_sharded_weight_with_new_local
from argosy.distributed.sharded_weight import make_replicated_sharded_weight as make_replicated_sharded_weight
from argosy.distributed.sharded_weight import make_tp_sharded_weight_for_checkpoint as make_tp_sharded_weight_for_checkpoint
from argosy.distributed.sharded_weight import shard_weight as shard_weight
