"""Readers, functions whose call gives an iterator of samples, and what makes one of others.

The way of data before ``io.Dataset``, which older training scripts still have. For new code see ``io``.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

__all__ = [
    "ComposeNotAligned", "buffered", "cache", "chain", "compose", "firstn", "map_readers", "shuffle", "xmap_readers",
]  # fmt: skip

Reader = Callable[[], Iterator[Any]]
_NOTHING = object()


class ComposeNotAligned(ValueError):
    """Readers that were to be composed gave different numbers of samples."""


def cache(reader: Reader) -> Reader:
    """All samples of ``reader``, read once, now, and kept."""
    samples = tuple(reader())
    return lambda: iter(samples)


def map_readers(func: Callable[..., Any], *readers: Reader) -> Reader:
    """``func`` of the samples of all readers, up to the shortest."""
    return lambda: map(func, *(reader() for reader in readers))


def shuffle(reader: Reader, buf_size: int) -> Reader:
    """The samples shuffled within runs of ``buf_size`` by Python's generator."""

    def shuffled_reader() -> Iterator[Any]:
        samples = reader()
        while run := list(itertools.islice(samples, buf_size)):
            random.shuffle(run)
            yield from run

    return shuffled_reader


def chain(*readers: Reader) -> Reader:
    """The samples of one reader after the other."""
    return lambda: itertools.chain.from_iterable(reader() for reader in readers)


def compose(*readers: Reader, check_alignment: bool = True) -> Reader:
    """Tuples of one sample of each reader, samples that are tuples joined.

    Raises ComposeNotAligned, on reading, where one ends before another, unless ``check_alignment`` is off: then the
    shortest ends all.
    """

    def composed() -> Iterator[tuple[Any, ...]]:
        for row in itertools.zip_longest(*(reader() for reader in readers), fillvalue=_NOTHING):
            if ended := [one for one in row if one is _NOTHING]:
                if check_alignment:
                    raise ComposeNotAligned(f"compose: {len(ended)} of {len(readers)} readers ended before the others")
                return
            yield tuple(itertools.chain.from_iterable(one if isinstance(one, tuple) else (one,) for one in row))

    return composed


def buffered(reader: Reader, size: int) -> Reader:
    """The samples, up to ``size`` of them read ahead on another thread. An exception is raised where it happened."""

    def ahead() -> Iterator[Any]:
        samples = reader()
        with ThreadPoolExecutor(1) as thread:
            pending = deque(thread.submit(next, samples, _NOTHING) for _ in range(size))
            try:
                while (sample := pending.popleft().result()) is not _NOTHING:
                    pending.append(thread.submit(next, samples, _NOTHING))
                    yield sample
            finally:
                _cancel(pending)

    return ahead


def _cancel(pending: deque[Future[Any]]) -> None:
    for one in pending:
        one.cancel()


def firstn(reader: Reader, n: int) -> Reader:
    """The first ``n`` samples."""
    return lambda: itertools.islice(reader(), n)


def xmap_readers(
    mapper: Callable[[Any], Any], reader: Reader, process_num: int, buffer_size: int, order: bool = False
) -> Reader:
    """``mapper`` of the samples on ``process_num`` threads, up to ``buffer_size`` ahead, always in their order.

    An exception of the mapper or the reader is raised where its sample would come.
    """
    if process_num < 1 or buffer_size < 1:
        raise ValueError(f"readers on threads need at least one thread and place, got {process_num} and {buffer_size}")

    def mapped_reader() -> Iterator[Any]:
        samples = reader()
        pending: deque[Future[Any]] = deque()
        with ThreadPoolExecutor(process_num) as threads:
            try:
                for sample in samples:
                    pending.append(threads.submit(mapper, sample))
                    if len(pending) >= buffer_size:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                _cancel(pending)

    return mapped_reader
