"""Written by ``python -m argosy.api.stubs``."""

from argosy.hapi.engine import Engine as Engine
from argosy_autoparallel.mesh import ProcessMesh as ProcessMesh
from argosy.distributed.strategy import Strategy as Strategy
from argosy.distributed.auto_parallel import api as api
from argosy.distributed.auto_parallel.interface import create_mesh as create_mesh
from argosy.distributed.semi_auto import get_mesh as get_mesh
from argosy.distributed.auto_parallel import high_level_api as high_level_api
from argosy.distributed.auto_parallel import interface as interface
from argosy.distributed.auto_parallel import intermediate as intermediate
from argosy.distributed.auto_parallel import local_layer as local_layer
from argosy.distributed.auto_parallel import local_map as local_map
from argosy.distributed.auto_parallel import placement_type as placement_type
from argosy.distributed.auto_parallel import process_mesh as process_mesh
from argosy.distributed.semi_auto import reshard as reshard
from argosy.distributed.semi_auto import set_mesh as set_mesh
from argosy.distributed.auto_parallel.interface import shard_op as shard_op
from argosy.distributed.semi_auto import shard_tensor as shard_tensor
