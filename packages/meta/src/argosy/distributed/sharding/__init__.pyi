"""Written by ``python -m argosy.api.stubs``."""

from argosy.distributed.sharding.group_sharded import group_sharded_parallel as group_sharded_parallel
from argosy.distributed.sharding.group_sharded import save_group_sharded_model as save_group_sharded_model
