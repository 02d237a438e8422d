"""Paddle's launch options. What is not supported is refused by name, never ignored."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from argosy.distributed.launch.process_manager import MANAGERS, choose_manager

__all__ = ["Launch", "parse"]

_UNSUPPORTED = {
    "--elastic_level": "elastic training is not implemented",
    "--elastic_timeout": "elastic training is not implemented",
    "--max_restart": "restarting failed jobs is not implemented: a rank that dies ends the job",
    "--servers": "parameter servers are not implemented",
    "--trainers": "parameter servers are not implemented",
    "--server_num": "parameter servers are not implemented",
    "--trainer_num": "parameter servers are not implemented",
    "--gloo_port": "ranks communicate by MPI; there is no gloo",
    "--with_gloo": "ranks communicate by MPI; there is no gloo",
    "--auto_tuner_json": "the auto-tuner is not implemented",
    "--auto_parallel_config": "plans from files are not implemented",
    "--auto_cluster_config": "descriptions of clusters are not implemented",
}


_TRUE, _FALSE = {"true", "1", "yes"}, {"false", "0", "no"}


class Launch(argparse.Namespace):
    """What was asked for: ``ranks`` processes on each of ``machines`` (none: this one) running ``training_script`` with
    ``script_args``."""

    ranks: int
    machines: list[str]
    hosts: str | None
    hostfile: str | None
    devices: str | None
    nproc_per_node: int | None
    nnodes: str
    nodes: int
    launcher: str
    master: str | None
    rank: int
    log_dir: str
    log_level: str
    job_id: str
    run_mode: str
    host: str
    start_port: int
    log_overwrite: str
    check: bool
    module: bool
    training_script: str
    script_args: list[str]

    @property
    def command(self) -> list[str]:
        """What every rank runs: a script, another program, or ``-m`` and a module; then its arguments."""
        return [*(["-m"] if self.module else []), self.training_script, *self.script_args]

    @property
    def append(self) -> bool:
        """Whether logs go on in the files of an earlier job."""
        return self.log_overwrite.lower() in _FALSE


class _UnsupportedOption(argparse.Action):
    def __call__(
        self, parser: argparse.ArgumentParser, namespace: object, values: object, option: object = None
    ) -> None:
        parser.error(f"{option}: {_UNSUPPORTED[str(option)]}")


def parse(arguments: Sequence[str] | None, prog: str) -> Launch:
    """Read the command line. Ends the process with code 2 and a message for what is wrong or unsupported."""
    parser = _parser(prog)
    chosen = parser.parse_args(arguments, Launch())
    chosen.launcher = choose_manager(chosen.launcher)
    chosen.machines = _machines(parser, chosen)
    if chosen.run_mode != "collective":
        parser.error(f"--run_mode {chosen.run_mode}: only collective is implemented")
    if chosen.log_overwrite.lower() not in _TRUE | _FALSE:
        parser.error(f"--log_overwrite {chosen.log_overwrite}: expected True or False")
    chosen.ranks = _count(parser, chosen)
    return chosen


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        allow_abbrev=False,  # options are recognised before the script is found: its own may begin like ours
        description="Run a script as several ranks, on this machine or on several. Each rank's output goes to "
        "LOG_DIR/workerlog.N, rank 0's also to the terminal; a rank that fails ends the job.",
    )
    add = parser.add_argument
    add("--devices", "--device", "--gpus", "--npus", "--xpus", dest="devices", metavar="0,1,...", help="one rank each")
    add("--nproc_per_node", type=int, metavar="N", help="number of ranks (default: one for each device given, else 1)")
    add(
        "--hosts", "--ips", dest="hosts", metavar="A,B", help="the machines; they share LOG_DIR and the script's folder"
    )
    add("--hostfile", metavar="FILE", help="the same, a machine a line")
    add("--nnodes", default="1", help="number of machines, as many as are named, or the first of Slurm's")
    add("--launcher", choices=MANAGERS, default="auto", help="what starts processes (auto: mpiexec, within Slurm srun)")
    add("--master", metavar="IP:PORT", help="accepted for compatibility: MPI needs no meeting point")
    add("--rank", type=int, default=-1, help="accepted for compatibility: 0, or -1")
    add("--log_dir", default="log", help="folder of the ranks' outputs (default: log)")
    add("--log_level", default="INFO", help="accepted for compatibility")
    add("--log_overwrite", default="True", metavar="False", help="False: go on in the files of earlier jobs")
    add("--enable_gpu_log", default=None, help=argparse.SUPPRESS)
    add("--sort_ip", "--legacy", default=None, help=argparse.SUPPRESS)
    add("--host", default="127.0.0.1", help="the name of this machine in the ranks' PADDLE_TRAINER_ENDPOINTS")
    add("--start_port", type=int, default=6070, metavar="PORT", help="rank 0's port there; nothing listens on it")
    add("--job_id", default="default", help="a name for the job, given to the ranks as PADDLE_JOB_ID")
    add("--run_mode", default="collective", help="collective")
    add("--check", action="store_true", help="compare what all ranks communicate before a program on a mesh runs")
    for option in _UNSUPPORTED:
        add(option, action=_UnsupportedOption, help=argparse.SUPPRESS)
    add("-m", "--module", action="store_true", help="training_script names a module, as for python -m")
    add("training_script", help="the Python script, or another program")
    add("script_args", nargs=argparse.REMAINDER, metavar="...", help="its arguments")
    return parser


def _machines(parser: argparse.ArgumentParser, chosen: Launch) -> list[str]:
    """The names of the machines, none for this one alone."""
    if chosen.hostfile is not None:
        try:
            with open(chosen.hostfile, encoding="utf-8") as file:
                lines = [line.split("#")[0].split() for line in file]
        except OSError as error:
            parser.error(f"--hostfile {chosen.hostfile}: {error.strerror}")
        names = [line[0].split(":")[0] for line in lines if line]
    else:
        names = [name.strip() for name in (chosen.hosts or "").split(",") if name.strip()]
    count = chosen.nnodes.split(":")[0]
    known = names or chosen.launcher == "srun"
    if not count.isdecimal() or (names and count not in ("1", str(len(names)))) or (not known and count != "1"):
        parser.error(
            f"--nnodes {chosen.nnodes}: {len(names)} machines are named; name all by --hosts or --hostfile, on one of "
            "them, or let the cluster's own mpiexec or srun start the script"
        )
    chosen.nodes = int(count)
    if len(set(names)) != len(names):
        parser.error(
            f"--hosts {','.join(names)}: a machine appears more than once; --nproc_per_node says how many ranks"
        )
    if chosen.rank > 0:
        parser.error(f"--rank {chosen.rank}: one launcher starts the ranks of all machines")
    return names


def _count(parser: argparse.ArgumentParser, chosen: Launch) -> int:
    devices = [d.strip() for d in chosen.devices.split(",") if d.strip()] if chosen.devices else None
    if devices is not None and not all(d.isdecimal() for d in devices):
        parser.error(f"--devices {chosen.devices}: expected numbers with commas between, as in 0,1,2,3")
    if devices is not None and len(set(devices)) != len(devices):
        parser.error(f"--devices {chosen.devices}: a device appears more than once")
    ranks = chosen.nproc_per_node
    if devices and ranks is not None and ranks != len(devices):
        parser.error(f"--nproc_per_node {ranks} does not fit the {len(devices)} devices of --devices {chosen.devices}")
    if ranks is not None and ranks < 1:
        parser.error(f"--nproc_per_node {ranks}: at least one rank is needed")
    return ranks or (len(devices) if devices else 1)
