"""The communicator over MPI, for ranks that are processes of one or many machines. mpi4py is imported only
here.

mpi4py is imported when a communicator is made, because importing it starts MPI. The extra
``argosy-hwadapt[mpi]`` brings both mpi4py and an MPI.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

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
from argosy_hwadapt.errors import CommunicatorError, RankFailure

_OPS = {"sum": "SUM", "prod": "PROD", "max": "MAX", "min": "MIN", "avg": "SUM"}
# As numpy adds and multiplies truth values.
_BOOL_OPS = {
    "sum": "LOR",
    "prod": "LAND",
    "max": "LOR",
    "min": "LAND",
}


def world(ranks: Sequence[int] | None = None) -> MpiCommunicator:
    """Return a private communicator of all processes, or (called by all of them) of these ranks.

    Raises CommunicatorError when mpi4py or MPI is missing, ValueError in a process that is not among
    ``ranks``.
    """
    mpi = _import_mpi()
    if ranks is None:
        return MpiCommunicator(mpi.COMM_WORLD.Dup())
    if mpi.COMM_WORLD.rank not in ranks:
        raise ValueError(f"mpi: this process is rank {mpi.COMM_WORLD.rank}, which is not among {tuple(ranks)}")
    group = mpi.COMM_WORLD.group.Incl(list(ranks))
    return MpiCommunicator(mpi.COMM_WORLD.Create_group(group))


class MpiCommunicator:
    """An MPI communicator of our own. Implements :class:`argosy_hwadapt.communicator.Communicator`.

    Data moves as bytes, so that every dtype does. Reductions use MPI's where it knows the dtype; floats of
    8 and 16 bits are gathered and added in float32 in rank order, as :mod:`argosy_hwadapt.inproc` does.
    """

    name = "mpi"

    def __init__(self, comm: Any) -> None:
        mpi = _import_mpi()
        comm.Set_errhandler(mpi.ERRORS_RETURN)
        self._comm, self._mpi = comm, mpi
        self.rank: int = comm.rank
        self.size: int = comm.size
        self._closed = False
        self._pending: list[tuple[Any, Array]] = []

    def __repr__(self) -> str:
        return f"MpiCommunicator(rank {self.rank} of {self.size})"

    def all_reduce(self, send: Array, recv: Array, op: str = "sum") -> None:
        """See :meth:`Communicator.all_reduce`."""
        check_pair("all_reduce", send, recv, 1, 1)
        check_op("all_reduce", op, send.dtype)
        if accumulator(send.dtype) != send.dtype:
            recv.reshape(-1)[:] = reduce_arrays(self._gathered(send), op)
            return
        source = self._mpi.IN_PLACE if send is recv else _apart(send, recv)
        self._run("all_reduce", self._comm.Allreduce, source, recv, self._op(op, send.dtype))
        self._average(recv, op)

    def all_gather(self, send: Array, recv: Array) -> None:
        """See :meth:`Communicator.all_gather`."""
        check_pair("all_gather", send, recv, 1, self.size)
        self._run("all_gather", self._comm.Allgather, _bytes(_apart(send, recv)), _bytes(recv))

    def reduce_scatter(self, send: Array, recv: Array, op: str = "sum") -> None:
        """See :meth:`Communicator.reduce_scatter`."""
        check_pair("reduce_scatter", send, recv, self.size, 1)
        check_op("reduce_scatter", op, send.dtype)
        if accumulator(send.dtype) != send.dtype:
            received = np.empty_like(send)
            self.all_to_all(send, received)
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
        self._run("all_to_all", self._comm.Alltoall, _bytes(_apart(send, recv)), _bytes(recv))

    def broadcast(self, buffer: Array, root: int) -> None:
        """See :meth:`Communicator.broadcast`."""
        check_array("broadcast: buffer", buffer)
        check_peer("broadcast", root, self.size)
        if self.rank != root:
            check_writable("broadcast", buffer)
        self._run("broadcast", self._comm.Bcast, _bytes(buffer), root)

    def send(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.send`."""
        check_array("send: buffer", buffer)
        check_peer("send", peer, self.size)
        message = _bytes(buffer.copy())
        self._pending = [(request, kept) for request, kept in self._pending if not request.Test()]
        self._pending.append((self._run("send", self._comm.Isend, message, peer, tag), message))

    def recv(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.recv`."""
        check_array("recv: buffer", buffer)
        check_writable("recv", buffer)
        check_peer("recv", peer, self.size)
        self._run("recv", self._comm.Recv, _bytes(buffer), peer, tag)

    def barrier(self) -> None:
        """See :meth:`Communicator.barrier`."""
        self._run("barrier", self._comm.Barrier)

    def split(self, color: int, key: int) -> MpiCommunicator | None:
        """See :meth:`Communicator.split`."""
        part = self._run("split", self._comm.Split, color if color >= 0 else self._mpi.UNDEFINED, key)
        return None if part == self._mpi.COMM_NULL else MpiCommunicator(part)

    def abort(self, reason: str) -> None:
        """End all processes, which is what MPI offers; the reason goes to the launcher's standard error."""
        sys.stderr.write(f"rank {self.rank} aborted: {reason}\n")
        sys.stderr.flush()
        self._comm.Abort(1)

    def close(self) -> None:
        """See :meth:`Communicator.close`."""
        if not self._closed:
            self._mpi.Request.Waitall([request for request, _ in self._pending])
            self._comm.Free()
        self._pending, self._closed = [], True

    def _run(self, kind: str, operation: Callable[..., Any], *args: Any) -> Any:
        if self._closed:
            raise CommunicatorError(f"{self!r} is closed, so {kind} is impossible")
        try:
            return operation(*args)
        except self._mpi.Exception as cause:
            raise RankFailure(f"{kind} on {self!r}: {cause}") from cause

    def _gathered(self, send: Array) -> list[Array]:
        whole = np.empty((self.size, send.size), send.dtype)
        self.all_gather(send, whole)
        return list(whole)

    def _op(self, op: str, dtype: np.dtype[Any]) -> Any:
        return getattr(self._mpi, (_BOOL_OPS if dtype.kind == "b" else _OPS)[op])

    def _average(self, recv: Array, op: str) -> None:
        if op == "avg":
            np.divide(recv, self.size, out=recv)


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
