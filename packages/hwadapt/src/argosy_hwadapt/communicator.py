"""The one collective contract: what ranks can do together, at once or started now and waited for later.

A communicator writes :meth:`BaseCommunicator.start` and a few others; :class:`BaseCommunicator` makes every form of
every operation of them. Operands are C-contiguous numpy arrays on the host, or :class:`DeviceOperand`, of devices for
which the communicator says so. Entry-point group ``argosy.communicators``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from argosy_hwadapt import calls
from argosy_hwadapt.calls import REDUCE_OPS, Array, Call
from argosy_hwadapt.coalesced_call import CoalescedCall
from argosy_hwadapt.device_operand import DeviceOperand

if TYPE_CHECKING:
    from argosy_hwadapt.device import Device

__all__ = [
    "DONE", "PERMUTE_TAG", "REDUCE_OPS", "Array", "BaseCommunicator", "Call", "Communicator", "DeviceOperand", "Handle",
    "accumulator", "reduce_arrays",
]  # fmt: skip

PERMUTE_TAG = 32767
"""The tag of :meth:`Communicator.permute`'s messages, the largest that every MPI has; senders use smaller ones."""

_UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "avg": np.add}
_NARROW_FLOATS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


class Handle(Protocol):
    """An operation that was started. Until it is done its operands belong to it."""

    def done(self) -> bool:
        """Return whether :meth:`wait` would return (or raise) at once; asking moves the operation on."""

    def wait(self) -> None:
        """Return once the operation is done, here. Raises the operation's errors; may be called again."""


class Communicator(Protocol):
    """A group of ranks, seen from one of them.

    Collectives must be called by every rank of the group, in the same order, with operands of equal size and dtype;
    ``send`` and ``recv`` may be the same array where their sizes agree. Each has two forms that ranks may mix: the
    plain one returns when it is done, ``start_...`` returns a handle at once. Calls are compared when they are
    started, in order within the group. Errors: ValueError and TypeError for an operand that is wrong by itself,
    CollectiveMismatch where ranks disagree (if the implementation can tell), RankFailure when a rank of the group is
    gone. After an error the communicator is of no more use.
    """

    rank: int  #: of this process or thread, from 0
    size: int  #: number of ranks
    name: str  #: of the implementation

    def takes_device_buffers(self, device: Device) -> bool:
        """Whether operands may be :class:`DeviceOperand` on ``device``; others are brought to the host by the caller.

        Such an operand is read after the work that the device's current stream has been given, and work given to it
        once :meth:`Handle.wait` has returned sees the result. Arrays on the host are always taken; the operands of one
        operation are all of one kind, on every rank.
        """

    def start(self, call: Call) -> Handle:
        """Start a call made by :mod:`argosy_hwadapt.calls`; all forms come here. Never waits for another rank."""

    def all_reduce(self, send: Array, recv: Array, op: str = "sum") -> None:
        """Combine ``send`` of all ranks elementwise into ``recv``; all ranks get the same bits.

        The order of the additions is the implementation's, so float results of two of them may differ.
        """

    def all_gather(self, send: Array, recv: Array) -> None:
        """Put every rank's ``send`` one after another into ``recv`` (``size`` times as large), everywhere."""

    def reduce_scatter(self, send: Array, recv: Array, op: str = "sum") -> None:
        """Combine ``send`` of all ranks; rank r keeps part r of ``size`` equal parts in ``recv``, which may begin where
        ``send`` does."""

    def start_coalesced(self, call: CoalescedCall) -> Handle:
        """Start several gathers, or several scattered reductions, which cost one comparison and one way to the others;
        done when all are."""

    def all_gather_coalesced(self, sends: Sequence[Array], recvs: Sequence[Array]) -> None:
        """:meth:`all_gather` of several arrays of one dtype, each into its own."""

    def reduce_scatter_coalesced(self, sends: Sequence[Array], recvs: Sequence[Array], op: str = "sum") -> None:
        """:meth:`reduce_scatter` of several arrays of one dtype, each into its own."""

    def all_to_all(
        self, send: Array, recv: Array, send_counts: Sequence[int] | None = None,
        recv_counts: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """Give part r of ``send`` to rank r; ``recv`` holds the parts received, in order of their ranks.

        Parts are equal, or part r has ``send_counts[r]`` elements and ``recv_counts[r]`` come from rank r.
        """

    def broadcast(self, buffer: Array, root: int) -> None:
        """Copy ``buffer`` of rank ``root`` into ``buffer`` of every other rank."""

    def permute(self, send: Array, recv: Array, pairs: Sequence[tuple[int, int]]) -> None:
        """Send ``send`` along ``pairs`` of (source, target); ``recv`` of a rank that is no target gets zeros.

        By messages: ranks that are in no pair need not call.
        """

    def send(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """Send a copy of ``buffer``; never waits for the receiver, so that neighbours may send to
        each other.
        """

    def recv(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """Wait for a message of this tag from ``peer``; messages of one tag arrive in the order
        they were sent, in receives in the order they were started.
        """

    def barrier(self) -> None:
        """Wait until every rank is here."""

    def start_all_reduce(self, send: Array, recv: Array, op: str = "sum") -> Handle:
        """Start :meth:`all_reduce`; the other ``start_`` forms alike."""

    def start_all_gather(self, send: Array, recv: Array) -> Handle: ...
    def start_reduce_scatter(self, send: Array, recv: Array, op: str = "sum") -> Handle: ...
    def start_all_to_all(
        self, send: Array, recv: Array, send_counts: Sequence[int] | None = None,
        recv_counts: Sequence[int] | None = None,
    ) -> Handle: ...  # fmt: skip
    def start_broadcast(self, buffer: Array, root: int) -> Handle: ...
    def start_permute(self, send: Array, recv: Array, pairs: Sequence[tuple[int, int]]) -> Handle: ...
    def start_recv(self, buffer: Array, peer: int, tag: int = 0) -> Handle: ...
    def start_barrier(self) -> Handle: ...

    def split(self, color: int, key: int) -> Communicator | None:
        """Form one new group per ``color``, ordered by (key, rank); a negative colour joins none
        and gets None.
        """

    def abort(self, reason: str) -> None:
        """Make every rank's present and future operations fail with RankFailure."""

    def close(self) -> None:
        """Leave the group; later operations of this object fail."""


class BaseCommunicator:
    """Every form of every operation, made of :meth:`start` and :meth:`send`, which a communicator writes.

    See :class:`Communicator` for what they mean.
    """

    rank: int
    size: int
    name: str

    def takes_device_buffers(self, device: Device) -> bool:
        """See :meth:`Communicator.takes_device_buffers`: none, unless a communicator says otherwise."""
        return False

    def start(self, call: Call) -> Handle:
        """See :meth:`Communicator.start`."""
        raise NotImplementedError

    def send(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.send`."""
        raise NotImplementedError

    def all_reduce(self, send: Array, recv: Array, op: str = "sum") -> None:
        """See :meth:`Communicator.all_reduce`."""
        self._begin(calls.all_reduce(self.size, send, recv, op)).wait()

    def start_all_reduce(self, send: Array, recv: Array, op: str = "sum") -> Handle:
        """See :meth:`Communicator.all_reduce`."""
        return self._begin(calls.all_reduce(self.size, send, recv, op).in_background())

    def all_gather(self, send: Array, recv: Array) -> None:
        """See :meth:`Communicator.all_gather`."""
        self._begin(calls.all_gather(self.size, send, recv)).wait()

    def start_all_gather(self, send: Array, recv: Array) -> Handle:
        """See :meth:`Communicator.all_gather`."""
        return self._begin(calls.all_gather(self.size, send, recv).in_background())

    def reduce_scatter(self, send: Array, recv: Array, op: str = "sum") -> None:
        """See :meth:`Communicator.reduce_scatter`."""
        self._begin(calls.reduce_scatter(self.size, send, recv, op)).wait()

    def start_reduce_scatter(self, send: Array, recv: Array, op: str = "sum") -> Handle:
        """See :meth:`Communicator.reduce_scatter`."""
        return self._begin(calls.reduce_scatter(self.size, send, recv, op).in_background())

    def start_coalesced(self, call: CoalescedCall) -> Handle:
        """See :meth:`Communicator.start_coalesced`: each by itself, unless a communicator does better."""
        return _Handles([self.start(member) for member in call.members()])

    def all_gather_coalesced(self, sends: Sequence[Array], recvs: Sequence[Array]) -> None:
        """See :meth:`Communicator.all_gather_coalesced`."""
        self._begin_coalesced(CoalescedCall("all_gather", self.size, sends, recvs))

    def reduce_scatter_coalesced(self, sends: Sequence[Array], recvs: Sequence[Array], op: str = "sum") -> None:
        """See :meth:`Communicator.reduce_scatter_coalesced`."""
        self._begin_coalesced(CoalescedCall("reduce_scatter", self.size, sends, recvs, op))

    def all_to_all(
        self, send: Array, recv: Array, send_counts: Sequence[int] | None = None,
        recv_counts: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """See :meth:`Communicator.all_to_all`."""
        self._begin(calls.all_to_all(self.size, send, recv, send_counts, recv_counts)).wait()

    def start_all_to_all(
        self, send: Array, recv: Array, send_counts: Sequence[int] | None = None,
        recv_counts: Sequence[int] | None = None,
    ) -> Handle:  # fmt: skip
        """See :meth:`Communicator.all_to_all`."""
        return self._begin(calls.all_to_all(self.size, send, recv, send_counts, recv_counts).in_background())

    def broadcast(self, buffer: Array, root: int) -> None:
        """See :meth:`Communicator.broadcast`."""
        self._begin(calls.broadcast(self.rank, self.size, buffer, root)).wait()

    def start_broadcast(self, buffer: Array, root: int) -> Handle:
        """See :meth:`Communicator.broadcast`."""
        return self._begin(calls.broadcast(self.rank, self.size, buffer, root).in_background())

    def barrier(self) -> None:
        """See :meth:`Communicator.barrier`."""
        self._begin(calls.barrier()).wait()

    def start_barrier(self) -> Handle:
        """See :meth:`Communicator.barrier`."""
        return self._begin(calls.barrier().in_background())

    def recv(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.recv`."""
        self._begin(calls.recv(self.size, buffer, peer, tag)).wait()

    def start_recv(self, buffer: Array, peer: int, tag: int = 0) -> Handle:
        """See :meth:`Communicator.recv`."""
        return self._begin(calls.recv(self.size, buffer, peer, tag).in_background())

    def permute(self, send: Array, recv: Array, pairs: Sequence[tuple[int, int]]) -> None:
        """See :meth:`Communicator.permute`."""
        self.start_permute(send, recv, pairs).wait()

    def start_permute(self, send: Array, recv: Array, pairs: Sequence[tuple[int, int]]) -> Handle:
        """See :meth:`Communicator.permute`."""
        sources = [source for source, target in pairs if target == self.rank]
        calls.check_permute(self.size, send, recv, pairs)
        for source, target in pairs:
            if source == self.rank:
                self.send(send, target, PERMUTE_TAG)
        if sources:
            return self.start_recv(recv, sources[0], PERMUTE_TAG)
        recv.clear() if isinstance(recv, DeviceOperand) else recv.fill(0)
        return DONE

    def _begin(self, call: Call) -> Handle:
        return self.start(calls.check_memory(call, self.takes_device_buffers))

    def _begin_coalesced(self, call: CoalescedCall) -> None:
        for pair in call.pairs:
            calls.check_operands_memory(call.kind, pair, self.takes_device_buffers)
        self.start_coalesced(call).wait()


class _Handles:
    """The handle of several operations."""

    def __init__(self, handles: Sequence[Handle]) -> None:
        self._handles = handles

    def done(self) -> bool:
        """See :meth:`Handle.done`."""
        return all(handle.done() for handle in self._handles)

    def wait(self) -> None:
        """See :meth:`Handle.wait`."""
        for handle in self._handles:
            handle.wait()


class _CompletedHandle:
    def done(self) -> bool:
        """Return True."""
        return True

    def wait(self) -> None:
        """Return at once."""


DONE = _CompletedHandle()
"""The handle of an operation that was done when it was started."""


def reduce_arrays(arrays: list[Array], op: str) -> Array:
    """Combine flat arrays elementwise, in order. Floats narrower than 32 bits are accumulated in float32."""
    if len(arrays) == 1:
        return arrays[0].copy()
    total = np.empty_like(arrays[0])
    reduce_into(total, arrays, op)
    return total


def reduce_into(out: Array, arrays: list[Array], op: str) -> None:
    """:func:`reduce_arrays` of two or more arrays into ``out``, which may be one of the first two."""
    dtype = accumulator(out.dtype)
    total = out if dtype == out.dtype else np.empty(out.shape, dtype)
    first, *rest = arrays
    for array in rest:
        first = _UFUNCS[op](first, array, out=total, dtype=dtype, casting="unsafe")
    if op == "avg":
        total /= len(arrays)
    if total is not out:
        out[:] = total


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which values of ``dtype`` are summed."""
    return np.dtype("float32") if dtype.itemsize <= 2 and dtype.name in _NARROW_FLOATS else dtype
