"""The ``mpiexec`` that starts the processes: the one installed beside this Python, else the first on the PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from argosy.settings import MPIEXEC
from argosy_phi_ops.settings import child_environment

__all__ = ["NoMpi", "command", "environment"]


class NoMpi(RuntimeError):
    """MPI is not installed."""


def command(ranks: int, hosts: Sequence[str] = ()) -> list[str]:
    """``mpiexec -n ranks``, as many on each of ``hosts`` where there are any, first the first one's. Raises
    NoMpi naming the installation when it or mpi4py is missing."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = MPIEXEC.read() or (str(beside) if beside.exists() else shutil.which("mpiexec"))
    if found is None or find_spec("mpi4py") is None:
        missing = "mpiexec" if found is None else "mpi4py"
        raise NoMpi(f"{missing} is missing; python -m pip install 'argosy-hwadapt[mpi]' brings an MPI")
    each = ranks // max(1, len(hosts))
    if _is_open_mpi(found):  # which counts cores, and refuses more ranks than there are unless told
        named = (
            ["--host", ",".join(f"{host}:{each}" for host in hosts), "--map-by", f"ppr:{each}:node"] if hosts else []
        )
        exported = [word for name in sorted(environment(["_"], "")) for word in ("-x", name)] if hosts else []
        return [found, "-n", str(ranks), "--oversubscribe", *named, *exported]
    return [found, "-n", str(ranks), *(["-hosts", ",".join(hosts), "-ppn", str(each)] if hosts else [])]


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
