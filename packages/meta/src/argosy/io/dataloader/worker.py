"""A process that makes batches: it takes tasks from one pipe and sends batches through another."""

from __future__ import annotations

import random
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

import numpy as np

from argosy.io.dataloader.collate import Pile, as_arrays, collate_arrays
from argosy.io.dataloader.transfer import send
from argosy_phi_ops.context import context

__all__ = ["DONE", "Recipe", "WorkerInfo", "get_worker_info", "work"]

DONE = "done"  # a stream has ended


class WorkerInfo:
    """In a worker: its ``id``, ``num_workers``, its copy of ``dataset``, and the ``seed`` it began with."""

    __slots__ = ("dataset", "id", "num_workers", "seed")

    def __init__(self, id: int, num_workers: int, dataset: Any, seed: int) -> None:
        self.id, self.num_workers, self.dataset, self.seed = id, num_workers, dataset, seed

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed})"


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The WorkerInfo of this process; None outside of workers."""
    return _info


class Recipe:
    """How batches are made: the data set, the collating function, and whether samples come as a stream.

    batch_size: of a stream; None for single samples.
    """

    __slots__ = ("batch_size", "collate", "dataset", "drop_last", "stream")

    def __init__(
        self, dataset: Any, collate: Callable[[Any], Any], stream: bool, batch_size: int | None, drop_last: bool
    ) -> None:
        self.dataset, self.collate, self.stream = dataset, collate, stream
        self.batch_size, self.drop_last = batch_size, drop_last

    def fetch(self, indices: Any) -> Any:
        """The batch of these indices (or the converted sample of a single one)."""
        if isinstance(indices, int):
            return self.collate(self.dataset[indices])
        return self.collate([self.dataset[i] for i in indices])

    def batches(self) -> Iterator[Any]:
        """The batches of the stream."""
        batch: list[Any] = []
        for sample in self.dataset:
            if self.batch_size is None:
                yield self.collate(sample)
                continue
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.collate(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.collate(batch)


def work(
    info: WorkerInfo,
    recipe: Recipe,
    tasks: Connection,
    results: Connection,
    not_ours: list[Connection],
    init: Callable[[int], Any] | None,
    share: bool,
) -> None:
    """The worker's main function. A task is (epoch, number, indices); None ends it, and so does the parent's death."""
    global _info
    _info = info
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    for connection in not_ours:
        connection.close()
    _seed(info)
    if recipe.collate is collate_arrays:
        recipe.collate = partial(collate_arrays, stack=Pile)
    outgoing: SimpleQueue[Any] = SimpleQueue()
    sender = threading.Thread(target=_send_all, args=(outgoing, results, share), daemon=True)
    sender.start()
    _answer(info, recipe, tasks, outgoing, init)
    outgoing.put(None)
    sender.join()


def _seed(info: WorkerInfo) -> None:
    """The seeds that Paddle's workers have, so that what data sets draw is the same."""
    random.seed(info.seed)
    base = info.seed - info.id
    words = np.random.SeedSequence([info.id, base % (1 << 32), base >> 32]).generate_state(4)
    np.random.seed(words)
    context().generator.manual_seed(info.seed)


def _answer(info: WorkerInfo, recipe: Recipe, tasks: Connection, outgoing: Any, init: Any) -> None:
    failure = _attempt(lambda: init(info.id) if init is not None else None)[1]
    stream: Iterator[Any] = iter(())
    current = None
    while True:
        try:
            task = tasks.recv()
        except (EOFError, OSError):
            return
        if task is None:
            return
        epoch, number, indices = task
        if recipe.stream and epoch != current:
            stream, current = recipe.batches(), epoch
        batch, error = (None, failure) if failure else _attempt(lambda: _next_batch(recipe, stream, indices))  # noqa: B023
        outgoing.put((epoch, number, batch, error))


def _next_batch(recipe: Recipe, stream: Iterator[Any], indices: Any) -> Any:
    made = next(stream, DONE) if recipe.stream else recipe.fetch(indices)
    return made if made is DONE else as_arrays(made)


def _attempt(action: Callable[[], Any]) -> tuple[Any, str | None]:
    try:
        return action(), None
    except Exception:  # noqa: BLE001  (whatever a user's data set raises goes to the parent)
        return None, traceback.format_exc()


def _send_all(outgoing: Any, results: Connection, share: bool) -> None:
    while (message := outgoing.get()) is not None:
        try:
            send(results, message, share)
        except (BrokenPipeError, ConnectionResetError):
            return
        except Exception:  # noqa: BLE001  (what cannot be pickled)
            epoch, number = message[:2]
            send(results, (epoch, number, None, traceback.format_exc()), False)
