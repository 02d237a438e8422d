"""Settings of the framework; :func:`argosy_phi_ops.settings.declared_settings` has those of the packages below, too.

``ARGOSY_LOG`` changes what is shown, never what is computed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from argosy_phi_ops.settings import CACHE_HOME, NUMBER, SWITCH, TEXT, Setting, one_of

__all__ = [
    "CHECK_COLLECTIVES", "CHECK_PROGRAMS", "CURRENT_ENDPOINT", "ENDPOINTS", "LAUNCHERS", "LOCAL_RANK", "LOG", "MPIEXEC",
    "NODE_NAMES", "OPEN_AFTER", "PG_TIMEOUT", "POSITION", "SLURM_JOB", "SLURM_MPI", "TRACEBACK", "announced_ranks",
    "log", "user_cache",
]  # fmt: skip

TRACEBACK = Setting(
    "ARGOSY_TRACEBACK", one_of("folded", "full"), "folded", "full: errors show the frames inside of argosy, too"
)
LOG = Setting("ARGOSY_LOG", TEXT, "", "events to print, separated by commas: compile")
OPEN_AFTER = Setting(
    "ARGOSY_OPEN_AFTER",
    NUMBER,
    32,
    "kinds of calls of a captured function that differ in sizes alone, after which one program serves all; 0: never",
)
CHECK_COLLECTIVES = Setting(
    "ARGOSY_CHECK_COLLECTIVES", SWITCH, True, "0 leaves out that ranks compare their calls before each collective"
)
CHECK_PROGRAMS = Setting(
    "ARGOSY_CHECK_PROGRAMS",
    NUMBER,
    8,
    "up to how many ranks each compares what all communicate before it runs a program on a mesh; 0: never",
)
MPIEXEC = Setting(
    "ARGOSY_MPIEXEC", TEXT, "", "the mpiexec that starts ranks, instead of the one beside Python or on the PATH"
)
SLURM_JOB = Setting("SLURM_JOB_ID", TEXT, "", "the allocation of Slurm that this process is in")
SLURM_MPI = Setting(
    "SLURM_MPI_TYPE", TEXT, "", "how srun meets the cluster's MPI, which the launcher then leaves to it"
)
NODE_NAMES = tuple(
    Setting(name, TEXT, "", f"the machine of this process, as {manager} names it")
    for manager, name in (("Hydra", "PMI_HOSTNAME"), ("Slurm", "SLURMD_NODENAME"))
)

Number = Setting[int | None]
LAUNCHERS: dict[str, tuple[Number, Number]] = {
    launcher: (
        Setting(rank, NUMBER, None, f"this process's rank, as {launcher} announces it"),
        Setting(size, NUMBER, None, f"the number of ranks, as {launcher} announces it"),
    )
    for launcher, rank, size in (
        ("argosy launch", "PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"),
        ("MPICH", "PMI_RANK", "PMI_SIZE"),
        ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # an allocation's shell may have them, too
    )
}
"""Who starts ranks, and the variables by which each says which rank of how many a process is."""
LOCAL_RANK: Number = Setting("PADDLE_LOCAL_RANK", NUMBER, None, "this process's number on its machine")
ENDPOINTS = Setting("PADDLE_TRAINER_ENDPOINTS", TEXT, "", "a name for each rank, separated by commas")
CURRENT_ENDPOINT = Setting("PADDLE_CURRENT_ENDPOINT", TEXT, "", "this rank's name")
PG_TIMEOUT = Setting("PADDLE_PG_TIMEOUT", NUMBER, 1_800_000, "milliseconds that ParallelEnv shows; nothing waits by it")
POSITION = Setting("ARGOSY_POSITION", TEXT, "", "a file that tells in which instruction of a step this rank is")


def log(event: str, line: str) -> None:
    """Print one line about an event when ``ARGOSY_LOG`` names it."""
    if event in LOG.read().split(","):
        sys.stderr.write(f"argosy {event}: {line}\n")


def user_cache() -> Path:
    """Paddle's folder of what is downloaded."""
    return Path(CACHE_HOME.read() or Path.home() / ".cache") / "paddle"


def announced_ranks(*launchers: str) -> tuple[int, int] | None:
    """Rank and number of ranks that the first of ``launchers`` announced to this process; None where none did."""
    for launcher in launchers:
        rank, size = (setting.read() for setting in LAUNCHERS[launcher])
        if rank is not None and size is not None:
            return rank, size
    return None
