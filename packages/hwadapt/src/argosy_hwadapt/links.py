"""The time that communication takes on links described by numbers: for simulation, and to be slept.

Collectives are priced by ring and pairwise algorithms; ``latency`` is in seconds per message, ``bandwidth`` in bytes
per second of one direction of one rank's link.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from argosy_hwadapt import calls
from argosy_hwadapt.calls import Array, Call
from argosy_hwadapt.communicator import BaseCommunicator, Communicator, Handle

if TYPE_CHECKING:
    from argosy_hwadapt.device import Device

__all__ = ["Level", "LinkModel", "ModelledCommunicator"]


class Level(NamedTuple):
    """One level of a machine: ``ranks`` consecutive ranks are joined by links of this latency and bandwidth."""

    ranks: int
    latency: float
    bandwidth: float


class LinkModel:
    """Levels from the innermost (ranks of a node) to the outermost. Groups use the innermost level they fit into."""

    def __init__(self, *levels: Level) -> None:
        if not levels:
            raise ValueError("LinkModel: at least one level is needed")
        for level in levels:
            if level.ranks < 1 or level.latency < 0 or level.bandwidth <= 0:
                raise ValueError(f"LinkModel: {level} needs ranks and bandwidth above 0, and a latency of 0 or more")
        self.levels = levels

    @classmethod
    def single_level(cls, latency: float, bandwidth: float) -> LinkModel:
        """The model of one level that has all ranks."""
        return cls(Level(2**62, latency, bandwidth))

    def __repr__(self) -> str:
        return f"LinkModel({', '.join(map(str, self.levels))})"

    def level(self, members: Sequence[int]) -> Level:
        """Return the level whose links ranks use among each other."""
        for level in self.levels:
            if len({rank // level.ranks for rank in members}) == 1:
                return level
        return self.levels[-1]

    def seconds(self, kind: str, nbytes: float, members: Sequence[int]) -> float:
        """Return the time of a collective: ``nbytes`` is what each rank gives to it, of a message its size."""
        n, level = len(members), self.level(members)
        messages, sent = _SHARES[kind](n)
        return float(messages * level.latency + sent * nbytes / level.bandwidth)


_SHARES: dict[str, Any] = {
    "all_reduce": lambda n: (2 * (n - 1), 2 * (n - 1) / n),
    "all_gather": lambda n: (n - 1, n - 1),
    "reduce_scatter": lambda n: (n - 1, (n - 1) / n),
    "all_to_all": lambda n: (n - 1, (n - 1) / n),
    "broadcast": lambda n: (_rounds(n), _rounds(n)),
    "barrier": lambda n: (_rounds(n), 0),
    "send": lambda n: (1, 1),
}
"""From a kind to its messages one after another, and to what a rank sends as a multiple of what it gives."""


def _rounds(n: int) -> int:
    return (n - 1).bit_length()


class ModelledCommunicator(BaseCommunicator):
    """A communicator whose operations take the time of a model's links: waiting sleeps until it has passed.

    The link of a rank carries one transfer at a time, in the order they were started. A collective begins when the last
    rank has started it. Ranks exchange the time by the wrapped communicator, so they must share a clock: one machine.
    """

    name = "modelled"

    def __init__(
        self, inner: Communicator, model: LinkModel, members: Sequence[int] | None = None, link: _Link | None = None
    ) -> None:
        self.inner, self.model = inner, model
        self.rank, self.size = inner.rank, inner.size
        self.members = tuple(range(inner.size)) if members is None else tuple(members)
        self._link = _Link() if link is None else link

    def __repr__(self) -> str:
        return f"ModelledCommunicator({self.inner!r}, {self.model!r})"

    def takes_device_buffers(self, device: Device) -> bool:
        """See :meth:`Communicator.takes_device_buffers`: what the wrapped one takes."""
        return self.inner.takes_device_buffers(device)

    def start(self, call: Call) -> Handle:
        """See :meth:`Communicator.start`."""
        now = np.array([time.monotonic()])
        if call.kind == "recv":
            times = np.empty(1)
            stamp = calls.recv(self.size, times, call.own["from"], call.own["tag"])
            seconds = 0.0
        else:
            times = np.empty(self.size)
            stamp = calls.all_gather(self.size, now, times)
            nbytes = 0 if call.send is None else call.send.nbytes
            seconds = self.model.seconds(call.kind, nbytes, self.members)
        stamp.site, stamp.background = call.site, call.background
        parts = self.inner.start(stamp), self.inner.start(call)
        return self._link.add(_Transfer(self._link, parts, times, seconds, occupies=call.kind != "recv"))

    def send(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.send`. The time of its arrival goes first."""
        calls.send(self.size, buffer, peer, tag)
        level = self.model.level((self.members[self.rank], self.members[peer]))
        sent = self._link.occupy(time.monotonic(), buffer.nbytes / level.bandwidth)
        self.inner.send(np.array([sent + level.latency]), peer, tag)
        self.inner.send(buffer, peer, tag)

    def split(self, color: int, key: int) -> ModelledCommunicator | None:
        """See :meth:`Communicator.split`. The groups of a rank share its link."""
        inner = self.inner.split(color, key)
        if inner is None:
            return None
        members = np.empty(inner.size, np.int64)
        inner.all_gather(np.array([self.members[self.rank]]), members)
        return ModelledCommunicator(inner, self.model, members.tolist(), self._link)

    def abort(self, reason: str) -> None:
        """See :meth:`Communicator.abort`."""
        self.inner.abort(reason)

    def close(self) -> None:
        """See :meth:`Communicator.close`."""
        self.inner.close()


class _Link:
    """What one rank sends through: when it will be free, and the collectives whose end is not known yet."""

    def __init__(self) -> None:
        self.free = 0.0
        self._open: list[_Transfer] = []

    def add(self, transfer: _Transfer) -> _Transfer:
        """Queue a transfer."""
        self._open.append(transfer)
        return transfer

    def occupy(self, start: float, seconds: float) -> float:
        """Use the link from ``start`` on, or later; returns when it is free again."""
        self.settle()
        self.free = max(start, self.free) + seconds
        return self.free

    def settle(self) -> None:
        """Fix the ends of the transfers whose data has arrived, in the order they were started."""
        waiting = []
        for transfer in self._open:
            if not transfer.has_arrived():
                waiting.append(transfer)
                continue
            start = float(transfer.times.max())
            if transfer.occupies:
                self.free = max(start, self.free) + transfer.seconds
                start = self.free
            transfer.end = start
        self._open = waiting


class _Transfer:
    """The handle of an operation on a modelled link: done when its data is there and its time has passed."""

    def __init__(self, link: _Link, parts: Sequence[Handle], times: Array, seconds: float, occupies: bool) -> None:
        self._link, self._parts = link, parts
        self.times, self.seconds, self.occupies = times, seconds, occupies
        self.end: float | None = None

    def has_arrived(self) -> bool:
        """Return whether the data is there."""
        return all(part.done() for part in self._parts)

    def done(self) -> bool:
        """See :meth:`argosy_hwadapt.communicator.Handle.done`."""
        if self.end is None:
            self._link.settle()
        return self.end is not None and time.monotonic() >= self.end

    def wait(self) -> None:
        """See :meth:`argosy_hwadapt.communicator.Handle.wait`."""
        for part in self._parts:
            part.wait()
        if self.end is None:
            self._link.settle()
        assert self.end is not None
        time.sleep(max(0.0, self.end - time.monotonic()))
