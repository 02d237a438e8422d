"""Written by ``python -m argosy.api.stubs``."""

from typing import Any as _Any
from typing import NoReturn as _NoReturn

from argosy.distributed.fleet.base.topology import CommunicateTopology as CommunicateTopology
from argosy.distributed.fleet.strategy import DistributedStrategy as DistributedStrategy
from argosy.distributed.fleet.base.topology import HybridCommunicateGroup as HybridCommunicateGroup
from argosy.distributed.fleet.base.role_maker import PaddleCloudRoleMaker as PaddleCloudRoleMaker
from argosy.distributed.fleet.base.role_maker import Role as Role
from argosy.distributed.fleet.base.role_maker import UserDefinedRoleMaker as UserDefinedRoleMaker
from argosy.distributed.fleet.base.util_factory import UtilBase as UtilBase
from argosy.distributed import auto_parallel as _own_auto
from argosy.distributed.fleet.training import barrier_worker as barrier_worker
from argosy.distributed.fleet import base as base
from argosy.distributed.fleet.training import distributed_model as distributed_model
from argosy.distributed.fleet.training import distributed_optimizer as distributed_optimizer
from argosy.distributed.fleet.training import distributed_scaler as distributed_scaler
from argosy.distributed import fleet as fleet
from argosy.distributed.fleet.training import get_hybrid_communicate_group as get_hybrid_communicate_group
from argosy.distributed.fleet.training import init as init
from argosy.distributed.fleet.training import is_first_worker as is_first_worker
from argosy.distributed.fleet.training import is_worker as is_worker
from argosy.distributed.fleet import layers as layers
from argosy.distributed.fleet import meta_optimizers as meta_optimizers
from argosy.distributed.fleet import meta_parallel as meta_parallel
from argosy.distributed.fleet import model as model
from argosy.distributed.fleet.recompute.recompute import recompute as recompute
from argosy.distributed.fleet.recompute.recompute import recompute_sequential as recompute_sequential
from argosy.distributed.fleet.base.util_factory import util as util
from argosy.distributed.fleet import utils as utils
from argosy.distributed.fleet.training import worker_index as worker_index
from argosy.distributed.fleet.training import worker_num as worker_num
auto = _own_auto
def MultiSlotDataGenerator(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def MultiSlotStringDataGenerator(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
