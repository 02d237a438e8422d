"""Ranks as threads of one process: the communicator that tests, notebooks and simulations run on.

Real data moves, and because all ranks are in sight, mistakes that hang other communicators are named at
once: ranks that call different collectives, ranks that left or died, groups in which everybody waits.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from argosy_hwadapt import calls
from argosy_hwadapt.calls import Array, Call
from argosy_hwadapt.communicator import BaseCommunicator, reduce_arrays
from argosy_hwadapt.errors import CollectiveMismatch, CommunicatorError, RankFailure
from argosy_hwadapt.rendezvous import PendingCollective, PendingMessage, Wait, World, disagreement

T = TypeVar("T")


class _Group:
    """Some ranks of a world: their meetings by number, and the letters they send each other."""

    def __init__(self, world: World, ranks: tuple[int, ...]) -> None:
        self.world, self.ranks = world, ranks
        self.meetings: dict[int, PendingCollective] = {}
        self.sent: defaultdict[tuple[int, int, int], deque[PendingMessage]] = defaultdict(deque)
        self.asked: defaultdict[tuple[int, int, int], deque[PendingMessage]] = defaultdict(deque)


class InprocCommunicator(BaseCommunicator):
    """A group of threads, seen from one of them. Implements
    :class:`argosy_hwadapt.communicator.Communicator`.

    Starting never waits, so one thread may also be several ranks.
    """

    name = "inproc"

    def __init__(self, group: _Group, rank: int) -> None:
        self.rank, self.size = rank, len(group.ranks)
        self._group, self._world = group, group.world
        self._me = group.ranks[rank]
        self._count = 0
        self._closed = False

    def __repr__(self) -> str:
        return f"InprocCommunicator(rank {self.rank} of {self.size})"

    def start(self, call: Call) -> _InprocHandle:
        """See :meth:`Communicator.start`. The last rank to arrive moves the data."""
        return _InprocHandle(self._world, self._me, call, self._ask(call) if call.kind == "recv" else self._meet(call))

    def send(self, buffer: Array, peer: int, tag: int = 0) -> None:
        """See :meth:`Communicator.send`."""
        call = calls.check_memory(calls.send(self.size, buffer, peer, tag), self.takes_device_buffers)
        route = self.rank, peer, tag
        with self._world.condition:
            self._check_usable(call)
            waiting = self._group.asked[route]
            letter = waiting.popleft() if waiting else PendingMessage(self._me)
            letter.sent = call
            if letter.asked is not None:
                letter.deliver(self._group.ranks[peer])
            else:
                call.send = call.send.copy()
                self._group.sent[route].append(letter)
            self._world.progress()

    def split(self, color: int, key: int) -> InprocCommunicator | None:
        """See :meth:`Communicator.split`."""
        call = Call("split", own={"color": color, "key": key})
        self.start(call).wait()
        group = call.own["group"]
        return None if group is None else InprocCommunicator(group, group.ranks.index(self._me))

    def abort(self, reason: str) -> None:
        """See :meth:`Communicator.abort`."""
        with self._world.condition:
            self._world.fail(RankFailure(f"rank {self.rank} aborted: {reason}"))

    def close(self) -> None:
        """See :meth:`Communicator.close`."""
        self._closed = True

    def _ask(self, call: Call) -> PendingMessage:
        route = call.own["from"], self.rank, call.own["tag"]
        with self._world.condition:
            self._check_usable(call)
            arrived = self._group.sent[route]
            letter = arrived.popleft() if arrived else PendingMessage(self._group.ranks[call.own["from"]])
            letter.asked = call
            if letter.sent is not None:
                letter.deliver(self._me)
            else:
                self._group.asked[route].append(letter)
        return letter

    def _meet(self, call: Call) -> PendingCollective:
        with self._world.condition:
            self._check_usable(call)
            self._count += 1
            meeting = self._group.meetings.setdefault(self._count, PendingCollective(self._group.ranks))
            meeting.join(self._me, call)
            last = meeting.complete
            if last:
                del self._group.meetings[self._count]
            if meeting.error is not None:
                self._world.progress()
        if last and meeting.error is None:
            self._conclude(meeting)
        return meeting

    def _conclude(self, meeting: PendingCollective) -> None:
        try:
            if meeting.calls[self._me].kind == "split":
                self._split_groups(meeting.in_order())
            else:
                _MOVES[meeting.calls[self._me].kind](meeting.in_order())
        except _MismatchedCalls as unlike:
            ranks = [meeting.ranks[place] for place in unlike.args]
            meeting.error = disagreement({rank: meeting.calls[rank] for rank in ranks})
        with self._world.condition:
            meeting.done = True
            self._world.progress()

    def _split_groups(self, calls: list[Call]) -> None:
        members: dict[int, list[tuple[int, int]]] = {}
        for rank, call in enumerate(calls):
            members.setdefault(call.own["color"], []).append((call.own["key"], rank))
        for color, keyed in members.items():
            group = _Group(self._world, tuple(self._group.ranks[rank] for _, rank in sorted(keyed)))
            for _, rank in keyed:
                calls[rank].own["group"] = group if color >= 0 else None

    def _check_usable(self, call: Call) -> None:
        if self._closed:
            raise CommunicatorError(f"{self!r} is closed, so {call} is impossible")
        self._world.check()


class _InprocHandle:
    """The handle of one rank's part in a meeting, or of a letter that it asked for."""

    __slots__ = ("_call", "_event", "_rank", "_world")

    def __init__(self, world: World, rank: int, call: Call, event: PendingCollective | PendingMessage) -> None:
        self._world, self._rank, self._call, self._event = world, rank, call, event

    def done(self) -> bool:
        """See :meth:`argosy_hwadapt.communicator.Handle.done`."""
        return self._event.done or self._world.failure is not None

    def wait(self) -> None:
        """See :meth:`argosy_hwadapt.communicator.Handle.wait`."""
        event = self._event
        if not event.done:
            with self._world.condition:
                self._world.wait(self._rank, Wait(self._call, lambda: event.done, event.missing_ranks))
        if event.error is not None:
            raise CollectiveMismatch(str(event.error))


# Each takes the calls in rank order. Operands may alias, so results are complete before any is written.


def _all_reduce(calls: list[Call]) -> None:
    total = reduce_arrays([call.send for call in calls], str(calls[0].agreed["op"]))
    for call in calls:
        call.recv[:] = total


def _all_gather(calls: list[Call]) -> None:
    whole = np.concatenate([call.send for call in calls])
    for call in calls:
        call.recv[:] = whole


def _reduce_scatter(calls: list[Call]) -> None:
    total = reduce_arrays([call.send for call in calls], str(calls[0].agreed["op"]))
    for call, part in zip(calls, total.reshape(len(calls), -1), strict=True):
        call.recv[:] = part


def _all_to_all(calls: list[Call]) -> None:
    if "parts" in calls[0].agreed:
        _check_counts(calls)
        parts = [np.split(call.send, np.cumsum(call.own["send_counts"])[:-1]) for call in calls]
    else:
        parts = [list(call.send.reshape(len(calls), -1)) for call in calls]
    arrived = [np.concatenate([mine[rank] for mine in parts]) for rank in range(len(calls))]
    for call, whole in zip(calls, arrived, strict=True):
        call.recv[:] = whole


def _check_counts(calls: list[Call]) -> None:
    for source, sender in enumerate(calls):
        for target, receiver in enumerate(calls):
            if sender.own["send_counts"][target] != receiver.own["recv_counts"][source]:
                raise _MismatchedCalls(source, target)


class _MismatchedCalls(Exception):
    """Two members whose calls do not belong together."""


def _broadcast(calls: list[Call]) -> None:
    root = calls[int(calls[0].agreed["root"])]  # type: ignore[call-overload]
    for call in calls:
        if call is not root:
            call.recv[:] = root.send


_MOVES: dict[str, Callable[[list[Call]], None]] = {
    "all_reduce": _all_reduce, "all_gather": _all_gather, "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all, "broadcast": _broadcast, "barrier": lambda calls: None,
}  # fmt: skip


# Running ranks.


def run_ranks(fn: Callable[[InprocCommunicator], T], size: int, timeout: float = 60) -> list[T]:
    """Run ``fn(communicator)`` as ``size`` ranks, one thread each, and return their results in rank order.

    If a rank raises, the others fail with RankFailure at their next (or present) communication, and its
    exception is raised here with a note that tells the rank. Raises RankFailure when ranks have not
    finished after ``timeout`` seconds, naming where they are; their threads are left behind as daemons.
    """
    if size < 1:
        raise ValueError(f"run_ranks needs at least one rank, got {size}")
    members = communicators(size)
    world = members[0]._world
    ranks = [_RankThread(fn, member, world) for member in members]
    for thread in ranks:
        thread.start()
    _join(ranks, world, timeout)
    _raise_first([thread.error for thread in ranks])
    return [thread.result for thread in ranks]


def communicators(size: int) -> list[InprocCommunicator]:
    """Return the communicators of ``size`` ranks, in their order, for a thread each or all for one thread.

    One thread for all must start operations, and wait only for those that are done.
    """
    group = _Group(World(size), tuple(range(size)))
    return [InprocCommunicator(group, rank) for rank in range(size)]


def subgroup(members: Sequence[InprocCommunicator], ranks: Sequence[int]) -> list[InprocCommunicator]:
    """Return the communicators of a group of ``ranks``, in that order, of :func:`communicators`."""
    world = members[0]
    group = _Group(world._world, tuple(world._group.ranks[rank] for rank in ranks))
    return [InprocCommunicator(group, place) for place in range(len(group.ranks))]


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
