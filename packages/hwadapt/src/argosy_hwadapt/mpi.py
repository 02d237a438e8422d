"""The communicator over MPI, for ranks that are processes. mpi4py is imported only here.

Ranks compare what they call before data moves (:mod:`argosy_hwadapt.agreement`), and know who waits for whom
(:mod:`argosy_hwadapt.waits`), so that disagreement ends in an error with both lines, like that of threads.

mpi4py is imported when a communicator is made, because importing it starts MPI. The extra
``argosy-hwadapt[mpi]`` brings both mpi4py and an MPI.
"""

from __future__ import annotations

import atexit
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy_hwadapt.agreement import Agreement, as_text, record
from argosy_hwadapt.board import TEXT, forget_segments, shared_memory
from argosy_hwadapt.communicator import (
    Array,
    accumulator,
    check_array,
    check_op,
    check_pair,
    check_peer,
    check_writable,
    reduce_arrays,
)
from argosy_hwadapt.errors import CollectiveMismatch, CommunicatorError, RankFailure
from argosy_hwadapt.rendezvous import call_site
from argosy_hwadapt.waits import Waits

_OPS = {"sum": "SUM", "prod": "PROD", "max": "MAX", "min": "MIN", "avg": "SUM"}
# As numpy adds and multiplies truth values.
_BOOL_OPS = {
    "sum": "LOR",
    "prod": "LAND",
    "max": "LOR",
    "min": "LAND",
}


def world(ranks: Sequence[int] | None = None, check: bool = True) -> MpiCommunicator:
    """Return a private communicator of all processes, or (called by all of them) of these ranks.

    With ``check``, which must be the same everywhere, ranks compare their calls and a wait without end is an error;
    without it both hang, as MPI does. Raises CommunicatorError when mpi4py or MPI is missing, ValueError in a process
    that is not among ``ranks``.
    """
    mpi = _import_mpi()
    if ranks is None:
        whole = mpi.COMM_WORLD.Dup()
        forget_segments(whole)
        return _checked(whole, check)
    if mpi.COMM_WORLD.rank not in ranks:
        raise ValueError(f"mpi: this process is rank {mpi.COMM_WORLD.rank}, which is not among {tuple(ranks)}")
    group = mpi.COMM_WORLD.group.Incl(list(ranks))
    return _checked(mpi.COMM_WORLD.Create_group(group), check)


def _checked(comm: Any, check: bool) -> MpiCommunicator:
    memory = shared_memory(comm, Waits.nbytes(comm.size)) if check else None
    made = MpiCommunicator(comm, Waits(memory, comm.rank, comm.size), tuple(range(comm.size)), check)
    atexit.register(made.finish)
    return made


class MpiCommunicator:
    """An MPI communicator of our own. Implements :class:`argosy_hwadapt.communicator.Communicator`.

    Data moves as bytes, so that every dtype does. Reductions use MPI's where it knows the dtype; floats of
    8 and 16 bits are gathered and added in float32 in rank order, as :mod:`argosy_hwadapt.inproc` does.
    ``members`` are its ranks' numbers in ``waits``; ``check`` as in :func:`world`.
    """

    name = "mpi"

    def __init__(self, comm: Any, waits: Waits, members: tuple[int, ...], check: bool) -> None:
        mpi = _import_mpi()
        comm.Set_errhandler(mpi.ERRORS_RETURN)
        self._comm, self._mpi = comm, mpi
        self.rank: int = comm.rank
        self.size: int = comm.size
        self._closed = False
        self._waits, self._members = waits, members
        memory = shared_memory(comm, Agreement.nbytes(comm.size)) if check else None
        self._agreement = Agreement(memory, comm, members, waits) if check else None

    def __repr__(self) -> str:
        return f"MpiCommunicator(rank {self.rank} of {self.size})"

    def all_reduce(self, send: Array, recv: Array, op: str = "sum") -> None:
        """See :meth:`Communicator.all_reduce`."""
        check_pair("all_reduce", send, recv, 1, 1)
        check_op("all_reduce", op, send.dtype)
        self.agree("all_reduce", dtype=send.dtype, size=send.size, op=op)
        if accumulator(send.dtype) != send.dtype:
            recv.reshape(-1)[:] = reduce_arrays(self._gathered(send), op)
            return
        source = self._mpi.IN_PLACE if send is recv else _apart(send, recv)
        self._run("all_reduce", self._comm.Allreduce, source, recv, self._op(op, send.dtype))
        self._average(recv, op)

    def all_gather(self, send: Array, recv: Array) -> None:
        """See :meth:`Communicator.all_gather`."""
        check_pair("all_gather", send, recv, 1, self.size)
        self.agree("all_gather", dtype=send.dtype, size=send.size)
        self._run("all_gather", self._comm.Allgather, _bytes(_apart(send, recv)), _bytes(recv))

    def reduce_scatter(self, send: Array, recv: Array, op: str = "sum") -> None:
        """See :meth:`Communicator.reduce_scatter`."""
        check_pair("reduce_scatter", send, recv, self.size, 1)
        check_op("reduce_scatter", op, send.dtype)
        self.agree("reduce_scatter", dtype=send.dtype, size=send.size, op=op)
        if accumulator(send.dtype) != send.dtype:
            received = np.empty_like(send)
            self._run("reduce_scatter", self._comm.Alltoall, _bytes(send), _bytes(received))
            recv.reshape(-1)[:] = reduce_arrays(list(received.reshape(self.size, -1)), op)
            return
        self._run(
            "reduce_scatter",
            self._comm.Reduce_scatter_block,
            _apart(send, recv),
            recv,
            self._op(op, send.dtype),
        )
        self._average(recv, op)

    def all_to_all(self, send: Array, recv: Array) -> None:
        """See :meth:`Communicator.all_to_all`."""
        check_pair("all_to_all", send, recv, 1, 1)
        if send.size % self.size:
            raise ValueError(f"all_to_all: {send.size} elements do not divide into {self.size} equal parts")
        self.agree("all_to_all", dtype=send.dtype, size=send.size)
        self._run("all_to_all", self._comm.Alltoall, _bytes(_apart(send, recv)), _bytes(recv))

    def broadcast(self, buffer: Array, root: int) -> None:
        """See :meth:`Communicator.broadcast`."""
        check_array("broadcast: buffer", buffer)
        check_peer("broadcast", root, self.size)
        if self.rank != root:
            check_writable("broadcast", buffer)
        self.agree("broadcast", dtype=buffer.dtype, size=buffer.size, root=root)
        self._run("broadcast", self._comm.Bcast, _bytes(buffer), root)

    def send(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.send`. The call and its line travel with the data."""
        check_array("send: buffer", buffer)
        check_peer("send", peer, self.size)
        call = record("send", {**_operand(buffer), "to": self._members[peer], "tag": tag}, call_site())
        message = np.concatenate([np.frombuffer(call.ljust(TEXT, b"\0"), np.uint8), _bytes(buffer)])
        request = self._run("send", self._comm.Isend, message, peer, tag)
        self._waits.outbox.keep(request, message, self._members[peer])

    def recv(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.recv`. Raises CollectiveMismatch for a message of another dtype or size."""
        check_array("recv: buffer", buffer)
        check_writable("recv", buffer)
        check_peer("recv", peer, self.size)
        call = record("recv", {**_operand(buffer), "from": self._members[peer], "tag": tag}, call_site())
        message = self._receive(call, peer, tag)
        sent = message[:TEXT].tobytes().rstrip(b"\0")
        if not sent.startswith(record("send", _operand(buffer), "").rstrip(b")\n") + b","):
            raise CollectiveMismatch(
                f"message does not fit: rank {self._members[peer]} called {as_text(sent)}; "
                f"rank {self._members[self.rank]} calls {as_text(call)}"
            )
        _bytes(buffer)[:] = message[TEXT:]

    def barrier(self) -> None:
        """See :meth:`Communicator.barrier`. Comparing calls is one."""
        self.agree("barrier")
        if self._agreement is None:
            self._run("barrier", self._comm.Barrier)

    def split(self, color: int, key: int) -> MpiCommunicator | None:
        """See :meth:`Communicator.split`."""
        self.agree("split")
        part = self._run("split", self._comm.Split, color if color >= 0 else self._mpi.UNDEFINED, key)
        if part == self._mpi.COMM_NULL:
            return None
        places = part.group.Translate_ranks(list(range(part.size)), self._comm.group)
        members = tuple(self._members[place] for place in places)
        return MpiCommunicator(part, self._waits, members, self._agreement is not None)

    def abort(self, reason: str) -> None:
        """End all processes, which is what MPI offers; the reason goes to the launcher's standard error."""
        sys.stderr.write(f"rank {self.rank} aborted: {reason}\n")
        sys.stderr.flush()
        self._comm.Abort(1)

    def close(self) -> None:
        """See :meth:`Communicator.close`."""
        if not self._closed:
            self._flush()
            self._comm.Free()
        self._closed = True

    # Beyond the contract.

    def agree(self, kind: str, **agreed: Any) -> None:
        """Compare an operation with those of the other ranks, which must call this now, too.

        Raises CollectiveMismatch where another rank's kind or ``agreed`` differs. Does nothing without checks.
        """
        if self._closed:
            raise CommunicatorError(f"{self!r} is closed, so {kind} is impossible")
        if self._agreement is not None:
            self._agreement.compare(record(kind, agreed, call_site()))

    def finish(self) -> None:
        """Deliver what was sent, and say that this rank's program has ended: who waits for it, now or later, fails
        with RankFailure. Called at the end of the process by itself.
        """
        error = getattr(sys, "last_value", None)
        if error is None:
            self._flush()
        self._waits.leave("has ended its program" if error is None else f"has failed: {type(error).__name__}: {error}")

    def _flush(self) -> None:
        """Wait until the messages sent have left this process's memory."""
        self._waits.wait(lambda: "the delivery of what it has sent", self._waits.outbox.receivers)

    def _run(self, kind: str, operation: Callable[..., Any], *args: Any) -> Any:
        if self._closed:
            raise CommunicatorError(f"{self!r} is closed, so {kind} is impossible")
        try:
            return operation(*args)
        except self._mpi.Exception as cause:
            raise RankFailure(f"{kind} on {self!r}: {cause}") from cause

    def _receive(self, call: bytes, peer: int, tag: int) -> Array:
        """Wait for a message by asking for it, which unlike ``Recv`` leaves the core to ranks that compute."""
        status, found = self._mpi.Status(), []

        def missing() -> set[int]:
            message = self._run("recv", self._comm.Improbe, peer, tag, status)
            found.extend([] if message is None else [message])
            return set() if found else {self._members[peer]}

        self._waits.wait(lambda: as_text(call), missing)
        received = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
        request = self._run("recv", found[0].Irecv, received)
        while not self._run("recv", request.Test):
            time.sleep(0)
        return received

    def _gathered(self, send: Array) -> list[Array]:
        whole = np.empty((self.size, send.size), send.dtype)
        self._run("all_reduce", self._comm.Allgather, _bytes(send), _bytes(whole))
        return list(whole)

    def _op(self, op: str, dtype: np.dtype[Any]) -> Any:
        return getattr(self._mpi, (_BOOL_OPS if dtype.kind == "b" else _OPS)[op])

    def _average(self, recv: Array, op: str) -> None:
        if op == "avg":
            np.divide(recv, self.size, out=recv)


def _operand(array: Array) -> dict[str, Any]:
    return {"dtype": array.dtype, "size": array.size}


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _apart(send: Array, recv: Array) -> Array:
    """Return ``send``, copied if it shares memory with ``recv``: MPI forbids operands that overlap."""
    return send.copy() if np.may_share_memory(send, recv) else send


def _import_mpi() -> Any:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as cause:
        raise CommunicatorError(f"MPI is not available ({cause}); pip install 'argosy-hwadapt[mpi]'") from cause
    return MPI
