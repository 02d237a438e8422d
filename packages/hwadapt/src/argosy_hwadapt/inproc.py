"""Ranks as threads of one process: the communicator that tests, notebooks and simulations run on.

Real data moves, and because all ranks are in sight, mistakes that hang other communicators are named at
once: ranks that call different collectives, ranks that left or died, groups in which everybody waits.
"""

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from argosy_hwadapt.communicator import (
    Array,
    check_array,
    check_op,
    check_pair,
    check_peer,
    check_writable,
    reduce_arrays,
)
from argosy_hwadapt.errors import CollectiveMismatch, CommunicatorError, RankFailure
from argosy_hwadapt.rendezvous import Call, Meeting, Wait, World

T = TypeVar("T")


class _Group:
    """Some ranks of a world: the meeting they gather at next, and the letters they sent each other."""

    def __init__(self, world: World, ranks: tuple[int, ...]) -> None:
        self.world, self.ranks = world, ranks
        self.meeting = Meeting(ranks)
        self.letters: defaultdict[tuple[int, int, int], deque[tuple[Call, Array]]] = defaultdict(deque)


class InprocCommunicator:
    """A group of threads, seen from one of them. Implements
    :class:`argosy_hwadapt.communicator.Communicator`.
    """

    name = "inproc"

    def __init__(self, group: _Group, rank: int) -> None:
        self.rank, self.size = rank, len(group.ranks)
        self._group, self._world = group, group.world
        self._closed = False

    def __repr__(self) -> str:
        return f"InprocCommunicator(rank {self.rank} of {self.size})"

    # Collectives: check one's own operands, then meet the others.

    def all_reduce(self, send: Array, recv: Array, op: str = "sum") -> None:
        """See :meth:`Communicator.all_reduce`."""
        check_pair("all_reduce", send, recv, 1, 1)
        check_op("all_reduce", op, send.dtype)
        self._meet(_data_call("all_reduce", send, recv, op=op), _all_reduce)

    def all_gather(self, send: Array, recv: Array) -> None:
        """See :meth:`Communicator.all_gather`."""
        check_pair("all_gather", send, recv, 1, self.size)
        self._meet(_data_call("all_gather", send, recv), _all_gather)

    def reduce_scatter(self, send: Array, recv: Array, op: str = "sum") -> None:
        """See :meth:`Communicator.reduce_scatter`."""
        check_pair("reduce_scatter", send, recv, self.size, 1)
        check_op("reduce_scatter", op, send.dtype)
        self._meet(_data_call("reduce_scatter", send, recv, op=op), _reduce_scatter)

    def all_to_all(self, send: Array, recv: Array) -> None:
        """See :meth:`Communicator.all_to_all`."""
        check_pair("all_to_all", send, recv, 1, 1)
        if send.size % self.size:
            raise ValueError(f"all_to_all: {send.size} elements do not divide into {self.size} equal parts")
        self._meet(_data_call("all_to_all", send, recv), _all_to_all)

    def broadcast(self, buffer: Array, root: int) -> None:
        """See :meth:`Communicator.broadcast`."""
        check_array("broadcast: buffer", buffer)
        check_peer("broadcast", root, self.size)
        if self.rank != root:
            check_writable("broadcast", buffer)
        self._meet(_data_call("broadcast", buffer, buffer, root=root), _broadcast)

    def barrier(self) -> None:
        """See :meth:`Communicator.barrier`."""
        self._meet(Call("barrier", {}, ()), lambda calls: None)

    def split(self, color: int, key: int) -> "InprocCommunicator | None":
        """See :meth:`Communicator.split`."""
        outcome: list[_Group | None] = [None]
        self._meet(Call("split", {}, (), (color, key, outcome)), self._split_groups)
        group = outcome[0]
        if group is None:
            return None
        return InprocCommunicator(group, group.ranks.index(self._group.ranks[self.rank]))

    # Point to point.

    def send(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.send`."""
        check_array("send: buffer", buffer)
        check_peer("send", peer, self.size)
        call = Call("send", {"dtype": str(buffer.dtype), "size": buffer.size, "to": peer, "tag": tag}, ())
        with self._world.condition:
            self._check_usable(call)
            self._group.letters[self.rank, peer, tag].append((call, buffer.copy()))
            self._world.progress()

    def recv(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.recv`."""
        check_array("recv: buffer", buffer)
        check_writable("recv", buffer)
        check_peer("recv", peer, self.size)
        call = Call("recv", {"dtype": str(buffer.dtype), "size": buffer.size, "from": peer, "tag": tag}, ())
        letters = self._group.letters[peer, self.rank, tag]
        sender = {self._group.ranks[peer]}
        with self._world.condition:
            self._check_usable(call)
            self._world.wait(self._group.ranks[self.rank], Wait(call, lambda: bool(letters), lambda: sender))
            sent, message = letters.popleft()
        if (message.dtype, message.size) != (buffer.dtype, buffer.size):
            raise CollectiveMismatch(f"message does not fit: rank {peer} called {sent}; this rank calls {call}")
        buffer.reshape(-1)[:] = message.reshape(-1)

    # Life.

    def abort(self, reason: str) -> None:
        """See :meth:`Communicator.abort`."""
        with self._world.condition:
            self._world.fail(RankFailure(f"rank {self.rank} aborted: {reason}"))

    def close(self) -> None:
        """See :meth:`Communicator.close`."""
        self._closed = True

    # The meeting.

    def _meet(self, call: Call, finish: Callable[[list[Call]], None]) -> None:
        """Wait for all ranks; the last one to arrive moves the data, outside the lock."""
        with self._world.condition:
            self._check_usable(call)
            meeting = self._group.meeting
            meeting.calls[self._group.ranks[self.rank]] = call
            if meeting.complete:
                self._group.meeting = Meeting(self._group.ranks)
            else:
                wait = Wait(call, lambda: meeting.done, meeting.missing)
                self._world.wait(self._group.ranks[self.rank], wait)
        if not meeting.done:
            self._conclude(meeting, finish)
        if meeting.error is not None:
            raise CollectiveMismatch(str(meeting.error))

    def _conclude(self, meeting: Meeting, finish: Callable[[list[Call]], None]) -> None:
        meeting.error = meeting.mismatch()
        if meeting.error is None:
            finish(meeting.in_order())
        with self._world.condition:
            meeting.done = True
            self._world.progress()

    def _split_groups(self, calls: list[Call]) -> None:
        members: dict[int, list[tuple[int, int]]] = {}
        for rank, call in enumerate(calls):
            color, key, _ = call.private
            members.setdefault(color, []).append((key, rank))
        for color, keyed in members.items():
            group = _Group(self._world, tuple(self._group.ranks[rank] for _, rank in sorted(keyed)))
            for _, rank in keyed:
                calls[rank].private[2][0] = group if color >= 0 else None

    def _check_usable(self, call: Call) -> None:
        if self._closed:
            raise CommunicatorError(f"{self!r} is closed, so {call} is impossible")
        self._world.check()


def _data_call(kind: str, send: Array, recv: Array, **agreed: Any) -> Call:
    return Call(kind, {"dtype": str(send.dtype), "size": send.size, **agreed}, (send.reshape(-1), recv.reshape(-1)))


# Each takes the calls in rank order. Operands may alias, so results are complete before any is written.


def _all_reduce(calls: list[Call]) -> None:
    total = reduce_arrays([call.operands[0] for call in calls], str(calls[0].agreed["op"]))
    for call in calls:
        call.operands[1][:] = total


def _all_gather(calls: list[Call]) -> None:
    whole = np.concatenate([call.operands[0] for call in calls])
    for call in calls:
        call.operands[1][:] = whole


def _reduce_scatter(calls: list[Call]) -> None:
    total = reduce_arrays([call.operands[0] for call in calls], str(calls[0].agreed["op"]))
    for call, part in zip(calls, total.reshape(len(calls), -1), strict=True):
        call.operands[1][:] = part


def _all_to_all(calls: list[Call]) -> None:
    parts = np.stack([call.operands[0].reshape(len(calls), -1) for call in calls])
    for rank, call in enumerate(calls):
        call.operands[1][:] = parts[:, rank].reshape(-1)


def _broadcast(calls: list[Call]) -> None:
    root = calls[int(calls[0].agreed["root"])]  # type: ignore[call-overload]
    for call in calls:
        if call is not root:
            call.operands[1][:] = root.operands[0]


# Running ranks.


def run_ranks(fn: Callable[[InprocCommunicator], T], size: int, timeout: float = 60) -> list[T]:
    """Run ``fn(communicator)`` as ``size`` ranks, one thread each, and return their results in rank order.

    If a rank raises, the others fail with RankFailure at their next (or present) communication, and its
    exception is raised here with a note that tells the rank. Raises RankFailure when ranks have not
    finished after ``timeout`` seconds, naming where they are; their threads are left behind as daemons.
    """
    if size < 1:
        raise ValueError(f"run_ranks needs at least one rank, got {size}")
    world = World(size)
    group = _Group(world, tuple(range(size)))
    ranks = [_RankThread(fn, InprocCommunicator(group, rank), world) for rank in range(size)]
    for thread in ranks:
        thread.start()
    _join(ranks, world, timeout)
    _raise_first([thread.error for thread in ranks])
    return [thread.result for thread in ranks]


class _RankThread(threading.Thread):
    """One rank: keeps what the function returned or raised, and tells the world when it ends."""

    def __init__(self, fn: Callable[[InprocCommunicator], Any], communicator: InprocCommunicator, world: World):
        super().__init__(name=f"rank-{communicator.rank}", daemon=True)
        self._fn, self._communicator, self._world = fn, communicator, world
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        rank = self._communicator.rank
        try:
            self.result = self._fn(self._communicator)
        except BaseException as error:  # noqa: BLE001 - kept, and raised again by run_ranks
            self.error = error
        with self._world.condition:
            if self.error is not None:
                self._world.fail(_as_failure(rank, self.error))
            self._world.leave(rank)


def _as_failure(rank: int, error: BaseException) -> Exception:
    if isinstance(error, CommunicatorError):
        return error
    failure = RankFailure(f"rank {rank} failed with {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure


def _join(ranks: list[_RankThread], world: World, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    for thread in ranks:
        thread.join(max(0.0, deadline - time.monotonic()))
    late = [rank for rank, thread in enumerate(ranks) if thread.is_alive()]
    if late:
        with world.condition:
            busy = ", ".join(f"rank {rank} computes" for rank in late if rank not in world.waiting)
            waits = world.describe_waits()
            failure = RankFailure(f"not finished after {timeout:g} s: {'; '.join(filter(None, (busy, waits)))}")
            world.fail(failure)
        raise failure


def _raise_first(errors: list[BaseException | None]) -> None:
    """Raise the error that started it: of a rank's own making rather than one that followed from it."""
    failed = [(rank, error) for rank, error in enumerate(errors) if error is not None]
    own = [(rank, error) for rank, error in failed if not isinstance(error, RankFailure)]
    for rank, error in own or failed:
        error.add_note(f"(on rank {rank} of {len(errors)})")
        raise error
