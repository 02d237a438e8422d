"""Where a rank is in its list, in a file that outlives the rank: who watches reads in which instruction it ended."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from argosy_autoparallel.schedule.lists import InstructionList
from argosy_autoparallel.schedule.matching import Place

__all__ = ["Position", "read_position"]

_NUMBER = struct.Struct("q")
_OUTSIDE = -1


class Position:
    """The file ``path`` of rank ``rank``: the number of the present instruction, 8 bytes that are written in place, and
    the list's instructions with their lines, text that is written with each other list. Raises OSError where the file
    cannot be written.
    """

    def __init__(self, path: str, rank: int) -> None:
        self._path, self._rank = path, rank
        self._known: InstructionList | None = None
        self._number = memoryview(bytearray(_NUMBER.size)).cast("q")

    def begin(self, one: InstructionList) -> memoryview[int]:
        """The place of the number while ``one`` is walked, for the walk to write."""
        if one is not self._known:
            places = [str(Place(self._rank, number, each)) for number, each in enumerate(one.instructions)]
            text = "\n".join(place.partition(", ")[2] for place in places)
            Path(self._path).write_bytes(_NUMBER.pack(_OUTSIDE) + text.encode())
            with open(self._path, "r+b") as file:
                self._number = memoryview(mmap.mmap(file.fileno(), _NUMBER.size)).cast("q")
            self._known = one
        return self._number

    def end(self) -> None:
        """Say that the rank is in no list."""
        self._number[0] = _OUTSIDE


def read_position(path: str) -> str:
    """The instruction in which the writer of a file is, or was when it ended, with its line; empty outside of lists and
    where there is no such file."""
    found = Path(path).read_bytes() if Path(path).exists() else b""
    number: int = _NUMBER.unpack_from(found)[0] if len(found) >= _NUMBER.size else _OUTSIDE
    if number == _OUTSIDE:
        return ""
    return found[_NUMBER.size :].decode(errors="replace").split("\n")[number]
