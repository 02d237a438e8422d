"""Ranks that compare what they call before data moves: a difference is an error instead of a hang or wrong sums.

MPI pairs the n-th collective of one rank with the n-th of every other, whatever they are. Here each rank first writes
its call and line to a row of a board; data moves once all members have, and the first difference raises on all of them.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from argosy_hwadapt.board import ROW, TEXT, Board
from argosy_hwadapt.errors import CollectiveMismatch

_CALL = TEXT // 2
_ROWS = 8
"""Rows of each member: as many calls it may have started that others have not compared yet."""


class Agreement:
    """The comparisons of one group. ``members[place]`` is a member's rank in the communicator of all.

    ``memory`` (zeroed, of :meth:`nbytes`) is shared by the group; None where it spans several machines: then the rows
    travel by all-gathers of a copy of ``comm``.
    """

    def __init__(self, memory: Any, comm: Any, members: tuple[int, ...], place: int) -> None:
        self._members, self._place = members, place
        self._board = None
        self._front: set[int] = set()
        self._slowest = 0
        if memory is None:
            self._comm = comm.Dup()
        else:
            self._board = Board(memory, _ROWS * len(members))
            start = _ROWS * len(members) * ROW
            self._compared = memoryview(memory)[start : start + 8 * len(members)].cast("q")

    @staticmethod
    def nbytes(size: int) -> int:
        """Return the bytes that a group of ``size`` needs: rows used in turns, and how far each member has compared."""
        return size * (_ROWS * ROW + 8)

    def compare(self, number: int, record: bytes) -> Generator[set[int], None, list[bytes]]:
        """Wait (yielding who is missing) for all members' calls of this number; returns their records.

        Raises CollectiveMismatch unless all bring an equal call. See :func:`record`.
        """
        board = self._board
        records = yield from self._by_mpi(record) if board is None else self._by_board(board, number, record)
        first = records[0].partition(b"\n")[0]
        for place, other in enumerate(records):
            if other.partition(b"\n")[0] != first:
                raise CollectiveMismatch(
                    f"ranks disagree: rank {self._members[0]} calls {as_text(records[0])}; "
                    f"rank {self._members[place]} calls {as_text(other)}"
                )
        return records

    def _by_board(self, board: Board, number: int, record: bytes) -> Generator[set[int], None, list[bytes]]:
        while (late := self._late_members(number - _ROWS)) is not None:
            yield late
        size = len(self._members)
        first = size * (number % _ROWS)
        board.write(first + self._place, number, record)
        rest = set(range(size))
        while rest := {place for place in rest if board.number(first + place) != number}:
            missing = {self._members[place] for place in rest}
            if self._compared[self._place] == number - 1:
                self._front = missing
            yield missing
        while self._compared[self._place] != number - 1:
            yield self._front  # the calls before this one are compared first
        records = [_read(board, first + place, number) for place in range(size)]
        self._compared[self._place] = number
        return records

    def _late_members(self, number: int) -> set[int] | None:
        """The members that have not compared call ``number`` yet, so that its rows are still needed; those that this
        one's own comparisons wait for, where it is late itself."""
        if number > self._slowest:
            self._slowest = min(self._compared)
        if number <= self._slowest:
            return None
        late = {self._members[place] for place, compared in enumerate(self._compared) if compared < number}
        own = {self._members[self._place]}
        return late - own | self._front if late & own else late  # nobody waits for itself

    def _by_mpi(self, record: bytes) -> Generator[set[int], None, list[bytes]]:
        mine = np.frombuffer(record.ljust(TEXT, b"\0"), np.uint8)
        rows = np.empty((len(self._members), TEXT), np.uint8)
        request = self._comm.Iallgather(mine, rows)
        while not request.Test():
            yield set(self._members) - {self._members[self._place]}
        return [bytes(row).rstrip(b"\0") for row in rows]


def _read(board: Board, row: int, number: int) -> bytes:
    while (text := board.read(row, number)) is None:
        pass  # the number has arrived, the text is on its way
    return text


def record(text: str, site: str) -> bytes:
    """Return a call and its line as bytes: the part before the newline is compared. Of a long path the end is kept."""
    call = text.encode()[:_CALL]
    return call + b"\n" + site.encode()[-(TEXT - len(call) - 1) :]


def as_text(written: bytes) -> str:
    """Return a record for people: the call and its line."""
    return written.decode(errors="replace").replace("\n+", "\n").replace("\n", " at ")
