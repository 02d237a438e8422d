"""``spawn``: a function as several ranks, started from a running program."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing import spawn as preparation
from typing import Any

__all__ = ["run_spawned", "spawn"]


def spawn(
    func: Callable[..., Any], args: Sequence[Any] = (), nprocs: int = -1, join: bool = True, daemon: bool = False,
    **options: Any,
) -> None:  # fmt: skip
    """Run ``func(*args)`` in ``nprocs`` processes (-1: one for each core), each of which is a rank.

    func: a function of an importable module or of the script that calls this, which must guard its own work by
    ``if __name__ == "__main__"``. Rank 0 prints to the terminal; ``log_dir`` among the options keeps all outputs.
    Raises RuntimeError naming the first rank that failed and its cause, NotImplementedError for ``join=False``.
    """
    if not join:
        raise NotImplementedError("spawn(join=False) is not implemented")
    unknown = sorted(set(options) - {"log_dir", "backend", "started_port"})
    if unknown:
        raise NotImplementedError(f"spawn() does not implement the options {unknown}")
    ranks = (os.cpu_count() or 1) if nprocs == -1 else nprocs
    if ranks < 1:
        raise ValueError(f"spawn: nprocs must be at least 1, or -1 for one rank per core; got {nprocs}")
    with tempfile.TemporaryDirectory(prefix="argosy-spawn-") as folder:
        path = os.path.join(folder, "function.pickle")
        with open(path, "wb") as file:
            data = preparation.get_preparation_data("rank")
            pickle.dump({key: value for key, value in data.items() if key not in ("authkey", "log_to_stderr")}, file)
            pickle.dump((func, tuple(args)), file)
        _run(ranks, path, options.get("log_dir") or folder)


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
