"""The communicator over MPI, for ranks that are processes. mpi4py is imported only here.

Ranks compare what they call before data moves (:mod:`argosy_hwadapt.agreement`), and know who waits for whom
(:mod:`argosy_hwadapt.waits`), so that disagreement ends in an error with both lines, like that of threads. What is
started moves on (:mod:`argosy_hwadapt.progress`) while somebody waits for anything, and in a thread while nobody does.

mpi4py is imported when a communicator is made, because importing it starts MPI. The extra
``argosy-hwadapt[mpi]`` brings both mpi4py and an MPI.
"""

from __future__ import annotations

import atexit
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy_hwadapt import calls
from argosy_hwadapt.agreement import Agreement, as_text, record
from argosy_hwadapt.board import TEXT, forget_segments, open_segment, remove_segment, shared_memory
from argosy_hwadapt.calls import Array, Call
from argosy_hwadapt.coalesced_call import CoalescedCall
from argosy_hwadapt.communicator import BaseCommunicator, accumulator, reduce_arrays
from argosy_hwadapt.errors import CollectiveMismatch, CommunicatorError, RankFailure
from argosy_hwadapt.exchange import SMALLEST, SharedExchange, can_share, exchange_memory
from argosy_hwadapt.progress import Operation, Steps
from argosy_hwadapt.waits import Waits

_SHARED = ("all_reduce", "all_gather", "reduce_scatter")
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
        return _make_communicator(whole, check)
    if mpi.COMM_WORLD.rank not in ranks:
        raise ValueError(f"mpi: this process is rank {mpi.COMM_WORLD.rank}, which is not among {tuple(ranks)}")
    group = mpi.COMM_WORLD.group.Incl(list(ranks))
    return _make_communicator(mpi.COMM_WORLD.Create_group(group), check)


def _make_communicator(comm: Any, check: bool) -> MpiCommunicator:
    memory = shared_memory(comm, Waits.nbytes(comm.size)) if check else None
    made = MpiCommunicator(comm, Waits(memory, comm.rank, comm.size), tuple(range(comm.size)), check)
    atexit.register(made.finish)
    return made


class MpiCommunicator(BaseCommunicator):
    """An MPI communicator of our own. Implements :class:`argosy_hwadapt.communicator.Communicator`.

    Data moves as bytes, so that every dtype does. Large reductions and gathers of one machine go through memory that
    its processes share (:mod:`argosy_hwadapt.exchange`); others are MPI's where it knows the dtype; floats of
    8 and 16 bits are gathered and added in float32 in rank order, as :mod:`argosy_hwadapt.inproc` does.
    ``members`` are its ranks' numbers in ``waits``; ``check`` as in :func:`world`. Without checks all ranks must use
    the same form of a collective, plain or started.
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
        self._count = self._issued = 0  # collectives started, and those given to MPI, which pairs them by order
        self._failure: Exception | None = None
        self._asked: dict[tuple[int, int], deque[Call]] = {}
        memory = shared_memory(comm, Agreement.nbytes(comm.size)) if check else None
        self._agreement = Agreement(memory, comm, members, self.rank) if check else None
        self._exchange: SharedExchange | None = None
        self._may_share = can_share(comm.size)

    def __repr__(self) -> str:
        return f"MpiCommunicator(rank {self.rank} of {self.size})"

    def start(self, call: Call) -> _MpiHandle:
        """See :meth:`Communicator.start`."""
        self._check_open(call.kind)
        if call.kind == "recv":
            operation = Operation(self._receive(call), alone=True)
        else:
            self._count += 1
            operation = Operation(self._collective(call, self._count))
        self._waits.progress.add(operation, call.background)
        return _MpiHandle(self._waits, call, operation)

    def start_coalesced(self, call: CoalescedCall) -> _MpiHandle:
        """See :meth:`Communicator.start_coalesced`: one comparison, and one collective of all."""
        return self.start(call)

    def send(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.send`. The call and its line travel with the data."""
        call = calls.check_memory(calls.send(self.size, buffer, peer, tag), self.takes_device_buffers)
        call.own["to"] = self._members[peer]
        self._check_open("send")
        written = record(call.text(), str(call.site)).ljust(TEXT, b"\0")
        message = np.concatenate([np.frombuffer(written, np.uint8), _bytes(buffer)])
        with self._waits.progress.lock:
            request = self._run("send", self._comm.Isend, message, peer, tag)
            self._waits.outbox.keep(request, message, self._members[peer])

    def split(self, color: int, key: int) -> MpiCommunicator | None:
        """See :meth:`Communicator.split`. Each rank calls MPI once all are here, after what was started before."""
        self.start(Call("split")).wait()
        with self._waits.progress.lock:
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
            self._waits.progress.run_locked(self._comm.Free)
        self._closed = True

    # Beyond the contract.

    def agree(self, kind: str, **agreed: Any) -> None:
        """Compare an operation with those of the other ranks, which must call this now, too.

        Raises CollectiveMismatch where another rank's kind or ``agreed`` differs. Does nothing without checks.
        """
        self._check_open(kind)
        if self._agreement is not None:
            self.start(Call(kind, agreed)).wait()

    def finish(self) -> None:
        """Deliver what was sent and started, and say that this rank's program has ended: who waits for it, now or
        later, fails with RankFailure. Called at the end of the process by itself.
        """
        error = getattr(sys, "last_value", None)
        if error is None:
            self._flush()
        self._waits.leave("has ended its program" if error is None else f"has failed: {type(error).__name__}: {error}")
        self._waits.progress.stop()

    def _flush(self) -> None:
        """Wait until what others have or will get of this rank has left its memory."""
        progress, outbox = self._waits.progress, self._waits.outbox

        def unsent_receivers() -> set[int] | None:
            moving = progress.has_pending_data()
            receivers: set[int] = progress.run_locked(outbox.receivers)
            return receivers if receivers or moving else None

        self._waits.wait(lambda: "the delivery of what it has sent", unsent_receivers)

    # The steps of an operation.

    def _collective(self, call: Call, number: int) -> Steps:
        started = call.background
        if self._agreement is not None:
            form = "+" if started else ""
            try:
                records = yield from self._agreement.compare(number, record(call.text(own=False), f"{form}{call.site}"))
            except CollectiveMismatch as error:
                self._failure = error
                raise
            started = any(b"\n+" in each for each in records)
        while self._issued != number - 1:
            if self._failure is not None:
                raise CollectiveMismatch(str(self._failure))
            yield set()
        large = call.kind in _SHARED and call.nbytes >= SMALLEST
        if large and self._may_share and self._exchange is None:
            yield from self._open_exchange(started)
        if large and self._exchange is not None:
            yield from _share(self._exchange, call)
            self._issued = number
        elif call.kind not in _MOVES or (call.kind == "barrier" and self._agreement is not None):
            self._issued = number
        elif isinstance(call, CoalescedCall):
            joined = call.join()
            yield from _MOVES[call.kind](self, joined, started)
            call.take(joined)
        else:
            yield from _MOVES[call.kind](self, call, started)

    def _open_exchange(self, started: bool) -> Steps:
        """Map the memory of large collectives, which the first of them needs; where there is none, nobody has it."""
        text, memory = np.zeros(TEXT, np.uint8), None
        if self.rank == 0:
            label, memory = exchange_memory(self.size)
            text[: len(label)] = np.frombuffer(label, np.uint8)
        yield from self._move(started, "Bcast", text, 0, last=False)
        label = text.tobytes().rstrip(b"\0")
        if self.rank:
            memory = open_segment(label)
        mapped = np.zeros(self.size, np.uint8)
        yield from self._move(started, "Allgather", np.array([memory is not None], np.uint8), mapped, last=False)
        if self.rank == 0:
            remove_segment(label)
        self._may_share = bool(mapped.all())
        if memory is not None and self._may_share:
            waits, members = self._waits, self._members
            self._exchange = SharedExchange(memory, self.rank, self.size, lambda: waits.ended_ranks(members))

    def _move(self, started: bool, name: str, *args: Any, last: bool = True) -> Steps:
        """Let MPI move data: in the form that waits where all ranks of the group are here and wait, too."""
        request = self._run(name, getattr(self._comm, f"I{name.lower()}" if started else name), *args)
        self._issued += last
        while request is not None and not self._run(name, request.Test):
            yield self._waits.ended_ranks(self._members)

    def _receive(self, call: Call) -> Steps:
        """Look for the message once the receives before it have theirs; what does not fit is an error here."""
        peer, tag = call.own["from"], call.own["tag"]
        queue = self._asked.setdefault((peer, tag), deque())
        queue.append(call)
        call.own["from"] = self._members[peer]
        status = self._mpi.Status()
        while queue[0] is not call or (found := self._run("recv", self._comm.Improbe, peer, tag, status)) is None:
            yield {self._members[peer]}
        message = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
        request = self._run("recv", found.Irecv, message)
        queue.popleft()
        while not self._run("recv", request.Test):
            yield set()
        sent = message[:TEXT].tobytes().rstrip(b"\0")
        fits = Call("send", call.agreed).text().encode().rstrip(b")")
        if not sent.startswith(fits + b","):
            raise CollectiveMismatch(
                f"message does not fit: rank {self._members[peer]} called {as_text(sent)}; "
                f"rank {self._members[self.rank]} calls {call}"
            )
        _bytes(call.recv)[:] = message[TEXT:]

    def _check_open(self, kind: str) -> None:
        if self._closed:
            raise CommunicatorError(f"{self!r} is closed, so {kind} is impossible")

    def _run(self, kind: str, operation: Callable[..., Any], *args: Any) -> Any:
        try:
            return operation(*args)
        except self._mpi.Exception as cause:
            raise RankFailure(f"{kind} on {self!r}: {cause}") from cause

    def _op(self, call: Call) -> Any:
        return getattr(self._mpi, (_BOOL_OPS if call.send.dtype.kind == "b" else _OPS)[str(call.agreed["op"])])

    def _average(self, call: Call) -> None:
        if call.agreed["op"] == "avg":
            np.divide(call.recv, self.size, out=call.recv)


class _MpiHandle:
    """The handle of an operation over MPI."""

    __slots__ = ("_call", "_operation", "_waits")

    def __init__(self, waits: Waits, call: Call, operation: Operation) -> None:
        self._waits, self._call, self._operation = waits, call, operation

    def done(self) -> bool:
        """See :meth:`argosy_hwadapt.communicator.Handle.done`."""
        if self._operation.missing is not None:
            self._waits.progress.advance()
        return self._operation.missing is None

    def wait(self) -> None:
        """See :meth:`argosy_hwadapt.communicator.Handle.wait`."""
        if self._operation.missing is not None:
            self._waits.wait(lambda: str(self._call), self._missing_ranks)
        if self._operation.error is not None:
            raise self._operation.error

    def _missing_ranks(self) -> set[int] | None:
        self._waits.progress.advance()
        return self._operation.missing


# Each moves the data of one kind of collective. ``c`` is the communicator.


def _all_reduce(c: MpiCommunicator, call: Call, started: bool) -> Steps:
    send, recv = call.send, call.recv
    if accumulator(send.dtype) != send.dtype:
        whole = np.empty((c.size, send.size), send.dtype)
        yield from c._move(started, "Allgather", _bytes(send), _bytes(whole))
        recv[:] = reduce_arrays(list(whole), str(call.agreed["op"]))
        return
    source = c._mpi.IN_PLACE if send is recv else _separate_operand(send, recv)
    yield from c._move(started, "Allreduce", source, recv, c._op(call))
    c._average(call)


def _all_gather(c: MpiCommunicator, call: Call, started: bool) -> Steps:
    yield from c._move(started, "Allgather", _bytes(_separate_operand(call.send, call.recv)), _bytes(call.recv))


def _reduce_scatter(c: MpiCommunicator, call: Call, started: bool) -> Steps:
    send, recv = call.send, call.recv
    if accumulator(send.dtype) != send.dtype:
        received = np.empty_like(send)
        yield from c._move(started, "Alltoall", _bytes(send), _bytes(received))
        recv[:] = reduce_arrays(list(received.reshape(c.size, -1)), str(call.agreed["op"]))
        return
    yield from c._move(started, "Reduce_scatter_block", _separate_operand(send, recv), recv, c._op(call))
    c._average(call)


def _all_to_all(c: MpiCommunicator, call: Call, started: bool) -> Steps:
    send, recv = _separate_operand(call.send, call.recv), call.recv
    if "parts" not in call.agreed:
        yield from c._move(started, "Alltoall", _bytes(send), _bytes(recv))
        return
    mine = np.array([call.own["send_counts"], call.own["recv_counts"]], np.int64)
    counts = np.empty((c.size, 2, c.size), np.int64)
    yield from c._move(started, "Allgather", mine, counts, last=False)
    if (wrong := np.argwhere(counts[:, 0] != counts[:, 1].T)).size:  # every rank comes to the same answer
        source, target = wrong[0]
        c._failure = CollectiveMismatch(
            f"ranks disagree: rank {c._members[source]} sends {counts[source, 0, target]} elements to rank "
            f"{c._members[target]}, which expects {counts[target, 1, source]}; rank {c._members[c.rank]} calls {call}"
        )
        raise c._failure
    sizes = (mine * send.itemsize).tolist()
    yield from c._move(started, "Alltoallv", [_bytes(send), sizes[0]], [_bytes(recv), sizes[1]])


def _broadcast(c: MpiCommunicator, call: Call, started: bool) -> Steps:
    yield from c._move(started, "Bcast", _bytes(call.recv), call.agreed["root"])


def _barrier(c: MpiCommunicator, call: Call, started: bool) -> Steps:
    yield from c._move(started, "Barrier")


_MOVES: dict[str, Callable[[MpiCommunicator, Call, bool], Steps]] = {
    "all_reduce": _all_reduce, "all_gather": _all_gather, "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all, "broadcast": _broadcast, "barrier": _barrier,
}  # fmt: skip


def _share(exchange: SharedExchange, call: Call) -> Steps:
    """Move the data of a collective through shared memory."""
    if call.kind == "all_reduce":
        send = call.send if call.send is call.recv else _separate_operand(call.send, call.recv)
        return exchange.all_reduce(send, call.recv, str(call.agreed["op"]))
    pairs = call.pairs if isinstance(call, CoalescedCall) else [(call.send, call.recv)]
    pairs = [(_operand_beside(call.kind, send, recv), recv) for send, recv in pairs]
    if call.kind == "all_gather":
        return exchange.all_gather(pairs)
    return exchange.reduce_scatter(pairs, str(call.agreed["op"]))


def _operand_beside(kind: str, send: Array, recv: Array) -> Array:
    """Return ``send``, copied where the exchange would write over what it has not read."""
    starts_alike = send.__array_interface__["data"] == recv.__array_interface__["data"]
    return send if kind == "reduce_scatter" and starts_alike else _separate_operand(send, recv)


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _separate_operand(send: Array, recv: Array) -> Array:
    """Return ``send``, copied if it shares memory with ``recv``: MPI forbids operands that overlap."""
    return send.copy() if np.may_share_memory(send, recv) else send


def _import_mpi() -> Any:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as cause:
        raise CommunicatorError(f"MPI is not available ({cause}); pip install 'argosy-hwadapt[mpi]'") from cause
    return MPI
