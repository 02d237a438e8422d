"""The ranks of a job as a grid with an axis for each kind of parallelism, and this rank's groups along the axes."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from argosy.distributed.environment import environment, get_rank, get_world_size
from argosy.distributed.group import Group, new_group, world_group
from argosy_hwadapt.solo import SoloCommunicator

__all__ = ["CommunicateTopology", "HybridCommunicateGroup", "ParallelMode"]

_AXES = ("data", "pipe", "sharding", "sep", "context", "model")


class ParallelMode:
    """The kinds of parallelism by number."""

    DATA_PARALLEL = 0
    TENSOR_PARALLEL = 1
    PIPELINE_PARALLEL = 2
    SHARDING_PARALLEL = 3
    SEGMENT_PARALLEL = 4


class CommunicateTopology:
    """Ranks in row-major order over axes ``hybrid_group_names`` of sizes ``dims``.

    Raises ValueError where there are not as many sizes as names.
    """

    def __init__(self, hybrid_group_names: Sequence[str] = _AXES, dims: Sequence[int] = (1,) * len(_AXES)) -> None:
        if len(hybrid_group_names) != len(dims):
            raise ValueError(f"CommunicateTopology: {len(hybrid_group_names)} names, but {len(dims)} sizes")
        self._parallel_names, self._dims = list(hybrid_group_names), list(dims)
        self.coordinate = _place_type(self._parallel_names)
        self._places = [self.coordinate(*place) for place in product(*map(range, self._dims))]

    def get_hybrid_group_names(self) -> list[str]:
        """The names of the axes."""
        return self._parallel_names

    def get_dim(self, axis_name: str) -> int:
        """The size of an axis. Raises ValueError for a name that none has."""
        if axis_name not in self._parallel_names:
            raise ValueError(f"CommunicateTopology: no axis {axis_name!r} among {self._parallel_names}")
        return self._dims[self._parallel_names.index(axis_name)]

    get_dim_size = get_dim

    def world_size(self) -> int:
        """The number of ranks."""
        return prod(self._dims)

    def get_rank(self, **args: int) -> int:
        """The rank at a place, given along every axis. Raises ValueError for a place that is not there."""
        if args.keys() != set(self._parallel_names) or self.coordinate(**args) not in self._places:
            raise ValueError(f"CommunicateTopology: no place {args} of sizes {self._dims} along {self._parallel_names}")
        return self._places.index(self.coordinate(**args))

    def get_coord(self, rank: int) -> Any:
        """The place of a rank, a named tuple. Raises ValueError for a rank that is not there."""
        if not 0 <= rank < len(self._places):
            raise ValueError(f"CommunicateTopology: rank {rank} is not among {len(self._places)}")
        return self._places[rank]

    def get_axis_list(self, axis_name: str, index: int) -> list[int]:
        """The ranks whose place along the axis is ``index``."""
        axis = self._parallel_names.index(axis_name)
        return [rank for rank, place in enumerate(self._places) if place[axis] == index]

    def get_comm_list(self, axis_name: str) -> list[list[int]]:
        """The lines of ranks along an axis."""
        return self.get_fused_ranks([axis_name])

    def get_fused_ranks(self, fused_axis: Sequence[str]) -> list[list[int]]:
        """The groups of ranks that differ along the given axes alone."""
        groups: dict[tuple[int, ...], list[int]] = {}
        kept = [at for at, name in enumerate(self._parallel_names) if name not in fused_axis]
        for rank, place in enumerate(self._places):
            groups.setdefault(tuple(place[at] for at in kept), []).append(rank)
        return list(groups.values())

    def get_rank_from_stage(self, global_rank: int, **kwargs: int) -> int:
        """The rank at the place of ``global_rank`` but for the given axes."""
        return self.get_rank(**{**self.get_coord(global_rank)._asdict(), **kwargs})


def _place_type(names: list[str]) -> Any:
    """Named tuples of these fields, which are data: type checkers see none of them."""
    make: Any = namedtuple
    return make("Coordinate", names)


class HybridCommunicateGroup:
    """The groups of this rank along the axes of ``topology``, of which all but ``data`` and ``pipe`` have size 1:
    copies of a model, or of its pipeline of stages.

    Raises NotImplementedError where another axis is longer, which annotation does (``distributed.parallelize``);
    ValueError where the topology has another number of ranks than the job.
    """

    def __init__(self, topology: CommunicateTopology) -> None:
        names = topology.get_hybrid_group_names()
        split = {
            name: topology.get_dim(name)
            for name in names
            if name not in ("data", "pipe") and topology.get_dim(name) > 1
        }
        if split:
            raise NotImplementedError(
                f"HybridCommunicateGroup: axes {split} are not implemented; annotate: distributed.parallelize, "
                "shard_layer, shard_optimizer"
            )
        if topology.world_size() != get_world_size():
            raise ValueError(f"HybridCommunicateGroup: {topology.world_size()} places for {get_world_size()} ranks")
        self._topo = topology
        self.global_rank = get_rank()
        self.nranks = get_world_size()
        self._mp_degree = self._sharding_degree = self._sep_degree = 1
        self._pp_degree = topology.get_dim("pipe") if "pipe" in names else 1
        self._dp_degree = self.nranks // self._pp_degree
        self._alone = _alone()
        if self._pp_degree == 1:
            self._dp_comm_group, self._pp_comm_group = world_group(), self._alone
        else:
            self._dp_comm_group, self._pp_comm_group = (_line(topology, axis) for axis in ("data", "pipe"))
        self._sharding_comm_group = self._alone
        self.stage_id = topology.get_coord(self.global_rank).pipe if self._pp_degree > 1 else 0

    def topology(self) -> CommunicateTopology:
        """The grid."""
        return self._topo

    def get_parallel_mode(self) -> int:
        """Data parallelism, or that of a pipeline."""
        return ParallelMode.PIPELINE_PARALLEL if self._pp_degree > 1 else ParallelMode.DATA_PARALLEL

    def get_global_rank(self) -> int:
        """This rank of the job."""
        return self.global_rank

    def get_data_parallel_rank(self) -> int:
        """This rank's place among the copies."""
        return self._dp_comm_group.ranks.index(self.global_rank)

    def get_data_parallel_world_size(self) -> int:
        """The number of copies."""
        return self._dp_degree

    def get_data_parallel_group(self) -> Group:
        """The ranks that have copies of what this one has."""
        return self._dp_comm_group

    def get_data_parallel_group_src_rank(self) -> int:
        """The rank that the others take parameters from."""
        return int(self._dp_comm_group.ranks[0])

    def get_dp_sep_parallel_group(self) -> Group:
        """The ranks that have copies of what this one has."""
        return self._dp_comm_group

    def get_pipe_parallel_group(self) -> Group:
        """The ranks that have the stages of one pipeline."""
        return self._pp_comm_group

    def get_pipe_parallel_world_size(self) -> int:
        """How many ranks a pipeline has."""
        return self._pp_degree

    def ranks_of_stages(self) -> list[list[int]]:
        """The ranks of each place of the pipeline, one for each copy."""
        if self._pp_degree == 1:
            return [list(range(self.nranks))]
        return [self._topo.get_axis_list("pipe", stage) for stage in range(self._pp_degree)]

    def get_check_parallel_group(self, sharding: bool = False) -> Group:
        """The ranks that hold parts of one model: this one alone."""
        return self._alone

    def get_rank_from_stage(self, stage_id: int, **kwargs: int) -> int:
        """The rank of a stage of this rank's pipeline. Raises ValueError for a stage that it does not have."""
        return self._topo.get_rank_from_stage(self.global_rank, pipe=stage_id, **kwargs)

    def get_stage_id(self) -> int:
        """This rank's place in its pipeline."""
        return int(self.stage_id)

    get_pipe_parallel_rank = get_stage_id

    @property
    def is_first_stage(self) -> bool:
        """Whether this rank has the first layers."""
        return self.stage_id == 0

    @property
    def is_last_stage(self) -> bool:
        """Whether this rank has the last layers."""
        return bool(self.stage_id == self._pp_degree - 1)

    def _place(self) -> int:
        """0: the axis has one place."""
        return 0

    def _size(self) -> int:
        """1: the axis has one place."""
        return 1

    def _group(self) -> Group:
        """This rank alone."""
        return self._alone

    def _source(self) -> int:
        """This rank: it is alone on the axis."""
        return self.global_rank

    get_model_parallel_rank = get_sharding_parallel_rank = get_sep_parallel_rank = _place
    get_model_parallel_world_size = get_sharding_parallel_world_size = get_sep_parallel_world_size = _size
    get_expert_parallel_world_size = _size
    get_model_parallel_group = get_sharding_parallel_group = get_sep_parallel_group = _group
    get_pp_mp_parallel_group = get_expert_parallel_group = _group
    get_model_parallel_group_src_rank = get_sharding_parallel_group_src_rank = get_sep_parallel_group_src_rank = _source


def _line(topology: CommunicateTopology, axis: str) -> Group:
    """This rank's group along an axis; all ranks make all of them."""
    made = [new_group(ranks) for ranks in topology.get_comm_list(axis)]
    return next(group for group in made if group.is_member())


def _alone() -> Group:
    """The group of this rank alone."""
    joined = environment()
    made = Group(joined.next_group, [get_rank()], SoloCommunicator(), f"_alone{joined.next_group}")
    joined.groups[made.id] = made
    joined.next_group += 1
    return made
