"""Collectives that ranks must agree on before data moves: different calls end in an error instead of a hang.

MPI waits forever when one rank calls ``all_reduce`` and another ``barrier``. Here every collective is preceded by an
exchange of short records (what is called, on which line), so that the first difference raises on all ranks and names
both lines. The records cost one small all-gather for each collective; ``ARGOSY_CHECK_COLLECTIVES=0`` leaves them out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy import settings
from argosy_hwadapt.communicator import Array, Communicator
from argosy_hwadapt.errors import CollectiveMismatch
from argosy_hwadapt.rendezvous import call_site

__all__ = ["CheckedCommunicator", "agree", "checking"]

_BYTES = 256


def checking() -> bool:
    """Whether ranks compare their calls (``ARGOSY_CHECK_COLLECTIVES``, on unless ``0``)."""
    return settings.read("ARGOSY_CHECK_COLLECTIVES") != "0"


def agree(communicator: Communicator, kind: str, **agreed: Any) -> None:
    """Compare a composite operation with the other ranks' before its messages are sent, where ranks compare."""
    if isinstance(communicator, CheckedCommunicator):
        communicator.agree(kind, **agreed)


class CheckedCommunicator:
    """A communicator whose ranks compare their calls first. Implements the same contract as ``inner``."""

    def __init__(self, inner: Communicator) -> None:
        self.inner = inner
        self.rank, self.size, self.name = inner.rank, inner.size, inner.name

    def __repr__(self) -> str:
        return f"CheckedCommunicator({self.inner!r})"

    def agree(self, kind: str, **agreed: Any) -> None:
        """Raise CollectiveMismatch unless every rank of the group calls this now, with equal ``agreed``."""
        details = ", ".join(f"{name}={value}" for name, value in agreed.items())
        self._compare(_record(f"calls {kind}({details})", call_site()))

    def _compare(self, record: Array) -> None:
        records = np.zeros((self.size, _BYTES), np.uint8)
        self.inner.all_gather(record, records)
        calls = [bytes(row).rstrip(b"\0").decode(errors="replace").split("\n") for row in records]
        for rank, other in enumerate(calls):
            if other[0] != calls[0][0]:
                raise CollectiveMismatch(
                    f"ranks disagree: rank 0 {' at '.join(calls[0])}; rank {rank} {' at '.join(other)}"
                )

    def all_reduce(self, send: Array, recv: Array, op: str = "sum") -> None:
        """See :meth:`Communicator.all_reduce`."""
        self.agree("all_reduce", dtype=send.dtype, size=send.size, op=op)
        self.inner.all_reduce(send, recv, op)

    def all_gather(self, send: Array, recv: Array) -> None:
        """See :meth:`Communicator.all_gather`."""
        self.agree("all_gather", dtype=send.dtype, size=send.size)
        self.inner.all_gather(send, recv)

    def reduce_scatter(self, send: Array, recv: Array, op: str = "sum") -> None:
        """See :meth:`Communicator.reduce_scatter`."""
        self.agree("reduce_scatter", dtype=send.dtype, size=send.size, op=op)
        self.inner.reduce_scatter(send, recv, op)

    def all_to_all(self, send: Array, recv: Array) -> None:
        """See :meth:`Communicator.all_to_all`."""
        self.agree("all_to_all", dtype=send.dtype, size=send.size)
        self.inner.all_to_all(send, recv)

    def broadcast(self, buffer: Array, root: int) -> None:
        """See :meth:`Communicator.broadcast`."""
        self.agree("broadcast", dtype=buffer.dtype, size=buffer.size, root=root)
        self.inner.broadcast(buffer, root)

    def send(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.send`."""
        self.inner.send(buffer, peer, tag)

    def recv(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.recv`."""
        self.inner.recv(buffer, peer, tag)

    def barrier(self) -> None:
        """See :meth:`Communicator.barrier`: comparing calls is one."""
        self.agree("barrier")

    def split(self, color: int, key: int) -> CheckedCommunicator | None:
        """See :meth:`Communicator.split`."""
        self.agree("split")
        part = self.inner.split(color, key)
        return None if part is None else CheckedCommunicator(part)

    def finish(self) -> None:
        """Meet the other ranks at the end of the program."""
        self._compare(_record("has ended its program", ""))

    def abort(self, reason: str) -> None:
        """See :meth:`Communicator.abort`."""
        self.inner.abort(reason)

    def close(self) -> None:
        """See :meth:`Communicator.close`."""
        self.inner.close()


def _record(call: str, site: str) -> Array:
    """Call and line in ``_BYTES`` bytes; of a long path the end is kept."""
    head = call.encode()[: _BYTES // 2]
    room = _BYTES - len(head) - 1
    text = head + b"\n" + site.encode()[-room:] if site else head
    return np.frombuffer(text.ljust(_BYTES, b"\0"), np.uint8)
