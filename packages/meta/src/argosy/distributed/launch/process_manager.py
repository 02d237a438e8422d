"""The process manager that starts the ranks: ``mpiexec``, Hydra by its name, or Slurm's ``srun``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from argosy.settings import MPIEXEC, SLURM_JOB, SLURM_MPI
from argosy_phi_ops.settings import child_environment

__all__ = ["MANAGERS", "NoMpi", "allocated_hosts", "choose_manager", "command", "environment"]

MANAGERS = ("auto", "mpiexec", "hydra", "srun")


class NoMpi(RuntimeError):
    """MPI, or what should start its processes, is not installed."""


def choose_manager(asked: str) -> str:
    """What ``auto`` stands for: ``srun`` within an allocation of Slurm, unless ``ARGOSY_MPIEXEC`` names another."""
    if asked != "auto":
        return asked
    return "srun" if SLURM_JOB.is_set and not MPIEXEC.is_set and shutil.which("srun") else "mpiexec"


def command(ranks: int, hosts: Sequence[str] = (), manager: str = "mpiexec") -> list[str]:
    """What starts ``ranks`` processes, as many on each of ``hosts`` where there are any, first the first one's. Raises
    NoMpi naming the installation when it or mpi4py is missing."""
    if find_spec("mpi4py") is None:
        raise NoMpi(_missing("mpi4py"))
    each = ranks // max(1, len(hosts))
    if manager == "srun":
        return _srun_command(ranks, hosts, each)
    found = _find("mpiexec.hydra") if manager == "hydra" else MPIEXEC.read() or _find("mpiexec")
    if found is None:
        raise NoMpi(_missing("mpiexec.hydra" if manager == "hydra" else "mpiexec"))
    if _is_open_mpi(found):  # which counts cores, and refuses more ranks than there are unless told
        named = (
            ["--host", ",".join(f"{host}:{each}" for host in hosts), "--map-by", f"ppr:{each}:node"] if hosts else []
        )
        exported = [word for name in sorted(environment(["_"], "")) for word in ("-x", name)] if hosts else []
        return [found, "-n", str(ranks), "--oversubscribe", *named, *exported]
    return [found, "-n", str(ranks), *(["-hosts", ",".join(hosts), "-ppn", str(each)] if hosts else [])]


def _srun_command(ranks: int, hosts: Sequence[str], each: int) -> list[str]:
    """A step of the allocation. MPICH is met by PMI-2, which takes its PMI-1 too, Open MPI by PMIx (Slurm's MPI guide),
    unless ``SLURM_MPI_TYPE`` says how this cluster's MPI is."""
    srun = shutil.which("srun")
    if srun is None:
        raise NoMpi("srun is missing: it starts ranks within an allocation of Slurm")
    mpiexec = _find("mpiexec")
    kind = "pmix" if mpiexec is not None and _is_open_mpi(mpiexec) else "pmi2"
    return [
        srun, f"--ntasks={ranks}", f"--nodes={max(1, len(hosts))}", f"--ntasks-per-node={each}",
        "--distribution=block", "--kill-on-bad-exit=1", *([] if SLURM_MPI.is_set else [f"--mpi={kind}"]),
        *([f"--nodelist={','.join(hosts)}"] if hosts else []),
    ]  # fmt: skip


def allocated_hosts() -> list[str]:
    """The machines of the allocation in Slurm's order, in which it numbers ranks. Raises NoMpi outside of one."""
    try:
        done = subprocess.run(["scontrol", "show", "hostnames"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise NoMpi(f"scontrol, which names the machines of an allocation of Slurm, cannot be run: {error}") from error
    if done.returncode or not done.stdout.split():
        raise NoMpi(f"scontrol names no machines: srun needs an allocation of Slurm. {done.stderr.strip()}")
    return done.stdout.split()


def _find(name: str) -> str | None:
    """The program beside this Python, else the first on the PATH."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


def _missing(name: str) -> str:
    return f"{name} is missing; python -m pip install 'argosy-hwadapt[mpi]' brings an MPI"


def _is_open_mpi(mpiexec: str) -> bool:
    try:
        version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except OSError as error:
        raise NoMpi(f"{mpiexec} cannot be run: {error}") from error
    return any(name in version.stdout.lower() for name in ("open mpi", "openrte", "open-mpi"))


def environment(names: Sequence[str], job_id: str) -> dict[str, str]:
    """The environment of all ranks: this one's, with the cores divided among them unless that was chosen. ``names``
    are the ranks', as ``machine:port``.
    """
    machines = len({name.rpartition(":")[0] for name in names})
    threads = str(max(1, (os.cpu_count() or 1) * machines // len(names)))
    shared = {name: threads for name in ("ARGOSY_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    job = {"PADDLE_JOB_ID": job_id, "PADDLE_NNODES": str(machines), "PADDLE_TRAINER_ENDPOINTS": ",".join(names)}
    return {**shared, **child_environment(), **job, "PADDLE_MASTER": names[0]}
