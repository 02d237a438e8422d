"""The communicator of a program that was not launched: a group of one."""

from __future__ import annotations

from collections import deque

from argosy_hwadapt.communicator import Array, check_array, check_op, check_pair, check_peer
from argosy_hwadapt.errors import CollectiveMismatch

__all__ = ["SoloCommunicator"]


class SoloCommunicator:
    """One rank, alone. Implements :class:`argosy_hwadapt.communicator.Communicator`: collectives copy."""

    name = "solo"
    rank = 0
    size = 1

    def __init__(self) -> None:
        self._letters: dict[int, deque[Array]] = {}

    def all_reduce(self, send: Array, recv: Array, op: str = "sum") -> None:
        """See :meth:`Communicator.all_reduce`."""
        check_op("all_reduce", op, send.dtype)
        _copy("all_reduce", send, recv)

    def all_gather(self, send: Array, recv: Array) -> None:
        """See :meth:`Communicator.all_gather`."""
        _copy("all_gather", send, recv)

    def reduce_scatter(self, send: Array, recv: Array, op: str = "sum") -> None:
        """See :meth:`Communicator.reduce_scatter`."""
        check_op("reduce_scatter", op, send.dtype)
        _copy("reduce_scatter", send, recv)

    def all_to_all(self, send: Array, recv: Array) -> None:
        """See :meth:`Communicator.all_to_all`."""
        _copy("all_to_all", send, recv)

    def broadcast(self, buffer: Array, root: int) -> None:
        """See :meth:`Communicator.broadcast`."""
        check_array("broadcast: buffer", buffer)
        check_peer("broadcast", root, 1)

    def send(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.send`."""
        check_peer("send", peer, 1)
        self._letters.setdefault(tag, deque()).append(buffer.copy())

    def recv(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.recv`. Raises CollectiveMismatch where nothing was sent: nobody else ever will."""
        check_peer("recv", peer, 1)
        letters = self._letters.get(tag)
        if not letters:
            raise CollectiveMismatch("recv: a single rank waits for a message that it has not sent to itself")
        _copy("recv", letters.popleft(), buffer)

    def barrier(self) -> None:
        """See :meth:`Communicator.barrier`."""

    def split(self, color: int, key: int) -> SoloCommunicator | None:
        """See :meth:`Communicator.split`."""
        return SoloCommunicator() if color >= 0 else None

    def abort(self, reason: str) -> None:
        """See :meth:`Communicator.abort`: there is nobody to stop."""

    def close(self) -> None:
        """See :meth:`Communicator.close`."""


def _copy(kind: str, send: Array, recv: Array) -> None:
    check_pair(kind, send, recv, 1, 1)
    if send is not recv:
        recv.reshape(-1)[:] = send.reshape(-1)
