"""Worker processes of a loader: started together, fed and read in turn, stopped cleanly."""

from __future__ import annotations

import multiprocessing
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from argosy.io.dataloader.transfer import receive
from argosy.io.dataloader.worker import DONE, Recipe, WorkerInfo, work

__all__ = ["WorkerError", "WorkerPool"]

_PATIENCE = 5.0  # seconds that a worker gets to end by itself


class WorkerError(RuntimeError):
    """A worker failed; the message holds its traceback, or how it died."""


class _Worker:
    __slots__ = ("process", "results", "tasks")

    def __init__(self, process: Any, tasks: Connection, results: Connection) -> None:
        self.process, self.tasks, self.results = process, tasks, results


class WorkerPool:
    """``count`` workers for one recipe. Batch ``i`` is made by worker ``i % count``, so the order is fixed."""

    def __init__(
        self,
        recipe: Recipe,
        count: int,
        seed: int,
        init: Callable[[int], Any] | None,
        share: bool,
        timeout: float,
        prefetch: int,
    ) -> None:
        self.recipe, self.timeout, self.prefetch = recipe, timeout, prefetch
        self.epoch = 0
        self.workers: list[_Worker] = []
        self._finalizer = weakref.finalize(self, _stop, self.workers)
        method = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        for i in range(count):
            info = WorkerInfo(i, count, recipe.dataset, seed + i)
            self.workers.append(_start(method, info, recipe, self.workers, init, share))

    @property
    def alive(self) -> bool:
        """Whether the workers can be used again."""
        return bool(self.workers) and all(w.process.is_alive() for w in self.workers)

    def run(self, tasks: Iterator[Any]) -> Iterator[Any]:
        """The batches of the index lists in ``tasks``, in their order."""
        self.epoch += 1
        epoch = self.epoch
        waiting: list[int] = []  # workers whose answers are due, in order
        sent = 0
        for _ in range(self.prefetch * len(self.workers)):
            sent += self._give(tasks, sent, epoch, waiting)
        taken = 0
        while waiting:
            batch = self._take(waiting.pop(0), epoch, taken)
            taken += 1
            sent += self._give(tasks, sent, epoch, waiting)
            yield batch

    def run_streams(self) -> Iterator[Any]:
        """The batches of the workers' streams, one from each in turn, until all have ended."""
        self.epoch += 1
        epoch = self.epoch
        running = list(range(len(self.workers)))
        for _ in range(self.prefetch):
            for i in running:
                self._send(i, (epoch, 0, None))
        while running:
            for i in list(running):
                batch = self._take(i, epoch, None)
                if isinstance(batch, str) and batch == DONE:
                    running.remove(i)
                    continue
                self._send(i, (epoch, 0, None))
                yield batch

    def stop(self) -> None:
        """End the workers; a second call does nothing."""
        self._finalizer()

    def _give(self, tasks: Iterator[Any], number: int, epoch: int, waiting: list[int]) -> int:
        indices = next(tasks, None)
        if indices is None:
            return 0
        i = number % len(self.workers)
        self._send(i, (epoch, number, indices))
        waiting.append(i)
        return 1

    def _send(self, i: int, task: Any) -> None:
        try:
            self.workers[i].tasks.send(task)
        except (BrokenPipeError, ConnectionResetError):
            self._fail_worker(i)

    def _take(self, i: int, epoch: int, number: int | None) -> Any:
        worker = self.workers[i]
        while True:
            if not wait([worker.results, worker.process.sentinel], self.timeout or None):
                worker.process.terminate()  # it would be waited for otherwise
                self.stop()
                raise WorkerError(f"DataLoader worker {i} made no batch within {self.timeout} seconds")
            if not worker.results.poll():
                self._fail_worker(i)
            try:
                of, at, batch, error = receive(worker.results)
            except (EOFError, OSError):
                self._fail_worker(i)
            if of != epoch or (number is not None and at != number):
                continue  # left over from an epoch that was broken off
            if error is not None:
                self.stop()
                raise WorkerError(f"DataLoader worker {i} failed:\n{error}")
            return batch

    def _fail_worker(self, i: int) -> None:
        process = self.workers[i].process
        process.join(_PATIENCE)
        code, pid = process.exitcode, process.pid
        self.stop()
        raise WorkerError(f"DataLoader worker {i} (process {pid}) died with exit code {code}")


def _start(method: Any, info: WorkerInfo, recipe: Recipe, others: list[_Worker], init: Any, share: bool) -> _Worker:
    their_tasks, our_tasks = method.Pipe(duplex=True)
    our_results, their_results = method.Pipe(duplex=True)  # a socket, over which descriptors can be passed
    inherited = [end for w in others for end in (w.tasks, w.results)] + [our_tasks, our_results]
    not_ours = inherited if method.get_start_method() == "fork" else []
    arguments = (info, recipe, their_tasks, their_results, not_ours, init, share)
    process = method.Process(target=work, args=arguments, daemon=True, name=f"argosy-loader-{info.id}")
    with warnings.catch_warnings():
        # Our own threads start anew after a fork; a worker runs Python and numpy only.
        warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
        process.start()
    their_tasks.close()
    their_results.close()
    return _Worker(process, our_tasks, our_results)


def _stop(workers: list[_Worker]) -> None:
    for worker in workers:
        try:
            worker.tasks.send(None)
        except OSError:
            pass  # it is gone already
        worker.tasks.close()
        worker.results.close()
    for worker in workers:
        worker.process.join(_PATIENCE)
        if worker.process.is_alive():
            worker.process.terminate()
            worker.process.join()
    workers.clear()
