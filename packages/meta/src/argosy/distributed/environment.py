"""Which rank this is, and the communicator of all ranks.

A rank is a process started by ``argosy.distributed.launch`` (or by an ``mpiexec``), or a thread of
:func:`argosy.distributed.debug.run_ranks`. Everything it knows about the others hangs on its ``Context``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from argosy.api import fetch
from argosy.settings import CURRENT_ENDPOINT, ENDPOINTS, LOCAL_RANK, PG_TIMEOUT, announced_ranks
from argosy_autoparallel.groups import set_world
from argosy_autoparallel.mesh import ProcessMesh, set_group_maker
from argosy_phi_ops.context import Context, context

if TYPE_CHECKING:
    from argosy.distributed.group import Group
    from argosy_hwadapt.communicator import Communicator

__all__ = [
    "Environment", "ParallelEnv", "ParallelMode", "environment", "finish", "get_rank", "get_world_size",
    "is_available", "is_initialized", "join",
]  # fmt: skip

KEY = "argosy.distributed"
FIRST_GROUP = 10
"""Ids below are the framework's own; 0 is the group of all ranks."""


class Environment:
    """What one rank shares with the others: the communicator of all, the groups made from it, by id, and the machines
    of all, once somebody has asked."""

    __slots__ = ("communicator", "groups", "lines", "machines", "next_group")

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator
        self.groups: dict[int, Group] = {}
        self.lines: dict[tuple[int, ...], Group] = {}
        self.machines: list[str] = []
        self.next_group = FIRST_GROUP


def detect_ranks() -> tuple[int, int]:
    """Rank and number of ranks that a launcher announced to this process; (0, 1) without one."""
    return announced_ranks("argosy launch", "MPICH", "Open MPI") or (0, 1)


def environment() -> Environment:
    """The calling rank's environment, joined on first use.

    Raises CommunicatorError when several ranks were announced but MPI is missing or has started another number.
    """
    found = context().values.get(KEY)
    return found if found is not None else join(context(), _world())


def join(ambient: Context, communicator: Communicator) -> Environment:
    """Make the calling rank, whose context is ``ambient``, a member of ``communicator``'s group."""
    made = ambient.values[KEY] = Environment(set_world(communicator))
    return made


def _world() -> Communicator:
    rank, size = detect_ranks()
    from argosy.distributed.call_checks import is_checking
    from argosy_hwadapt.communicators import open_world
    from argosy_hwadapt.errors import CommunicatorError

    found = open_world("solo" if size == 1 else "mpi", check=is_checking())
    if (found.rank, found.size) != (rank, size):
        raise CommunicatorError(
            f"the environment announces rank {rank} of {size}, but MPI says rank {found.rank} of {found.size}: start "
            "the ranks with python -m argosy.distributed.launch, or with the mpiexec of the MPI that mpi4py uses"
        )
    return found


def _line_group(mesh: ProcessMesh, line: ProcessMesh) -> Group:
    """The group of a mesh's line; what makes groups loads with the first one."""
    found: Group = fetch("argosy.distributed.group:line_group", "ProcessMesh.get_group")(mesh, line)
    return found


set_group_maker(_line_group)


def is_initialized() -> bool:
    """Whether this rank has met the others, by :func:`init_parallel_env` or a first communication."""
    return KEY in context().values


def is_available() -> bool:
    """Whether this build can communicate: always."""
    return True


def get_rank(group: Group | None = None) -> int:
    """This rank's number, from 0, among all ranks or in ``group`` (-1 when it is not a member)."""
    if group is not None:
        return group.rank
    return context().rank if is_initialized() else detect_ranks()[0]


def get_world_size(group: Group | None = None) -> int:
    """The number of ranks, in all or of ``group`` (-1 when this rank is not a member)."""
    if group is not None:
        return group.world_size if group.is_member() else -1
    return context().size if is_initialized() else detect_ranks()[1]


def finish() -> None:
    """End the calling rank's part once its program is done: others that wait for it, now or later, fail with
    RankFailure.
    """
    found = context().values.get(KEY)
    if found is not None and hasattr(found.communicator, "finish"):
        found.communicator.finish()


class ParallelMode:
    """Numbers of the ways to be parallel."""

    DATA_PARALLEL = 0
    TENSOR_PARALLEL = 1
    PIPELINE_PARALLEL = 2
    SHARDING_PARALLEL = 3


class ParallelEnv:
    """Rank, world size and device of this rank, under Paddle's names."""

    @property
    def rank(self) -> int:
        """This rank's number."""
        return get_rank()

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return get_world_size()

    @property
    def device_id(self) -> int:
        """The number of this rank's device on its machine."""
        return self.rank if (number := LOCAL_RANK.read()) is None else number

    @property
    def device_type(self) -> str:
        """The kind of this rank's device."""
        return "cpu"

    @property
    def nrings(self) -> int:
        """Communicators of each kind: one."""
        return 1

    @property
    def pg_timeout(self) -> int:
        """The milliseconds of ``PADDLE_PG_TIMEOUT`` (default: 30 minutes). Collectives wait as long
        as it takes here."""
        return PG_TIMEOUT.read()

    @property
    def trainer_endpoints(self) -> list[str]:
        """One name for each rank."""
        return ENDPOINTS.read().split(",")

    @property
    def current_endpoint(self) -> str:
        """This rank's name."""
        return CURRENT_ENDPOINT.read()

    local_rank = rank
    nranks = world_size
    dev_id = device_id

    def __repr__(self) -> str:
        return f"ParallelEnv(rank={self.rank}, world_size={self.world_size})"
