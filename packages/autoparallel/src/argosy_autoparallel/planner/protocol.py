"""What a planner is given and what it answers. Entry-point group ``argosy.planners``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from argosy_autoparallel.mesh import ProcessMesh
from argosy_autoparallel.placement import Placement
from argosy_pir import Program


class PlanningError(ValueError):
    """No strategy exists: the program does not fit the cluster, or a demand contradicts another one."""


class Cluster(NamedTuple):
    """The machines to plan for, all alike. Rates are per second and per device."""

    nodes: int
    devices_per_node: int
    memory_bytes: int  #: of one device
    flops: float  #: attainable by one device in the compute dtype
    node_bandwidth: float  #: bytes per second of one device to a neighbour of its node
    network_bandwidth: float  #: bytes per second of one device to another node
    node_latency: float = 5e-6  #: seconds
    network_latency: float = 2e-5  #: seconds


class ParallelStrategy(NamedTuple):
    """A mesh and the placements of a program's inputs and states by name, with what the planner expects of them."""

    mesh: ProcessMesh
    placements: Mapping[str, tuple[Placement, ...]]
    step_seconds: float | None = None
    memory_bytes: int | None = None  #: peak of the fullest device


class Planner(Protocol):
    """Chooses a strategy. Implementations are stateless; what they need to know they are given."""

    name: str

    def plan(
        self,
        program: Program,
        cluster: Cluster,
        fixed: Mapping[str, tuple[Placement, ...]] | None = None,
    ) -> ParallelStrategy:
        """Return a strategy for one step of the program; ``fixed`` placements are kept as they are.

        Raises PlanningError, saying what does not fit, when there is none.
        """
