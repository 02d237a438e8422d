"""The ranks of a job as a grid with an axis for each kind of parallelism, and this rank's groups along the axes."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from argosy.distributed.environment import environment, get_rank, get_world_size
from argosy.distributed.group import Group, new_group, world_group
from argosy.distributed.wrapped_layer import ExpertRanks
from argosy_phi_ops.context import RankState

__all__ = [
    "CommunicateTopology", "HybridCommunicateGroup", "ParallelMode", "groups", "groups_beside", "model_parallel_group",
]  # fmt: skip

_AXES = ("data", "pipe", "sharding", "sep", "context", "model")


class ParallelMode:
    """The kinds of parallelism by number."""

    DATA_PARALLEL = 0
    TENSOR_PARALLEL = 1
    PIPELINE_PARALLEL = 2
    SHARDING_PARALLEL = 3
    SEGMENT_PARALLEL = 4


class CommunicateTopology:
    """Ranks in row-major order over axes ``hybrid_group_names`` of sizes ``dims``: 0, 1, 2 and so on, or ``ranks``.

    Raises ValueError where there are not as many sizes as names, or ranks as places.
    """

    def __init__(
        self, hybrid_group_names: Sequence[str] = _AXES, dims: Sequence[int] = (1,) * len(_AXES),
        ranks: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        if len(hybrid_group_names) != len(dims):
            raise ValueError(f"CommunicateTopology: {len(hybrid_group_names)} names, but {len(dims)} sizes")
        self._parallel_names, self._dims = list(hybrid_group_names), list(dims)
        self.coordinate = _place_type(self._parallel_names)
        places = [self.coordinate(*place) for place in product(*map(range, self._dims))]
        self._ranks = list(range(len(places))) if ranks is None else list(ranks)
        if sorted(self._ranks) != list(range(len(places))):
            raise ValueError(f"CommunicateTopology: ranks {self._ranks} for {len(places)} places")
        self._places = [place for _, place in sorted(zip(self._ranks, places, strict=True))]

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
        return [rank for rank in self._ranks if self._places[rank][axis] == index]

    def get_comm_list(self, axis_name: str) -> list[list[int]]:
        """The lines of ranks along an axis."""
        return self.get_fused_ranks([axis_name])

    def get_fused_ranks(self, fused_axis: Sequence[str]) -> list[list[int]]:
        """The groups of ranks that differ along the given axes alone."""
        groups: dict[tuple[int, ...], list[int]] = {}
        kept = [at for at, name in enumerate(self._parallel_names) if name not in fused_axis]
        for rank in self._ranks:
            groups.setdefault(tuple(self._places[rank][at] for at in kept), []).append(rank)
        return list(groups.values())

    def get_rank_from_stage(self, global_rank: int, **kwargs: int) -> int:
        """The rank at the place of ``global_rank`` but for the given axes."""
        return self.get_rank(**{**self.get_coord(global_rank)._asdict(), **kwargs})


def _place_type(names: list[str]) -> Any:
    """Named tuples of these fields, which are data: type checkers see none of them."""
    make: Any = namedtuple
    return make("Coordinate", names)


class HybridCommunicateGroup:
    """The groups of this rank along the axes of ``topology``: copies of a model ("data"), stages of a pipeline
    ("pipe"), states split over ranks ("sharding"), parts of sequences ("sep", "context") and of layers ("model").

    Of ``hybrid_configs``, ``cp_degree`` members of a sharding group beside each other have parts of the same sequences,
    and ``ep_degree`` ranks of a stage beside each other have experts of their own ("expert"); ranks at the same place
    in other such groups have the same experts ("moe_sharding").

    Raises ValueError where the topology has another number of ranks than the job, and for degrees that do not divide.
    """

    def __init__(self, topology: CommunicateTopology, hybrid_configs: Mapping[str, Any] | None = None) -> None:
        if topology.world_size() != get_world_size():
            raise ValueError(f"HybridCommunicateGroup: {topology.world_size()} places for {get_world_size()} ranks")
        self._topo = topology
        self.global_rank = get_rank()
        self.nranks = get_world_size()
        self._alone = _single_rank_group()
        self._beside: tuple[Group, Group, Group, Group] | None = None
        names = topology.get_hybrid_group_names()
        self._lines = {name: self._axis_group(name) for name in names}
        self._dp_degree, self._mp_degree = self._length("data"), self._length("model")
        self._pp_degree, self._sharding_degree = self._length("pipe"), self._length("sharding")
        self._sep_degree = self._length("sep")
        self._dp_sep_group = self._fused_group(["data", "sep"]) if self._sep_degree > 1 else self._line("data")
        self._check_groups = {
            with_sharding: self._fused_group(["pipe", "model", *(["sharding"] if with_sharding else [])])
            for with_sharding in (False, True)
        }
        self.stage_id = topology.get_coord(self.global_rank).pipe if "pipe" in names else 0
        configs = hybrid_configs or {}
        if (degree := max(1, configs.get("cp_degree", 1))) > 1:
            self._cut("context", "cp_sharding", topology.get_comm_list("sharding"), degree)
        if (degree := max(1, configs.get("ep_degree", 1))) > 1:
            stages = [topology.get_axis_list("pipe", stage) for stage in range(topology.get_dim("pipe"))]
            self._cut("expert", "moe_sharding", stages, degree)

    def _cut(self, inner: str, outer: str, lines: Sequence[Sequence[int]], degree: int) -> None:
        """Make groups of ``degree`` members of each line beside each other, and of those at the same place in them."""
        if len(lines[0]) % degree:
            raise ValueError(f"HybridCommunicateGroup: {len(lines[0])} ranks are not groups of {degree} for {inner!r}")
        grids = [[line[start : start + degree] for start in range(0, len(line), degree)] for line in lines]
        groups = [group for grid in grids for group in grid]
        across = [list(ranks) for grid in grids for ranks in zip(*grid, strict=True)]
        for name, found in ((inner, groups), (outer, across)):
            self._lines[name] = self._alone if len(found[0]) == 1 else _line(found)

    def _axis_group(self, axis: str) -> Group:
        size = self._topo.get_dim(axis)
        if size == 1:
            return self._alone
        return world_group() if size == self.nranks else _line(self._topo.get_comm_list(axis))

    def _fused_group(self, axes: Sequence[str]) -> Group:
        """The ranks that differ from this one along these axes alone."""
        longer = [axis for axis in axes if self._length(axis) > 1]
        if len(longer) <= 1:
            return self._line(longer[0]) if longer else self._alone
        lines = self._topo.get_fused_ranks(longer)
        return world_group() if len(lines) == 1 else _line(lines)

    def _line(self, axis: str) -> Group:
        return self._lines.get(axis, self._alone)

    def _length(self, axis: str) -> int:
        return self._line(axis).nranks

    def _place(self, axis: str) -> int:
        return self._line(axis).ranks.index(self.global_rank)

    def topology(self) -> CommunicateTopology:
        """The grid."""
        return self._topo

    def get_parallel_mode(self) -> int:
        """The kind of parallelism that decides what a model becomes: of a pipeline, of parts of layers, sequences or
        states, else of copies."""
        if self._pp_degree > 1:
            return ParallelMode.PIPELINE_PARALLEL
        if self._mp_degree > 1:
            return ParallelMode.TENSOR_PARALLEL
        if self._sep_degree > 1:
            return ParallelMode.SEGMENT_PARALLEL
        return ParallelMode.SHARDING_PARALLEL if self._sharding_degree > 1 else ParallelMode.DATA_PARALLEL

    def get_global_rank(self) -> int:
        """This rank of the job."""
        return self.global_rank

    def get_data_parallel_rank(self) -> int:
        """This rank's place among the copies."""
        return self._place("data")

    def get_data_parallel_world_size(self) -> int:
        """The number of copies."""
        return self._dp_degree

    def get_data_parallel_group(self) -> Group:
        """The ranks that have copies of what this one has."""
        return self._line("data")

    def get_data_parallel_group_src_rank(self) -> int:
        """The rank that the others take parameters from."""
        return int(self._line("data").ranks[0])

    def get_dp_sep_parallel_group(self) -> Group:
        """The ranks that have copies of what this one has, those with other parts of its sequences included."""
        return self._dp_sep_group

    def get_pipe_parallel_group(self) -> Group:
        """The ranks that have the stages of one pipeline."""
        return self._line("pipe")

    def get_pipe_parallel_world_size(self) -> int:
        """How many ranks a pipeline has."""
        return self._pp_degree

    def ranks_of_stages(self) -> list[list[int]]:
        """The ranks of each place of the pipeline, one for each copy; of a pipeline whose layers are split, or which
        has experts of its own, this rank's one alone."""
        if max(self._mp_degree, self._sharding_degree, self._sep_degree, self._length("expert")) > 1:
            return [[self.get_rank_from_stage(stage)] for stage in range(self._pp_degree)]
        return [self._topo.get_axis_list("pipe", stage) for stage in range(self._pp_degree)]

    def grids_of_stages(self) -> list[list[list[int]]]:
        """The ranks that have this rank's part of the layers of each place of the pipeline, copies by members of their
        sharding groups."""
        copies, members = range(self._dp_degree), range(self._sharding_degree)
        return [[[self.get_rank_from_stage(stage, data=d, sharding=s) for s in members] for d in copies]
                for stage in range(self._pp_degree)]  # fmt: skip

    def get_check_parallel_group(self, sharding: bool = False) -> Group:
        """The ranks that hold parts of one model, of its states, too, where ``sharding``."""
        return self._check_groups[sharding]

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

    def get_model_parallel_rank(self) -> int:
        """This rank's part of the layers."""
        return self._place("model")

    def get_model_parallel_world_size(self) -> int:
        """How many parts layers have."""
        return self._mp_degree

    def get_model_parallel_group(self) -> Group:
        """The ranks that have parts of the same layers."""
        return self._line("model")

    def get_model_parallel_group_src_rank(self) -> int:
        """The first of them."""
        return int(self._line("model").ranks[0])

    def get_sharding_parallel_rank(self) -> int:
        """This rank's part of the states."""
        return self._place("sharding")

    def get_sharding_parallel_world_size(self) -> int:
        """How many parts states have."""
        return self._sharding_degree

    def get_sharding_parallel_group(self) -> Group:
        """The ranks that have parts of the same states."""
        return self._line("sharding")

    def get_sharding_parallel_group_src_rank(self) -> int:
        """The first of them."""
        return int(self._line("sharding").ranks[0])

    def get_sep_parallel_rank(self) -> int:
        """This rank's part of the sequences."""
        return self._place("sep")

    def get_sep_parallel_world_size(self) -> int:
        """How many parts sequences have."""
        return self._sep_degree

    def get_sep_parallel_group(self) -> Group:
        """The ranks that have parts of the same sequences."""
        return self._line("sep")

    def get_sep_parallel_group_src_rank(self) -> int:
        """The first of them."""
        return int(self._line("sep").ranks[0])

    def create_fuse_group(self, fused_strategy_list: Sequence[str], nccl_config: object = None) -> tuple[Any, Group]:
        """The ranks that differ from this one along the axes ``fused_strategy_list`` alone, and a new group of them.
        All ranks call it. Raises ValueError for no axes. ``nccl_config`` changes nothing."""
        if not fused_strategy_list:
            raise ValueError("HybridCommunicateGroup.create_fuse_group: fused_strategy_list names no axis")
        made = _line(self._topo.get_fused_ranks(list(fused_strategy_list)))
        return list(made.ranks), made

    def get_p2p_groups(self) -> tuple[Group, Group, Group, Group]:
        """Groups of this rank and those beside it in its pipeline: to send to the next one, to the one before, to
        receive from the next one, from the one before. All ranks make them together, at the first call."""
        if self._beside is None:
            self._beside = groups_beside(self._topo.get_comm_list("pipe"))
        return self._beside

    def get_pp_mp_parallel_group(self) -> Group:
        """The ranks that hold parts of one model."""
        return self._check_groups[False]

    def get_context_parallel_rank(self) -> int:
        """This rank's part of the sequences of its context group."""
        return self._place("context")

    def get_context_parallel_world_size(self) -> int:
        """How many parts they have."""
        return self._length("context")

    def get_context_parallel_group(self) -> Group:
        """The ranks of a sharding group that have parts of the same sequences."""
        return self._line("context")

    def get_context_parallel_group_src_rank(self) -> int:
        """The first of them."""
        return int(self._line("context").ranks[0])

    def get_cp_sharding_parallel_group(self) -> Group:
        """The ranks of a sharding group that have the same part of other sequences."""
        return self._line("cp_sharding")

    def get_cp_sharding_parallel_group_src_rank(self) -> int:
        """The first of them."""
        return int(self._line("cp_sharding").ranks[0])

    def expert_ranks(self) -> ExpertRanks | None:
        """Over which ranks experts are spread; None where each rank has all."""
        count = self._length("expert")
        return ExpertRanks(count, self._mp_degree, self._line("moe_sharding")) if count > 1 else None

    def get_expert_parallel_rank(self) -> int:
        """This rank's place among those with other experts."""
        return self._place("expert")

    def get_expert_parallel_world_size(self) -> int:
        """Over how many ranks the experts are spread."""
        return self._length("expert")

    def get_expert_parallel_group(self) -> Group:
        """The ranks that have all experts together."""
        return self._line("expert")

    def get_expert_parallel_group_src_rank(self) -> int:
        """The first of them."""
        return int(self._line("expert").ranks[0])

    def get_moe_sharding_parallel_rank(self) -> int:
        """This rank's place among those with the same experts."""
        return self._place("moe_sharding")

    def get_moe_sharding_parallel_world_size(self) -> int:
        """How many ranks have the same experts."""
        return self._length("moe_sharding")

    def get_moe_sharding_parallel_group(self) -> Group:
        """The ranks that have the same experts."""
        return self._line("moe_sharding")

    def get_moe_sharding_parallel_group_src_rank(self) -> int:
        """The first of them."""
        return int(self._line("moe_sharding").ranks[0])


def _line(lines: Sequence[Sequence[int]]) -> Group:
    """This rank's group of these; all ranks make all of them."""
    made = [new_group(ranks) for ranks in lines]
    return next(group for group in made if group.is_member())


def groups_beside(lines: Sequence[Sequence[int]]) -> tuple[Group, Group, Group, Group]:
    """Groups of this rank and those beside it in its line, which is a ring: to send to the next one, to the one before,
    to receive from the next one, from the one before. All ranks make them together."""
    here, alone = get_rank(), _single_rank_group()
    pairs = [pair for line in lines for pair in zip(line, [*line[1:], line[0]], strict=True)]
    forth, back = (
        {pair: new_group(sorted({*pair})) if pair[0] != pair[1] else alone for pair in pairs} for _ in range(2)
    )
    to = next(pair for pair in pairs if pair[0] == here)
    since = next(pair for pair in pairs if pair[1] == here)
    return forth[to], back[since], back[to], forth[since]


def _single_rank_group() -> Group:
    """The group of this rank alone."""
    joined = environment()
    made = Group(0, joined.next_group, [get_rank()], name=f"_alone{joined.next_group}")
    joined.groups[made.id] = made
    joined.next_group += 1
    return made


groups: RankState[HybridCommunicateGroup | None] = RankState("argosy.fleet.groups", lambda: None)
"""The groups that ``fleet.init`` made for this rank."""


def model_parallel_group() -> Group | None:
    """The ranks that have parts of one model; None before ``fleet.init``."""
    found = groups.value
    return None if found is None else found.get_model_parallel_group()


def __getattr__(name: str) -> Any:
    if name == "_HYBRID_PARALLEL_GROUP":  # where libraries look for the groups
        return groups.value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
