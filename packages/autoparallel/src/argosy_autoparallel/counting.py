"""Counting what is communicated: calls and bytes by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from argosy_hwadapt import Communicator
from argosy_hwadapt.calls import Call
from argosy_hwadapt.communicator import BaseCommunicator, Handle
from argosy_phi_ops.context import context

__all__ = ["CountedCommunicator", "Counts", "count_collectives"]

_ACTIVE = "argosy.counts"


class Counts:
    """``calls`` and ``bytes`` by kind (all_reduce, all_gather, ...), and each call in order in ``log``.

    Bytes are those that a rank sends by ring algorithms: ``2 S (n - 1) / n`` for an all-reduce of S bytes,
    ``S (n - 1) / n`` for gathers and scatters of S bytes in all, and for an all-to-all of S bytes on each rank.
    """

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self.bytes: dict[str, float] = {}
        self.log: list[tuple[str, float]] = []

    def add(self, kind: str, nbytes: float) -> None:
        """Count one call."""
        self.calls[kind] = self.calls.get(kind, 0) + 1
        self.bytes[kind] = self.bytes.get(kind, 0.0) + nbytes
        self.log.append((kind, nbytes))

    @property
    def total_bytes(self) -> float:
        """Bytes sent by this rank, over all kinds."""
        return sum(self.bytes.values())

    def __repr__(self) -> str:
        return f"Counts(calls={self.calls}, bytes={self.bytes})"


@contextmanager
def count_collectives() -> Iterator[Counts]:
    """Count this rank's communication within the block::

    with count_collectives() as counts:
        loss.backward()
    print(counts.calls)  # {'all_reduce': 4}
    """
    counts = Counts()
    active: list[Counts] = context().values.setdefault(_ACTIVE, [])
    active.append(counts)
    try:
        yield counts
    finally:
        active.remove(counts)


class CountedCommunicator(BaseCommunicator):
    """A communicator that tells the active counters of its rank."""

    def __init__(self, inner: Communicator) -> None:
        self.inner = inner
        self.rank, self.size, self.name = inner.rank, inner.size, inner.name

    def __repr__(self) -> str:
        return repr(self.inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def start(self, call: Call) -> Handle:
        """See :meth:`Communicator.start`."""
        share = _SENT.get(call.kind)
        if share is not None:
            self._count(call.kind, share(self, call))
        return self.inner.start(call)

    def send(self, buffer: Any, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.send`."""
        self._count("send", buffer.nbytes)
        self.inner.send(buffer, peer, tag)

    def _count(self, kind: str, nbytes: float) -> None:
        for counts in context().values.get(_ACTIVE, ()):
            counts.add(kind, nbytes)


_SENT: dict[str, Callable[[CountedCommunicator, Call], float]] = {
    "all_reduce": lambda c, call: 2 * call.send.nbytes * (c.size - 1) / c.size,
    "all_gather": lambda c, call: call.send.nbytes * (c.size - 1),
    "reduce_scatter": lambda c, call: call.send.nbytes * (c.size - 1) / c.size,
    "all_to_all": lambda c, call: _to_others(c, call) * call.send.itemsize,
    "broadcast": lambda c, call: call.send.nbytes if c.rank == call.agreed["root"] else 0,
}
"""From a kind to the bytes that a rank sends."""


def _to_others(c: CountedCommunicator, call: Call) -> float:
    counts = call.own.get("send_counts")
    return float(call.send.size * (c.size - 1) / c.size if counts is None else sum(counts) - counts[c.rank])
