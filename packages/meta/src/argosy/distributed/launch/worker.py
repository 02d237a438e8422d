"""One rank: the script runs in a child, and its parent records how it ended.

``python -m argosy.distributed.launch.worker FOLDER LOG_DIR script [arguments]``, started by mpiexec or srun. The parent
needs no MPI and so always lives to tell; it imports next to nothing. Files in FOLDER: ``pid.N``, ``cause.N`` (an
exception, in one line), ``position.N`` (in which instruction of a step the rank is), ``end.N`` (time and exit code,
negative for a signal; written only when it is not 0).
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import time
from types import FrameType, ModuleType, TracebackType

from argosy.distributed.launch.parent import die_with
from argosy.settings import CURRENT_ENDPOINT, ENDPOINTS, POSITION, announced_ranks
from argosy_phi_ops.settings import export

__all__ = ["main", "run_script"]

_RANK, _SIZE = ("PADDLE_TRAINER_ID", "PADDLE_GLOBAL_RANK"), ("PADDLE_TRAINERS_NUM", "PADDLE_GLOBAL_SIZE")
_LOCAL_RANK, _LOCAL_SIZE = ("PADDLE_LOCAL_RANK", "PADDLE_RANK_IN_NODE"), ("PADDLE_LOCAL_SIZE",)
"""What the program of a rank reads of its place in the job, and on its machine."""


def main() -> None:
    """Announce the rank, redirect its output, fork."""
    folder, log_dir, *command = sys.argv[1:]
    rank = _announce()
    _redirect(os.path.join(log_dir, f"workerlog.{rank}"))
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        POSITION.write(f"{folder}/position.{rank}")
        die_with(parent, signal.SIGKILL)()
        _run(folder, rank, command)
        return
    _write(f"{folder}/pid.{rank}", f"{child} {os.uname().nodename}")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, frame: _forward(child, got, frame))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        _write(f"{folder}/end.{rank}", f"{time.time()} {code}")
    os._exit(code if code >= 0 else 128 - code)


def _announce() -> int:
    found = announced_ranks("MPICH", "Open MPI", "Slurm")
    if found is None:
        raise SystemExit("no rank was announced: PMI_RANK, OMPI_COMM_WORLD_RANK and SLURM_PROCID are not set")
    rank, size = found
    names = ENDPOINTS.read().split(",")
    beside = [name for name in names if name.rpartition(":")[0] == names[rank].rpartition(":")[0]]
    said = (_RANK, rank), (_SIZE, size), (_LOCAL_RANK, beside.index(names[rank])), (_LOCAL_SIZE, len(beside))
    export({variable: str(number) for variables, number in said for variable in variables})
    CURRENT_ENDPOINT.write(names[rank])
    return rank


def _redirect(path: str) -> None:
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)


def _forward(child: int, number: int, frame: FrameType | None) -> None:
    try:
        os.kill(child, number)
    except ProcessLookupError:
        os._exit(128 + number)


def _write(path: str, text: str) -> None:
    """Whole or not at all: the launcher reads while ranks write."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".part", path)


def _run(folder: str, rank: int, command: list[str]) -> None:
    """Run the program as this process. An exception ends it at once: a normal exit would wait in MPI_Finalize for
    ranks that wait for this one.
    """
    try:
        run_script(command)
        _finish()
    except SystemExit as end:
        if end.code not in (None, 0):
            _fail(folder, rank, _exit_text(end.code), end.code if isinstance(end.code, int) else 1)
        _finish()
    except BaseException as error:  # noqa: BLE001 - shown and recorded as the interpreter would
        shown = error.with_traceback(_user_frames(error.__traceback__))
        sys.excepthook(type(shown), shown, shown.__traceback__)
        _fail(folder, rank, f"{type(error).__name__}: {error}", 1)


def run_script(command: list[str]) -> None:
    """Run a Python script or ``-m`` module as ``__main__``, a pickled function of ``spawn``, or another program in
    this process's place.
    """
    path = command[0]
    if path == "-m":
        sys.argv[:] = command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        return
    if path == "--spawned":
        from argosy.distributed.spawning import run_spawned

        run_spawned(command[1])
        return
    if not path.endswith(".py"):
        os.execvp(path, command)
    module = ModuleType("__main__")
    module.__dict__.update(__file__=os.path.abspath(path), __builtins__=__builtins__)
    sys.modules["__main__"] = module
    sys.argv[:] = command
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    exec(code, module.__dict__)


def _finish() -> None:
    """Meet the other ranks, if the program has ever talked to them."""
    environment = sys.modules.get("argosy.distributed.environment")
    if environment is not None:
        environment.finish()


def _user_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without this file's frames."""
    at = traceback
    while at is not None and at.tb_frame.f_code.co_filename == __file__:
        at = at.tb_next
    return at or traceback


def _exit_text(code: object) -> str:
    if not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
    return f"SystemExit({code!r})"


def _fail(folder: str, rank: int, cause: str, code: int) -> None:
    _write(f"{folder}/cause.{rank}", cause)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
