"""Process meshes, placements, distributed tensors and the partitioner that runs programs on them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from argosy_autoparallel.__about__ import __version__
from argosy_autoparallel.local_slice import LocalSlice, largest_local_shape, local_shape, local_slice
from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.placement import Partial, Placement, ReduceType, Replicate, Shard
from argosy_autoparallel.tensor_layout import Layout

if TYPE_CHECKING:
    from argosy_autoparallel.api import (
        dtensor_from_fn,
        dtensor_from_local,
        dtensor_to_local,
        reshard,
        shard_tensor,
        unshard_dtensor,
    )
    from argosy_autoparallel.collective_report import report_collectives
    from argosy_autoparallel.counting import Collective, CollectiveReport, Counts, count_collectives
    from argosy_autoparallel.dist_tensor import ShardedArray, is_dist, layout_of
    from argosy_autoparallel.groups import communicators, ensure_groups, set_world, world
    from argosy_autoparallel.implicit_gathers import ImplicitGatherError, strict
    from argosy_autoparallel.partition import PartitionedProgram
    from argosy_autoparallel.partition import partition as partition_program
    from argosy_autoparallel.planner import (
        Cluster,
        ParallelStrategy,
        Planner,
        PlanningError,
        get_planner,
        planner_names,
    )

__all__ = [
    "Cluster", "Collective", "CollectiveReport", "Counts", "ImplicitGatherError", "Layout", "LocalSlice",
    "ParallelStrategy", "Partial", "PartitionedProgram", "Placement", "Planner", "PlanningError", "ProcessMesh",
    "ReduceType", "Replicate", "Shard", "ShardedArray", "__version__", "communicators", "count_collectives",
    "dtensor_from_fn", "dtensor_from_local", "dtensor_to_local", "ensure_groups", "get_planner", "is_dist",
    "largest_local_shape", "layout_of", "local_shape", "local_slice", "partition_program", "planner_names",
    "report_collectives", "reshard", "set_world", "shard_tensor", "strict", "unshard_dtensor", "world",
]  # fmt: skip

#: What needs the IR, operators or devices is imported when first read: name -> "module" or "module:attribute".
_LAZY = {
    **dict.fromkeys(
        ("dtensor_from_fn", "dtensor_from_local", "dtensor_to_local", "reshard", "shard_tensor", "unshard_dtensor"),
        "api",
    ),
    "report_collectives": "collective_report",
    **dict.fromkeys(("Collective", "CollectiveReport", "Counts", "count_collectives"), "counting"),
    **dict.fromkeys(("ShardedArray", "is_dist", "layout_of"), "dist_tensor"),
    **dict.fromkeys(("ImplicitGatherError", "strict"), "implicit_gathers"),
    **dict.fromkeys(("communicators", "ensure_groups", "set_world", "world"), "groups"),
    **dict.fromkeys(
        ("Cluster", "ParallelStrategy", "Planner", "PlanningError", "get_planner", "planner_names"), "planner"
    ),
    "PartitionedProgram": "partition",
    "partition_program": "partition:partition",
}


def __getattr__(name: str) -> Any:
    source = _LAZY.get(name)
    if source is None:
        raise AttributeError(f"module 'argosy_autoparallel' has no attribute {name!r}")
    module, _, attribute = source.partition(":")
    value = globals()[name] = getattr(import_module(f"argosy_autoparallel.{module}"), attribute or name)
    return value
