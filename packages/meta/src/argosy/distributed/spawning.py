"""``spawn``: a function as several ranks, started from a running program."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from multiprocessing import spawn as preparation
from typing import Any

__all__ = ["MultiprocessContext", "run_spawned", "spawn"]


class MultiprocessContext:
    """The ranks of a :func:`spawn` that did not wait for them. A program waits for them before it ends, unless they are
    daemons, which end with it."""

    def __init__(self, run: Callable[[], None], daemon: bool) -> None:
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._guard, args=(run,), name="spawn", daemon=daemon)
        self._thread.start()

    def _guard(self, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception as error:  # noqa: BLE001 (raised where somebody joins)
            self._error = error

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all ranks have ended, at most ``timeout`` seconds; whether they have. Raises what :func:`spawn`
        does."""
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        return not self._thread.is_alive()


def spawn(
    func: Callable[..., Any], args: Sequence[Any] = (), nprocs: int = -1, join: bool = True, daemon: bool = False,
    **options: Any,
) -> MultiprocessContext | None:  # fmt: skip
    """Run ``func(*args)`` in ``nprocs`` processes (-1: one for each core), each of which is a rank.

    func: a function of an importable module or of the script that calls this, which must guard its own work by
    ``if __name__ == "__main__"``. Rank 0 prints to the terminal; ``log_dir`` among the options keeps all outputs.
    With ``join=False`` it returns at once, with the context whose ``join()`` waits for them. Raises RuntimeError naming
    the first rank that failed and its cause.
    """
    unknown = sorted(set(options) - {"log_dir", "backend", "started_port"})
    if unknown:
        raise NotImplementedError(f"spawn() does not implement the options {unknown}")
    ranks = (os.cpu_count() or 1) if nprocs == -1 else nprocs
    if ranks < 1:
        raise ValueError(f"spawn: nprocs must be at least 1, or -1 for one rank per core; got {nprocs}")
    data = preparation.get_preparation_data("rank")
    kept = {key: value for key, value in data.items() if key not in ("authkey", "log_to_stderr")}
    text = pickle.dumps(kept) + pickle.dumps((func, tuple(args)))

    def run() -> None:
        with tempfile.TemporaryDirectory(prefix="argosy-spawn-") as folder:
            path = os.path.join(folder, "function.pickle")
            with open(path, "wb") as file:
                file.write(text)
            _run(ranks, path, options.get("log_dir") or folder)

    if not join:
        return MultiprocessContext(run, daemon)
    run()
    return None


def _run(ranks: int, path: str, log_dir: str) -> None:
    from argosy.distributed.launch.job import Job

    job = Job(ranks, ["--spawned", path], log_dir)
    code = job.run(handle_signals=False)
    if code:
        raise RuntimeError(f"spawn: {job.failure or f'the job ended with code {code}'}")


def run_spawned(path: str) -> None:
    """Run what :func:`spawn` has written: first what makes the caller's ``__main__`` importable."""
    with open(path, "rb") as file:
        data = pickle.load(file)
        preparation.prepare(data)
        sys.argv[0] = data["sys_argv"][0]
        func, args = pickle.load(file)
    func(*args)
