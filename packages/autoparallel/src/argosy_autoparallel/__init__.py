"""Process meshes, placements and automatic parallelism for argosy."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from argosy_autoparallel.__about__ import __version__
from argosy_autoparallel.layout import LocalSlice, largest_local_shape, local_shape, local_slice
from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.placement import Partial, Placement, ReduceType, Replicate, Shard

if TYPE_CHECKING:
    from argosy_autoparallel.planner import Cluster, Plan, Planner, PlanningError, get_planner, planner_names

__all__ = [
    "Cluster",
    "LocalSlice",
    "Partial",
    "Placement",
    "Plan",
    "Planner",
    "PlanningError",
    "ProcessMesh",
    "ReduceType",
    "Replicate",
    "Shard",
    "__version__",
    "get_planner",
    "largest_local_shape",
    "local_shape",
    "local_slice",
    "planner_names",
]

#: Planning needs the IR, meshes and placements do not: imported when first read.
_PLANNING = frozenset({"Cluster", "Plan", "Planner", "PlanningError", "get_planner", "planner_names"})


def __getattr__(name: str) -> Any:
    if name not in _PLANNING:
        raise AttributeError(f"module 'argosy_autoparallel' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module("argosy_autoparallel.planner"), name)
    return value
