"""Numbered texts in memory that the processes of one machine share. Each row has one writer; readers never wait."""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import tempfile
import zlib
from typing import Any

ROW = 512
"""Bytes of a row, unless told: its number, a checksum, a length, and the text."""
_HEAD = struct.Struct("qII")
TEXT = ROW - _HEAD.size
"""Bytes of the longest text in such a row; what is longer is cut."""


class Board:
    """``rows`` rows in ``memory`` from byte ``start`` on. Zeroed memory is rows of number 0 without text.

    A row's number is written last and covered by the checksum, so a reader sees a whole text or none, whatever the
    processor's memory order.
    """

    def __init__(self, memory: Any, rows: int, width: int = ROW) -> None:
        self._width = width
        self._rows = memoryview(memory)[: rows * width]
        self._numbers = self._rows.cast("q")[:: width // 8]

    def write(self, row: int, number: int, text: bytes) -> None:
        """Replace a row's text. Only the row's one writer may call this."""
        text, start = text[: self._width - _HEAD.size], row * self._width
        self._rows[start + _HEAD.size : start + _HEAD.size + len(text)] = text
        self._rows[start + 8 : start + _HEAD.size] = struct.pack("II", _checksum(number, text), len(text))
        self._numbers[row] = number

    def number(self, row: int) -> int:
        """Return the number last written; its text may still be on the way."""
        return int(self._numbers[row])

    def read(self, row: int, number: int) -> bytes | None:
        """Return the text that was written with ``number``, or None while it is not there whole."""
        start = row * self._width
        found, checksum, length = _HEAD.unpack_from(self._rows, start)
        if found != number or length > self._width - _HEAD.size:
            return None
        text = bytes(self._rows[start + _HEAD.size : start + _HEAD.size + length])
        return text if _checksum(number, text) == checksum else None


def _checksum(number: int, text: bytes) -> int:
    return zlib.crc32(text, number & 0xFFFFFFFF)


def shared_memory(comm: Any, nbytes: int) -> mmap.mmap | None:
    """Map ``nbytes`` zeroed bytes into all processes of an MPI communicator, or return None on every one of them
    where they run on several machines, or the machine has less memory to share (containers often have little).

    The file behind it has no name any more when this returns: nothing is left whichever way the processes end.
    """
    label, memory = create_segment(nbytes) if comm.rank == 0 else (b"", None)
    label = comm.bcast(label)
    if comm.rank:
        memory = open_segment(label)
    everyone = all(comm.allgather(memory is not None))
    if comm.rank == 0:
        remove_segment(label)
    return memory if everyone else None


def create_segment(nbytes: int) -> tuple[bytes, mmap.mmap | None]:
    """Make and map memory that other processes of this machine can open. Returns a label of at most ``TEXT`` bytes,
    by which they find it, and the memory, zeroed; None where the machine has less to share."""
    name, memory = "", None
    with contextlib.suppress(OSError):
        descriptor, name = tempfile.mkstemp(prefix="argosy-ranks-", dir=_folder())
        try:
            _reserve(descriptor, max(nbytes, 1))
            memory = mmap.mmap(descriptor, max(nbytes, 1))
        finally:
            os.close(descriptor)
    return f"{_machine()}\n{name}".encode(), memory


def open_segment(label: bytes) -> mmap.mmap | None:
    """Map what :func:`create_segment` has made in another process; None where it is not to be found."""
    machine, name = label.decode().split("\n", 1)
    return _map(name) if machine == _machine() else None


def remove_segment(label: bytes) -> None:
    """Take away its name; who has mapped it keeps it."""
    with contextlib.suppress(FileNotFoundError):  # nothing could be made
        os.unlink(label.decode().split("\n", 1)[1])


def forget_segments(comm: Any) -> None:
    """Take the names from the memory that MPICH shares among all processes, which must all call this.

    Each keeps what it has mapped, and nothing stays behind when they are killed; MPICH itself removes the names only
    when all ends well.
    """
    comm.Barrier()  # everybody has mapped it
    if not os.access("/proc/self/maps", os.R_OK):
        return
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        names = {line[line.index("/") :].rstrip("\n") for line in maps if "/dev/shm/mpich_shm_" in line}
    for name in names:
        with contextlib.suppress(FileNotFoundError):  # another rank was faster
            os.unlink(name)


def _reserve(descriptor: int, nbytes: int) -> None:
    """Make the file this large. Without blocks of its own a write to it would be a signal where none are left."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, nbytes)
    else:
        os.ftruncate(descriptor, nbytes)


def _map(name: str) -> mmap.mmap | None:
    try:
        with open(name, "r+b") as file:
            return mmap.mmap(file.fileno(), 0)
    except OSError:  # another container of the same machine, for example
        return None


def _machine() -> str:
    return os.uname().nodename if hasattr(os, "uname") else ""


def _folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
