"""Collectives through memory that the processes of one machine share, in pieces that stay in their caches.

Each rank writes a piece of its operand, combines its part of everybody's piece in the order of the ranks (so that bits
do not depend on who comes first, and are those of :func:`argosy_hwadapt.communicator.reduce_arrays`), and reads what
the others have combined: a reduce-scatter and an all-gather, as in Thakur, Rabenseifner and Gropp, "Optimization of
Collective Communication Operations in MPICH" (2005), without messages.
"""

from __future__ import annotations

import itertools
import mmap
import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from argosy_hwadapt.board import create_segment
from argosy_hwadapt.calls import Array
from argosy_hwadapt.communicator import reduce_into
from argosy_hwadapt.cpu.streaming import copy_function
from argosy_hwadapt.progress import Steps

SMALLEST = 1 << 15
"""Bytes of an operand from which on the memory is used; messages are faster below."""
_LARGEST_GROUP = 16
_ROW = 1 << 20
"""Bytes of a piece: as much of one rank's operand as is on its way at a time."""
_DEPTH = 3
"""Pieces that are in the memory at once: one that is written, one that is combined, one that is read."""
_LINE = 64
_SPINS = 1000
"""Looks at the others before a rank lets another process run; one look where ranks share cores."""
_WRITTEN, _COMBINED, _READ = range(3)


def can_share(size: int) -> bool:
    """Whether a group of this size may use an exchange: several ranks, not too many, on processors that never show
    one store of another core before an earlier one."""
    return 1 < size <= _LARGEST_GROUP and platform.machine().lower() in ("x86_64", "amd64")


def exchange_memory(size: int) -> tuple[bytes, mmap.mmap | None]:
    """:func:`argosy_hwadapt.board.create_segment` for an exchange of ``size`` ranks."""
    return create_segment((3 * _LINE + _DEPTH * _ROW) * size)


class SharedExchange:
    """The memory of one group (:func:`exchange_memory`): how far each rank is, and slots of one piece of every rank.

    In a rank's piece its own part, which nobody else needs, makes room for that part of the combination. A rank
    reads the pieces of others only. Collectives run one after the other, in one order on all ranks. ``ended()`` are the
    ranks that communicate no more, which everybody who waits yields.
    """

    def __init__(self, memory: mmap.mmap, rank: int, size: int, ended: Callable[[], set[int]]) -> None:
        self._rank, self._size, self._ended = rank, size, ended
        self._spins = _SPINS if size <= (os.cpu_count() or 1) else 1
        start = 3 * size * _LINE
        counts = memoryview(memory)[:start].cast("q")[:: _LINE // 8]
        self._counts = [counts[stage * size : (stage + 1) * size] for stage in range(3)]
        self._depth = (len(memory) - start) // (size * _ROW)
        self._slots = np.ndarray((self._depth, size, _ROW), np.uint8, memory, start)
        self._copies = (np.copyto, copy_function())
        self._seconds = [0.0, 0.0]  # of one write by each, on average
        self._done = 0  # pieces of all collectives before this one

    def all_reduce(self, send: Array, recv: Array, op: str) -> Steps:
        """Combine flat operands of any dtype, apart or the same. Yields while others are behind."""
        rank, pieces = self._rank, self._pieces(send, 1)
        for number in range(len(pieces) + 1):
            if number < len(pieces):
                mine, made = send[pieces[number]], recv[pieces[number]]
                own = self._parts(mine)[rank]
                rows = self._rows(number, send.dtype)
                yield from self._reach(_READ, number + 1 - self._depth)
                for part in (slice(0, own.start), slice(own.stop, len(mine))):
                    if part.start < part.stop:
                        self._write(number, rows[rank, part], mine[part])
                self._set(_WRITTEN, number)
                yield from self._reach(_WRITTEN, number + 1)
                term = mine[own].copy() if send is recv and rank > 1 else mine[own]
                reduce_into(made[own], [*rows[:rank, own], term, *rows[rank + 1 :, own]], op)
                self._write(number, rows[rank, own], made[own])
                self._set(_COMBINED, number)
            if number > 0:
                yield from self._reach(_COMBINED, number)
                made, rows = recv[pieces[number - 1]], self._rows(number - 1, send.dtype)
                for other, part in enumerate(self._parts(made)):
                    if other != rank:
                        made[part] = rows[other, part]
                self._set(_READ, number - 1)
        self._done += len(pieces)

    def reduce_scatter(self, operands: Sequence[tuple[Array, Array]], op: str) -> Steps:
        """Combine everybody's part ``rank`` of each operand into the array beside it, which may begin where the operand
        does: what is written over has been read."""
        size, rank, pieces = self._size, self._rank, self._pieces_of(operands, self._size)
        for number, (parts, target) in enumerate(pieces):
            rows = self._rows(number, target.dtype)[:, : parts.size].reshape(size, size, -1)
            yield from self._reach(_READ, number + 1 - self._depth)
            for other in range(size):
                if other != rank:
                    self._write(number, rows[rank, other], parts[other])
            self._set(_WRITTEN, number)
            yield from self._reach(_WRITTEN, number + 1)
            reduce_into(target, [*rows[:rank, rank], parts[rank], *rows[rank + 1 :, rank]], op)
            self._set(_READ, number)
        self._done += len(pieces)

    def all_gather(self, operands: Sequence[tuple[Array, Array]]) -> Steps:
        """Put everybody's operands one after another into the array beside each."""
        rank, pieces = self._rank, self._pieces_of([(recv, send) for send, recv in operands], 1)
        for number, (parts, mine) in enumerate(pieces):
            rows = self._rows(number, mine.dtype)[:, : len(mine)]
            yield from self._reach(_READ, number + 1 - self._depth)
            self._write(number, rows[rank], mine)
            parts[rank] = mine
            self._set(_WRITTEN, number)
            yield from self._reach(_WRITTEN, number + 1)
            for others in (slice(0, rank), slice(rank + 1, None)):
                parts[others] = rows[others]
            self._set(_READ, number)
        self._done += len(pieces)

    def _pieces_of(self, pairs: Iterable[tuple[Array, Array]], rows: int) -> list[tuple[Array, Array]]:
        """Wholes, a row for each rank, and one rank's parts beside them, in :meth:`_pieces`."""
        tables = [(whole.reshape(self._size, -1), part) for whole, part in pairs if part.size]
        return [(table[:, piece], part[piece]) for table, part in tables for piece in self._pieces(part, rows)]

    def _pieces(self, array: Array, rows: int) -> list[slice]:
        """Equal pieces of a flat array, of which ``rows`` fit into one rank's row of a slot."""
        longest = _ROW // (array.itemsize * rows)
        length = -(-array.size // -(-array.size // longest))
        return [slice(i, i + length) for i in range(0, array.size, length)]

    def _rows(self, number: int, dtype: np.dtype[Any]) -> Array:
        """The slot of piece ``number`` of this collective: a row for each rank."""
        rows: Array = self._slots[(self._done + number) % self._depth].view(dtype)
        return rows

    def _write(self, number: int, target: Array, source: Array) -> None:
        """Copy to a slot: past the caches of this core where that is faster, as it is where the other cores have caches
        of their own, out of which they read, and which must let go of lines before they are written. A system moves
        processes, so each long collective tries both ways, on the first slots that have just been read."""
        trial = number - self._depth
        way = trial if trial in (0, 1) else int(self._seconds[1] < self._seconds[0])
        begin = time.perf_counter()
        self._copies[way](target, source)
        if way == trial:
            self._seconds[way] += (time.perf_counter() - begin - self._seconds[way]) / 4

    def _parts(self, piece: Array) -> list[slice]:
        """The part of a piece that each rank combines, from a cache line on."""
        line = _LINE // piece.itemsize
        bounds = [len(piece) * i // (self._size * line) * line for i in range(self._size)] + [len(piece)]
        return [slice(*pair) for pair in itertools.pairwise(bounds)]

    def _set(self, stage: int, number: int) -> None:
        self._counts[stage][self._rank] = self._done + number + 1

    def _reach(self, stage: int, number: int) -> Steps:
        """Wait until every rank has done this many pieces of this collective; a stage it lacks is never asked for."""
        counts, goal = self._counts[stage], self._done + number
        spins = 0
        while min(counts) < goal:
            spins += 1
            if spins % self._spins == 0:
                yield self._ended()
