"""Written by ``python -m argosy.stubs``."""

from argosy.distributed.fleet.training import DistributedStrategy as DistributedStrategy
from argosy.distributed.fleet.training import barrier_worker as barrier_worker
from argosy.distributed.fleet.training import distributed_model as distributed_model
from argosy.distributed.fleet.training import distributed_optimizer as distributed_optimizer
from argosy.distributed.fleet.training import distributed_scaler as distributed_scaler
from argosy.distributed.fleet.training import init as init
from argosy.distributed.fleet.training import is_first_worker as is_first_worker
from argosy.distributed.fleet.training import is_worker as is_worker
from argosy.distributed.fleet.recomputation import recompute as recompute
from argosy.distributed.fleet.recomputation import recompute_sequential as recompute_sequential
from argosy.distributed.fleet import utils as utils
from argosy.distributed.fleet.training import worker_index as worker_index
from argosy.distributed.fleet.training import worker_num as worker_num
