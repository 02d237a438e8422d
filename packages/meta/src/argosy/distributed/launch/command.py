"""The launch command."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from argosy.distributed.launch.arguments import Launch, parse
from argosy.distributed.launch.job import Job
from argosy.distributed.launch.process_manager import NoMpi, allocated_hosts
from argosy.settings import CHECK_PROGRAMS

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None, prog: str = "python -m argosy.distributed.launch") -> int:
    """Run a job; returns its exit code: 0, or that of the rank that failed first (128 + n for signal n)."""
    chosen = parse(arguments, prog)
    try:
        if chosen.launcher == "srun":
            chosen.machines = _place_in_allocation(chosen.machines, chosen.nodes)
        return _run(chosen)
    except NoMpi as missing:
        sys.stderr.write(f"launch: {missing}\n")
        return 2


def _place_in_allocation(named: Sequence[str], count: int) -> list[str]:
    """The machines that were named, or the first ``count``, in Slurm's order."""
    allocated = allocated_hosts()
    if unknown := sorted({*named} - {*allocated}):
        raise NoMpi(f"--hosts: {', '.join(unknown)} are not in the allocation of Slurm: {', '.join(allocated)}")
    if count > len(allocated):
        raise NoMpi(f"--nnodes {count}: the allocation of Slurm has {len(allocated)} machines: {', '.join(allocated)}")
    return [host for host in allocated if host in named] if named else allocated[:count]


def _run(chosen: Launch) -> int:
    machines = chosen.machines or [chosen.host]
    names = [f"{host}:{chosen.start_port + rank}" for host in machines for rank in range(chosen.ranks)]
    shown = names, chosen.append, chosen.machines, chosen.launcher
    job = Job(len(names), chosen.command, chosen.log_dir, chosen.job_id, *shown)
    if chosen.check:
        job.settings[CHECK_PROGRAMS.name] = str(job.ranks)
    return job.run()
