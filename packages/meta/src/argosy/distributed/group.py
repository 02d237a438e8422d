"""Groups of ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argosy.distributed.environment import environment
from argosy.distributed.task import Postbox
from argosy_autoparallel.groups import communicators, ensure_groups, split_world
from argosy_autoparallel.mesh import ProcessMesh
from argosy_hwadapt.communicator import Communicator
from argosy_hwadapt.solo import SoloCommunicator
from argosy_phi_ops.context import context

__all__ = [
    "Group",
    "create_nccl_config",
    "destroy_process_group",
    "get_backend",
    "get_group",
    "init_parallel_env",
    "line_group",
    "new_group",
    "restart_process_group",
    "shutdown_process_group",
    "world_group",
]


class Group:
    """Some of the ranks, in order. ``rank`` is this rank's place among them, -1 when it is not a member.

    :func:`new_group` makes groups. The class takes Paddle's arguments: ``rank_in_group``, which a communicator ``pg``
    knows by itself; ``id``; ``ranks``; ``pg``, the communicator, which one rank alone does not need; ``name``.
    """

    def __init__(
        self, rank_in_group: int, id: int, ranks: Sequence[int], pg: Communicator | None = None, name: str | None = None
    ) -> None:
        self.id = id
        self.ranks = list(ranks)
        self.name = name
        alone = rank_in_group == 0 and len(self.ranks) == 1
        self._communicator = SoloCommunicator() if pg is None and alone else pg
        self._is_shut = False
        self._postboxes: dict[int, Postbox] = {}

    @property
    def rank(self) -> int:
        """This rank's place in the group, or -1."""
        return self._communicator.rank if self._communicator is not None else -1

    @property
    def nranks(self) -> int:
        """The number of ranks in the group."""
        return len(self.ranks)

    world_size = nranks

    @property
    def backend(self) -> str:
        """The communicator's name: mpi, inproc, or solo for a program of one rank."""
        return environment().communicator.name

    def is_member(self) -> bool:
        """Whether this rank belongs to the group."""
        return self._communicator is not None

    def get_group_rank(self, rank: int) -> int:
        """The place of a rank of the whole job in this group, or -1."""
        return self.ranks.index(rank) if rank in self.ranks else -1

    def get_global_rank(self, rank: int) -> int:
        """The rank in the whole job of a place in this group. Raises IndexError for a place it does not have."""
        return self.ranks[rank]

    @property
    def communicator(self) -> Communicator:
        """What moves the data. Raises ValueError on a rank that is not a member."""
        if self._is_shut:
            raise ValueError(f"{self!r} was shut down; restart_process_group() opens it again")
        if self._communicator is None:
            raise ValueError(f"rank {context().rank} is not a member of {self!r}")
        return self._communicator

    @property
    def key(self) -> tuple[int, ...]:
        """What captured programs call the group: its ranks, none for all. Their communication goes through the
        communicator that distributed tensors have for a line of these ranks, or else through the group's own.
        """
        if self.id == 0:
            return ()
        ranks = tuple(self.ranks)
        communicators().setdefault(ranks, self.communicator)
        return ranks

    def peer(self, rank: int, kind: str) -> int:
        """The place of a rank of the whole job. Raises ValueError when it is not a member."""
        place = self.get_group_rank(rank)
        if place < 0:
            raise ValueError(f"{kind}: rank {rank} is not a member of {self!r}")
        return place

    def postbox(self, peer: int) -> Postbox:
        """Where messages from the member at place ``peer`` are asked for."""
        return self._postboxes.setdefault(peer, Postbox())

    def __repr__(self) -> str:
        return f"Group(rank={self.rank}, nranks={self.nranks}, id={self.id}, ranks={self.ranks}, name={self.name})"


def _make_group(id: int, ranks: Sequence[int], communicator: Communicator | None, name: str) -> Group:
    return Group(-1 if communicator is None else communicator.rank, id, ranks, communicator, name)


def world_group() -> Group:
    """The group of all ranks, id 0."""
    joined = environment()
    found = joined.groups.get(0)
    if found is None:
        everyone = range(joined.communicator.size)
        found = joined.groups[0] = _make_group(0, everyone, joined.communicator, "_default_pg")
    return found


def init_parallel_env(nccl_config: object = None) -> Group:
    """Meet the other ranks and return the group of all. Without a launcher: a group of one. ``nccl_config`` is
    accepted for compatibility: communication here is MPI's.
    """
    return world_group()


_NCCL_SETTINGS = frozenset((
    "commName", "ll_buffsize", "ll128_buffsize", "simple_buffsize", "buffsize_align", "nchannels", "algoStr",
    "protoStr",
))  # fmt: skip


def create_nccl_config(nccl_config: Mapping[str, int | str] | None = None) -> dict[str, int | str] | None:
    """The settings as :func:`new_group` and :func:`init_parallel_env` accept them, which change nothing here. Raises
    ValueError for one that NCCL does not have."""
    if unknown := {*(nccl_config or ())} - _NCCL_SETTINGS:
        raise ValueError(f"create_nccl_config: there is no {sorted(unknown)}; there are {sorted(_NCCL_SETTINGS)}")
    return None if nccl_config is None else dict(nccl_config)


def new_group(
    ranks: Sequence[int] | None = None, backend: str | None = None, timeout: object = None,
    nccl_comm_init_option: int = 0, nccl_config: object = None, nick_name: str | None = None,
) -> Group:  # fmt: skip
    """Make a group of ``ranks`` (default: all), in ascending order. Every rank of the job must call this; the options
    of NCCL and ``backend`` are accepted for compatibility.

    Raises ValueError for ranks that are repeated or were not launched.
    """
    joined = environment()
    chosen = sorted(range(joined.communicator.size) if ranks is None else ranks)
    _check_ranks(chosen, joined.communicator.size)
    part = split_world(tuple(chosen) if joined.communicator.rank in chosen else ())
    made = _make_group(joined.next_group, chosen, part, nick_name or f"_default_pg{joined.next_group}")
    joined.groups[made.id] = made
    joined.next_group += 1
    return made


def line_group(mesh: ProcessMesh, line: ProcessMesh) -> Group:
    """The group of the ranks of ``line``, a line of ``mesh``; every rank of the job must call. The same line gives the
    same group, whose communicator is the one that distributed tensors use.
    """
    joined = environment()
    ensure_groups(mesh)
    ranks = tuple(line.process_ids)
    if ranks not in joined.lines:
        member = joined.communicator.rank in ranks
        alone = SoloCommunicator() if len(ranks) == 1 else None
        part = (alone or communicators()[ranks]) if member else None
        joined.lines[ranks] = joined.groups[joined.next_group] = _make_group(
            joined.next_group, ranks, part, f"_mesh_line{joined.next_group}"
        )
        joined.next_group += 1
    return joined.lines[ranks]


def _check_ranks(ranks: list[int], size: int) -> None:
    repeated = sorted({rank for rank in ranks if ranks.count(rank) > 1})
    if repeated:
        raise ValueError(f"new_group: ranks {repeated} appear more than once in {ranks}")
    outside = [rank for rank in ranks if not 0 <= rank < size]
    if outside:
        raise ValueError(f"new_group: ranks {outside} were not launched; there are {size} ranks, from 0")
    if not ranks:
        raise ValueError("new_group: a group needs at least one rank")


def get_group(id: int = 0) -> Group:
    """The group with this id. Raises ValueError when there is none."""
    if id == 0:
        return world_group()
    groups = environment().groups
    if id not in groups:
        raise ValueError(f"there is no group {id}; there are {sorted({0, *groups})}")
    return groups[id]


def get_backend(group: Group | None = None) -> str:
    """The name of the communicator: ``"mpi"``, ``"inproc"``, or ``"solo"`` for one rank."""
    return (world_group() if group is None else group).backend


def destroy_process_group(group: Group | None = None) -> None:
    """Leave ``group``, or every group that was made with :func:`new_group`."""
    joined = environment()
    for id in [id for id in joined.groups if id != 0] if group is None else [group.id]:
        left = joined.groups.pop(id)
        if left in joined.lines.values():
            del joined.lines[tuple(left.ranks)]  # its communicator stays: distributed tensors have it
        elif left.is_member() and id != 0:
            if communicators().get(tuple(left.ranks)) is left.communicator:
                del communicators()[tuple(left.ranks)]
            left.communicator.close()


def shutdown_process_group(group: Group | None = None) -> None:
    """Close the communicators of ``group``, or of every group but that of all ranks, until
    :func:`restart_process_group`. Each member calls when nothing is on its way."""
    for each in _groups_to_close(group):
        if not each._is_shut and each._communicator is not None:
            if communicators().get(tuple(each.ranks)) is each._communicator:
                del communicators()[tuple(each.ranks)]
            each._communicator.close()
        each._is_shut = True


def restart_process_group(group: Group | None = None) -> None:
    """Open again what :func:`shutdown_process_group` closed; every rank of the job must call, members or not."""
    joined = environment()
    for each in _groups_to_close(group):
        if each._is_shut:
            each._communicator = split_world(tuple(each.ranks) if joined.communicator.rank in each.ranks else ())
            each._is_shut = False


def _groups_to_close(group: Group | None) -> list[Group]:
    """``group``, or all that :func:`new_group` made. Raises ValueError for groups whose communicator others have."""
    joined = environment()
    fixed = [joined.groups.get(0), *joined.lines.values()]
    if group is None:
        return [each for each in joined.groups.values() if each not in fixed]
    if group in fixed:
        raise ValueError(f"{group!r} cannot be shut down: distributed tensors communicate in it")
    return [group]
