"""How threads of one process meet: who waits for what, who has left, and why nobody could go on.

All waiting is on one condition of a :class:`World`, so that a group in which everybody waits is noticed at
once instead of by a timeout.
"""

import threading
from collections.abc import Callable

from argosy_hwadapt.calls import Call
from argosy_hwadapt.errors import CollectiveMismatch, RankFailure


class Wait:
    """A rank that waits: in which call, until when, and for whom."""

    __slots__ = ("call", "done", "needs")

    def __init__(self, call: Call, done: Callable[[], bool], needs: Callable[[], set[int]]) -> None:
        self.call, self.done, self.needs = call, done, needs


class World:
    """What all ranks share. Methods are called with ``condition`` held."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.condition = threading.Condition()
        self.failure: Exception | None = None
        self.left: set[int] = set()
        self.waiting: dict[int, Wait] = {}

    def check(self) -> None:
        """Raise if a failure of any rank has made the world useless."""
        if isinstance(self.failure, CollectiveMismatch):
            raise CollectiveMismatch(str(self.failure)) from self.failure
        if self.failure is not None:
            raise RankFailure(str(self.failure)) from self.failure

    def wait(self, rank: int, wait: Wait) -> None:
        """Sleep until the wait is done. Raises RankFailure or CollectiveMismatch when it never will be."""
        if wait.done():
            return
        self.waiting[rank] = wait
        self.detect_deadlock()
        try:
            while not wait.done():
                self.check()
                self._check_presence(rank, wait)
                self.condition.wait()
        finally:
            self.waiting.pop(rank, None)

    def progress(self) -> None:
        """Wake the ranks whose wait is done; they count as running from now on."""
        for rank in [rank for rank, wait in self.waiting.items() if wait.done()]:
            del self.waiting[rank]
        self.condition.notify_all()

    def fail(self, failure: Exception) -> None:
        """Record the first failure and wake everybody."""
        if self.failure is None:
            self.failure = failure
        self.condition.notify_all()

    def leave(self, rank: int) -> None:
        """Note that a rank has finished; whoever needs it later fails."""
        self.left.add(rank)
        self.detect_deadlock()
        self.condition.notify_all()

    def detect_deadlock(self) -> None:
        """Fail when every rank that has not left waits, and none of them for one that has left."""
        everyone_waits = bool(self.waiting) and len(self.waiting) + len(self.left) >= self.size
        if not everyone_waits or any(wait.needs() & self.left for wait in self.waiting.values()):
            return
        self.fail(CollectiveMismatch(f"every rank waits for another one. {self.describe_waits()}"))

    def describe_waits(self) -> str:
        """Say which rank waits where."""
        return "; ".join(f"rank {rank} waits in {wait.call}" for rank, wait in sorted(self.waiting.items()))

    def _check_presence(self, rank: int, wait: Wait) -> None:
        gone = wait.needs() & self.left
        if gone:
            raise RankFailure(f"rank {rank} waits in {wait.call}, but rank {min(gone)} has already finished")


class PendingCollective:
    """One collective of one group: the calls that have arrived, and how it ended."""

    def __init__(self, ranks: tuple[int, ...]) -> None:
        self.ranks = ranks
        self.calls: dict[int, Call] = {}
        self.done = False
        self.error: Exception | None = None

    @property
    def complete(self) -> bool:
        """Whether every rank has arrived."""
        return len(self.calls) == len(self.ranks)

    def missing_ranks(self) -> set[int]:
        """Return the ranks that have not arrived."""
        return set(self.ranks) - self.calls.keys()

    def in_order(self) -> list[Call]:
        """Return the calls in the order of the group's ranks."""
        return [self.calls[rank] for rank in self.ranks]

    def join(self, rank: int, call: Call) -> None:
        """Add a rank's call; one that does not belong to those that are here ends the meeting with an error."""
        first_rank, first = next(iter(self.calls.items()), (rank, call))
        self.calls[rank] = call
        if self.error is None and (first.kind, first.agreed) != (call.kind, call.agreed):
            self.error, self.done = disagreement({first_rank: first, rank: call}), True


class PendingMessage:
    """A message on its way: asked for, sent, or both."""

    def __init__(self, sender: int) -> None:
        self.sender = sender
        self.sent: Call | None = None
        self.asked: Call | None = None
        self.done = False
        self.error: Exception | None = None

    def missing_ranks(self) -> set[int]:
        """Return the sender while it has not sent."""
        return {self.sender} if self.sent is None else set()

    def deliver(self, receiver: int) -> None:
        """Copy what was sent to where it was asked for, or note that it does not fit."""
        sent, asked = self.sent, self.asked
        assert sent is not None
        assert asked is not None
        if sent.agreed != asked.agreed:
            self.error = CollectiveMismatch(
                f"message does not fit: rank {self.sender} called {sent}; rank {receiver} calls {asked}"
            )
        else:
            asked.recv[:] = sent.send
        self.done = True


def disagreement(calls: dict[int, Call]) -> CollectiveMismatch:
    """Return the error that names ranks whose calls do not belong together."""
    parts = "; ".join(f"rank {rank} calls {call}" for rank, call in sorted(calls.items()))
    return CollectiveMismatch(f"ranks disagree: {parts}")
