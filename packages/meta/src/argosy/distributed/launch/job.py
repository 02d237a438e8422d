"""A running job: shows rank 0's output, notices the first rank that fails, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import BinaryIO, NamedTuple

from argosy.distributed.launch import process_manager
from argosy.distributed.launch.parent import die_with

__all__ = ["Failure", "Job"]

_POLL = 0.05
_GRACE = 2.0
"""Seconds that the process manager is given to end the other ranks before they are killed."""
_TAIL = 20
_FIRST_PORT = 6070


class Failure(NamedTuple):
    """A rank that ended badly: when, with which exit code (negative: a signal) and why, as far as is known."""

    time: float
    rank: int
    code: int
    cause: str
    host: str = ""
    """The machine, where there are several."""
    position: str = ""
    """The instruction of a step in which it ended, with its line."""

    def __str__(self) -> str:
        rank = f"rank {self.rank}{self.host and f' on {self.host}'}"
        if self.code < 0:
            return f"{rank} was killed by {signal.Signals(-self.code).name}{self.position and f' in {self.position}'}"
        return f"{rank} failed: {self.cause} (exit code {self.code})"


class JobInterrupt(Exception):
    """The launcher was asked to stop, by Ctrl-C or SIGTERM."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Job:
    """``ranks`` processes that run ``command``, and their outputs in ``log_dir``.

    ``names`` are the ranks' in PADDLE_TRAINER_ENDPOINTS; with ``append`` the logs of an earlier job are kept. ``hosts``
    are the machines of the ranks, as many on each, where there are others than this one: they have ``log_dir``, too.
    ``manager`` starts the processes.
    """

    def __init__(
        self, ranks: int, command: Sequence[str], log_dir: str, job_id: str = "default",
        names: Sequence[str] = (), append: bool = False, hosts: Sequence[str] = (), manager: str = "mpiexec",
    ) -> None:  # fmt: skip
        self.ranks = ranks
        self.command = list(command)
        self.log_dir = Path(log_dir).absolute()
        self.job_id = job_id
        self.names = list(names) or [f"127.0.0.1:{_FIRST_PORT + rank}" for rank in range(ranks)]
        self.append, self.hosts, self.manager = append, list(hosts), manager
        self.settings: dict[str, str] = {}  # variables of all ranks besides those of the launcher
        self.failure: Failure | None = None
        self._shown = 0

    def run(self, handle_signals: bool = True) -> int:
        """Run until all ranks have ended; returns 0 or the exit code of the job.

        With ``handle_signals``, SIGINT and SIGTERM end the ranks first (main thread only). Raises NoMpi.
        """
        self.log_dir.mkdir(parents=True, exist_ok=True)
        for old in () if self.append else self.log_dir.glob("workerlog.*"):
            old.unlink()
        shown = self.log_dir / "workerlog.0"
        self._shown = shown.stat().st_size if shown.exists() else 0
        with tempfile.TemporaryDirectory(prefix="argosy-job-", dir=self.log_dir if self.hosts else None) as folder:
            self._folder = Path(folder)
            return self._with_signals() if handle_signals else self._run()

    def _with_signals(self) -> int:
        previous = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            return self._run()
        except JobInterrupt as stop:
            sys.stderr.write(f"launch: stopped by {signal.Signals(stop.number).name}; all ranks were ended\n")
            return 128 + stop.number
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _run(self) -> int:
        worker = [sys.executable, "-u", "-m", "argosy.distributed.launch.worker", str(self._folder), str(self.log_dir)]
        with open(self._folder / "manager.log", "wb") as log:
            self._process = subprocess.Popen(
                [*process_manager.command(self.ranks, self.hosts, self.manager), *worker, *self.command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**process_manager.environment(self.names, self.job_id), **self.settings},
                preexec_fn=die_with(os.getpid(), signal.SIGTERM),
            )  # fmt: skip
        try:
            self._watch()
        finally:
            self._end()
            self._show()
        return self._verdict()

    def _watch(self) -> None:
        """Return when the processes have ended, or some time after one of them has failed."""
        deadline = None
        stopped: set[int] = set()
        while self._process.poll() is None:
            self._show()
            self._warn_of_stopped(stopped)
            if deadline is None and any(self._folder.glob("end.*")):
                deadline = time.monotonic() + _GRACE
            if deadline is not None and time.monotonic() > deadline:
                return
            time.sleep(_POLL)

    def _warn_of_stopped(self, known: set[int]) -> None:
        """Name each rank that somebody stops (SIGSTOP, a full terminal): the others wait for it without a word."""
        for rank, process in self._processes():
            stopped = _is_stopped(process)
            if stopped and rank not in known:
                sys.stderr.write(
                    f"launch: rank {rank} (process {process}) is stopped by a signal, and the others will wait for it; "
                    f"`kill -CONT {process}` lets it go on\n"
                )
                sys.stderr.flush()
            (known.add if stopped else known.discard)(rank)

    def _show(self) -> None:
        """Copy what rank 0 has written since the last time to the terminal."""
        path = self.log_dir / "workerlog.0"
        if not path.exists():
            return
        with open(path, "rb") as log:
            log.seek(self._shown)
            new = log.read()
        self._shown += len(new)
        terminal: BinaryIO | None = getattr(sys.stdout, "buffer", None)
        if terminal is None:
            sys.stdout.write(new.decode(errors="replace"))
        else:
            terminal.write(new)
        sys.stdout.flush()

    def _end(self) -> None:
        """End the process manager, then whatever ranks are left."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                _kill(self._process.pid)
                self._process.wait()
        for _, process in self._processes():
            _kill(process)

    def _processes(self) -> Iterator[tuple[int, int]]:
        """The ranks of this machine with their processes; of others the process manager knows."""
        for path in self._folder.glob("pid.*"):
            if path.suffix != ".part":
                process, _, machine = path.read_text(encoding="utf-8").partition(" ")
                if machine == os.uname().nodename:
                    yield int(path.suffix[1:]), int(process)

    def _verdict(self) -> int:
        failures = sorted(self._failures())
        if failures:
            self.failure = failures[0]
            self._explain(self.failure)
            return self.failure.code if self.failure.code > 0 else 128 - self.failure.code
        code = self._process.returncode
        if code:
            said = (self._folder / "manager.log").read_text(encoding="utf-8", errors="replace")
            sys.stderr.write(f"launch: {self.manager} ended with code {code}, and no rank said why\n{said}")
        return code if code >= 0 else 128 - code

    def _failures(self) -> list[Failure]:
        found = []
        for path in self._folder.glob("end.*"):
            if path.suffix == ".part":
                continue
            when, code = path.read_text(encoding="utf-8").split()
            cause = path.with_name("cause" + path.suffix)
            said = cause.read_text(encoding="utf-8") if cause.exists() else "it exited without an exception"
            rank = int(path.suffix[1:])
            host = self.hosts[rank * len(self.hosts) // self.ranks] if self.hosts else ""
            where = _position(path.with_name("position" + path.suffix))
            found.append(Failure(float(when), rank, int(code), said, host, where))
        return found

    def _explain(self, failure: Failure) -> None:
        log = self.log_dir / f"workerlog.{failure.rank}"
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
        tail = "".join(f"    {line}\n" for line in lines[-_TAIL:]) if failure.rank else ""
        sys.stderr.write(f"launch: {failure}; the job of {self.ranks} ranks was ended. Its output is in {log}\n{tail}")
        sys.stderr.flush()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise JobInterrupt(number)


def _position(path: Path) -> str:
    if not path.exists():
        return ""
    from argosy_autoparallel.schedule import read_position  # not with each launcher

    return read_position(str(path))


def _is_stopped(process: int) -> bool:
    """Whether a process is stopped, where the system says so (Linux)."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[:1] == ["T"]
    except OSError:
        return False


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return
