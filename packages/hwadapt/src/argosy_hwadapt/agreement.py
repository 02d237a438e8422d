"""Ranks that compare what they call before data moves: a difference is an error instead of a hang or wrong sums.

MPI pairs the n-th collective of one rank with the n-th of every other, whatever they are. Here each rank first writes
its call and line to a row of a board and waits until all members have; the first difference raises on all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_hwadapt.board import ROW, TEXT, Board
from argosy_hwadapt.errors import CollectiveMismatch
from argosy_hwadapt.waits import Waits

_CALL = TEXT // 2


class Agreement:
    """The comparisons of one group. ``members[place]`` is a member's rank in the communicator of all.

    ``memory`` (zeroed, of :meth:`nbytes`) is shared by the group; None where it spans several machines: then the rows
    travel by an all-gather of ``comm``.
    """

    def __init__(self, memory: Any, comm: Any, members: tuple[int, ...], waits: Waits) -> None:
        self._comm, self._members, self._waits = comm, members, waits
        self._board = None if memory is None else Board(memory, 2 * len(members))
        self._place = members.index(waits.rank)
        self._count = 0

    @staticmethod
    def nbytes(size: int) -> int:
        """Return the bytes that a group of ``size`` needs: two rows each, used in turns.

        Two suffice: nobody writes for comparison n + 2 before all have written for n + 1, hence read those of n.
        """
        return 2 * size * ROW

    def compare(self, record: bytes) -> None:
        """Wait for all members; raises CollectiveMismatch unless all bring an equal call. See :func:`record`."""
        records = self._by_mpi(record) if self._board is None else self._by_board(self._board, record)
        first = records[0].partition(b"\n")[0]
        for place, other in enumerate(records):
            if other.partition(b"\n")[0] != first:
                raise CollectiveMismatch(
                    f"ranks disagree: rank {self._members[0]} calls {as_text(records[0])}; "
                    f"rank {self._members[place]} calls {as_text(other)}"
                )

    def _by_board(self, board: Board, record: bytes) -> list[bytes]:
        self._count += 1
        number, size = self._count, len(self._members)
        first = size * (number % 2)
        board.write(first + self._place, number, record)
        rest = set(range(size))

        def missing() -> set[int]:
            rest.difference_update([place for place in rest if board.number(first + place) == number])
            return {self._members[place] for place in rest}

        self._waits.wait(lambda: as_text(record), missing)
        return [_read(board, first + place, number) for place in range(size)]

    def _by_mpi(self, record: bytes) -> list[bytes]:
        mine = np.frombuffer(record.ljust(TEXT, b"\0"), np.uint8)
        rows = np.empty((len(self._members), TEXT), np.uint8)
        self._comm.Allgather(mine, rows)
        return [bytes(row).rstrip(b"\0") for row in rows]


def _read(board: Board, row: int, number: int) -> bytes:
    while (text := board.read(row, number)) is None:
        pass  # the number has arrived, the text is on its way
    return text


def record(kind: str, agreed: dict[str, Any], site: str) -> bytes:
    """Return a call and its line as bytes: the part before the newline is compared. Of a long path the end is kept."""
    call = f"{kind}({', '.join(f'{name}={value}' for name, value in agreed.items())})".encode()[:_CALL]
    return call + b"\n" + site.encode()[-(TEXT - len(call) - 1) :]


def as_text(written: bytes) -> str:
    """Return a record for people: the call and its line."""
    return written.decode(errors="replace").replace("\n", " at ")
