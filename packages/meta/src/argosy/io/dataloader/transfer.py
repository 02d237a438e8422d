"""Nested arrays between processes: big ones in anonymous shared memory, the rest pickled through the pipe.

On Linux the bytes of a batch are written, sample by sample, to one memory file whose descriptor is passed over the
socket: the receiver maps it and its arrays share that memory. A batch is copied once, and nothing has a name that could
be left behind.
"""

from __future__ import annotations

import mmap
import os
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from argosy.io.dataloader.collate import Pile

__all__ = ["receive", "send"]

_ALIGNMENT = 64
_SMALL = 1 << 15  # bytes below which a mapping costs more than it saves
_SHARES = hasattr(os, "memfd_create")


class _Array:
    """Where an array lies in the shared block."""

    __slots__ = ("dtype", "offset", "shape")

    def __init__(self, dtype: Any, shape: tuple[int, ...], offset: int) -> None:
        self.dtype, self.shape, self.offset = dtype, shape, offset

    def __getstate__(self) -> tuple[Any, ...]:
        return self.dtype, self.shape, self.offset

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.shape, self.offset = state


def send(connection: Connection, message: Any, share: bool) -> None:
    """Send ``message``: plain data with arrays, and piles of them, in nested lists, tuples and dicts."""
    arrays: list[tuple[Any, int]] = []
    size = 0

    def place(a: Any) -> Any:
        nonlocal size
        if a.nbytes < _SMALL or a.dtype.hasobject or not (share and _SHARES):
            return a.stack() if isinstance(a, Pile) else a
        entry = _Array(a.dtype, a.shape, size)
        arrays.append((a, size))
        size = -(-(size + a.nbytes) // _ALIGNMENT) * _ALIGNMENT
        return entry

    packed = _map(message, (np.ndarray, Pile), place)
    connection.send((size, packed))
    if size:
        _send_block(connection, arrays, size)


def _send_block(connection: Connection, arrays: list[tuple[Any, int]], size: int) -> None:
    descriptor = os.memfd_create("argosy-batch")
    try:
        os.ftruncate(descriptor, size)
        with open(descriptor, "wb", closefd=False) as file:  # written, not mapped: new pages need no faults
            for a, offset in arrays:
                file.seek(offset)
                for part in a.arrays if isinstance(a, Pile) else [a]:
                    file.write(np.ascontiguousarray(part, a.dtype).reshape(-1).view(np.uint8).data)
        reduction.send_handle(connection, descriptor, os.getppid())
    finally:
        os.close(descriptor)


def receive(connection: Connection) -> Any:
    """What :func:`send` sent. Raises EOFError when the other side is gone."""
    size, packed = connection.recv()
    if not size:
        return packed
    descriptor = reduction.recv_handle(connection)
    try:
        block = mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)

    def restore(entry: Any) -> Any:
        count = int(np.prod(entry.shape, dtype=np.int64))
        return np.frombuffer(block, entry.dtype, count, entry.offset).reshape(entry.shape)

    return _map(packed, _Array, restore)


def _map(x: Any, kind: type | tuple[type, ...], convert: Any) -> Any:
    if isinstance(x, kind):
        return convert(x)
    if isinstance(x, dict):
        return {key: _map(value, kind, convert) for key, value in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(_map(value, kind, convert) for value in x))
    if isinstance(x, (list, tuple)):
        return type(x)(_map(value, kind, convert) for value in x)
    return x
