"""The launch command."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from argosy.distributed.launch.arguments import parse
from argosy.distributed.launch.job import Job
from argosy.distributed.launch.mpiexec import NoMpi
from argosy.settings import CHECK_PROGRAMS

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None, prog: str = "python -m argosy.distributed.launch") -> int:
    """Run a job; returns its exit code: 0, or that of the rank that failed first (128 + n for signal n)."""
    chosen = parse(arguments, prog)
    machines = chosen.machines or [chosen.host]
    names = [f"{host}:{chosen.start_port + rank}" for host in machines for rank in range(chosen.ranks)]
    job = Job(len(names), chosen.command, chosen.log_dir, chosen.job_id, names, chosen.append, chosen.machines)
    if chosen.check:
        job.settings[CHECK_PROGRAMS.name] = str(job.ranks)
    try:
        return job.run()
    except NoMpi as missing:
        sys.stderr.write(f"launch: {missing}\n")
        return 2
