"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.dist_attr import DistAttr as DistAttr
from argosy.distributed.dist_model import DistModel as DistModel
from argosy.distributed.sharded_loader import ShardDataloader as ShardDataloader
from argosy.distributed.sharded_optimizer import ShardingStage1 as ShardingStage1
from argosy.distributed.sharded_optimizer import ShardingStage2 as ShardingStage2
from argosy.distributed.sharded_optimizer import ShardingStage3 as ShardingStage3
from argosy.distributed.strategy import Strategy as Strategy
from argosy.distributed.semi_auto import dtensor_from_fn as dtensor_from_fn
from argosy.distributed.local_parts import dtensor_from_local as dtensor_from_local
from argosy.distributed.local_parts import dtensor_to_local as dtensor_to_local
from argosy.distributed.semi_auto import get_mesh as get_mesh
from argosy.distributed.parallelizing import in_auto_parallel_align_mode as in_auto_parallel_align_mode
from argosy.distributed.semi_auto import reshard as reshard
from argosy.distributed.semi_auto import set_mesh as set_mesh
from argosy.distributed.sharded_loader import shard_dataloader as shard_dataloader
from argosy.distributed.semi_auto import shard_layer as shard_layer
from argosy.distributed.sharded_optimizer import shard_optimizer as shard_optimizer
from argosy.distributed.sharded_scaler import shard_scaler as shard_scaler
from argosy.distributed.semi_auto import shard_tensor as shard_tensor
from argosy.distributed.dist_model import to_static as to_static
from argosy_autoparallel.api import unshard_dtensor as unshard_dtensor
