"""Written by ``python -m argosy.api.stubs``."""

from typing import Any as _Any
from typing import NoReturn as _NoReturn

from argosy.distributed.fleet.base.topology import CommunicateTopology as CommunicateTopology
from argosy.distributed.fleet.strategy import DistributedStrategy as DistributedStrategy
from argosy.distributed.fleet.instance import Fleet as Fleet
from argosy.distributed.fleet.base.topology import HybridCommunicateGroup as HybridCommunicateGroup
from argosy.distributed.fleet.base.role_maker import PaddleCloudRoleMaker as PaddleCloudRoleMaker
from argosy.distributed.fleet.base.role_maker import Role as Role
from argosy.distributed.fleet.base.role_maker import UserDefinedRoleMaker as UserDefinedRoleMaker
from argosy.distributed.fleet.base.util_factory import UtilBase as UtilBase
from argosy.distributed.fleet.instance import all_reduce as all_reduce
from argosy.distributed import auto_parallel as _own_auto
from argosy.distributed.fleet.instance import barrier_worker as barrier_worker
from argosy.distributed.fleet import base as base
from argosy.distributed.fleet.instance import collective_perf as collective_perf
from argosy.distributed.fleet.training import distributed_model as distributed_model
from argosy.distributed.fleet.training import distributed_optimizer as distributed_optimizer
from argosy.distributed.fleet.training import distributed_scaler as distributed_scaler
from argosy.distributed.fleet.instance import fleet as fleet
from argosy.distributed.fleet.instance import get_hybrid_communicate_group as get_hybrid_communicate_group
from argosy.distributed.fleet.utils.log_util import get_log_level_code as get_log_level_code
from argosy.distributed.fleet.utils.log_util import get_log_level_name as get_log_level_name
from argosy.distributed.fleet.instance import init as init
from argosy.distributed.fleet.instance import is_coordinator as is_coordinator
from argosy.distributed.fleet.instance import is_first_worker as is_first_worker
from argosy.distributed.fleet.instance import is_server as is_server
from argosy.distributed.fleet.instance import is_worker as is_worker
from argosy.distributed.fleet import layers as layers
from argosy.distributed.fleet.instance import local_device_ids as local_device_ids
from argosy.distributed.fleet.instance import local_rank as local_rank
from argosy.distributed.fleet import meta_optimizers as meta_optimizers
from argosy.distributed.fleet import meta_parallel as meta_parallel
from argosy.distributed.fleet.instance import minimize as minimize
from argosy.distributed.fleet import model as model
from argosy.distributed.fleet.instance import node_num as node_num
from argosy.distributed.fleet.instance import worker_num as _own_nranks
from argosy.distributed.fleet.instance import worker_index as _own_rank
from argosy.distributed.fleet.instance import local_rank as _own_rank_in_node
from argosy.distributed.fleet.recompute.recompute import recompute as recompute
from argosy.distributed.fleet.recompute.recompute import recompute_sequential as recompute_sequential
from argosy.distributed.fleet.instance import server_endpoints as server_endpoints
from argosy.distributed.fleet.instance import server_num as server_num
from argosy.distributed.fleet.utils.log_util import set_log_level as set_log_level
from argosy.distributed.fleet.base.util_factory import util as util
from argosy.distributed.fleet import utils as utils
from argosy.distributed.fleet.instance import worker_endpoints as worker_endpoints
from argosy.distributed.fleet.instance import worker_index as worker_index
from argosy.distributed.fleet.instance import worker_num as worker_num
from argosy.distributed.fleet.instance import world_device_ids as world_device_ids
from argosy.distributed.fleet.instance import worker_num as _own_world_size
auto = _own_auto
nranks = _own_nranks
rank = _own_rank
rank_in_node = _own_rank_in_node
world_size = _own_world_size
def MultiSlotDataGenerator(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def MultiSlotStringDataGenerator(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def check_save_pre_patch_done(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def get_fl_client(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def init_coordinator(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def init_server(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def init_worker(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def load_inference_model(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def load_model(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def load_one_table(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def make_fl_strategy(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def print_table_stat(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def run_server(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def save_cache_model(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def save_cache_table(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def save_dense_params(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def save_inference_model(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def save_one_table(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def save_persistables(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def server_index(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def set_date(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def shrink(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
def stop_worker(*args: _Any, **kwargs: _Any) -> _NoReturn: ...
