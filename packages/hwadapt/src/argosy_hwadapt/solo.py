"""The communicator of a program that was not launched: a group of one."""

from __future__ import annotations

from collections import defaultdict, deque

from argosy_hwadapt import calls
from argosy_hwadapt.calls import Array, Call
from argosy_hwadapt.communicator import DONE, BaseCommunicator, Handle
from argosy_hwadapt.errors import CollectiveMismatch, CommunicatorError


class SoloCommunicator(BaseCommunicator):
    """One rank, alone. Implements :class:`argosy_hwadapt.communicator.Communicator`: collectives copy."""

    name = "solo"
    rank = 0
    size = 1

    def __init__(self) -> None:
        self._letters: defaultdict[int, deque[Call]] = defaultdict(deque)
        self._asked: defaultdict[int, deque[_Receipt]] = defaultdict(deque)
        self._closed = False

    def __repr__(self) -> str:
        return "SoloCommunicator()"

    def start(self, call: Call) -> Handle:
        """See :meth:`Communicator.start`."""
        self._check_open(call)
        if call.kind == "recv":
            receipt = _Receipt(call)
            self._asked[call.own["tag"]].append(receipt)
            self._deliver(call.own["tag"])
            return receipt
        if call.own.get("send_counts") != call.own.get("recv_counts"):
            raise CollectiveMismatch(f"ranks disagree: rank 0 calls {call}")
        if call.send is not call.recv:
            call.recv[:] = call.send
        return DONE

    def send(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.send`."""
        call = calls.check_memory(calls.send(1, buffer, peer, tag), self.takes_device_buffers)
        self._check_open(call)
        call.send = call.send.copy()
        self._letters[tag].append(call)
        self._deliver(tag)

    def split(self, color: int, key: int) -> SoloCommunicator | None:
        """See :meth:`Communicator.split`."""
        return SoloCommunicator() if color >= 0 else None

    def abort(self, reason: str) -> None:
        """See :meth:`Communicator.abort`: there is nobody to stop."""

    def close(self) -> None:
        """See :meth:`Communicator.close`."""
        self._closed = True

    def _deliver(self, tag: int) -> None:
        asked, letters = self._asked[tag], self._letters[tag]
        while asked and letters:
            asked.popleft().deliver(letters.popleft())

    def _check_open(self, call: Call) -> None:
        if self._closed:
            raise CommunicatorError(f"{self!r} is closed, so {call} is impossible")


class _Receipt:
    """The handle of a message that was asked for."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._done = False
        self._error: str | None = None

    def deliver(self, sent: Call) -> None:
        """Copy what was sent to where it was asked for, or note that it does not fit."""
        self._done = True
        if sent.agreed != self._call.agreed:
            self._error = f"message does not fit: rank 0 called {sent}; rank 0 calls {self._call}"
        else:
            self._call.recv[:] = sent.send

    def done(self) -> bool:
        """See :meth:`argosy_hwadapt.communicator.Handle.done`."""
        return self._done

    def wait(self) -> None:
        """Raises CollectiveMismatch where nothing was sent: nobody else ever will."""
        if not self._done:
            raise CollectiveMismatch(
                f"recv: a single rank waits for a message that it has not sent to itself, in {self._call}"
            )
        if self._error is not None:
            raise CollectiveMismatch(self._error)


def world(check: bool = True) -> SoloCommunicator:
    """Return a new group of one; there is nobody to compare calls with."""
    return SoloCommunicator()
