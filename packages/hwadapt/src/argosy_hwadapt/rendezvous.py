"""How threads of one process meet: who waits for what, who has left, and why nobody could go on.

All waiting is on one condition of a :class:`World`, so that a group in which everybody waits is noticed at
once instead of by a timeout.
"""

import sys
import threading
from collections.abc import Callable, Hashable
from typing import Any

from argosy_hwadapt.errors import CollectiveMismatch, RankFailure


class Call:
    """One rank's part in an operation: what it asked for, its operands and the line that asked."""

    __slots__ = ("agreed", "kind", "operands", "private", "site")

    def __init__(self, kind: str, agreed: dict[str, Hashable], operands: tuple[Any, ...], private: Any = None):
        self.kind = kind
        self.agreed = agreed  # must be equal on all ranks of the group
        self.operands = operands
        self.private = private  # may differ
        self.site = call_site()

    def __str__(self) -> str:
        details = ", ".join(f"{name}={value}" for name, value in self.agreed.items())
        return f"{self.kind}({details}) at {self.site}"


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


class Meeting:
    """One collective of one group: the calls that have arrived, and how it ended."""

    def __init__(self, ranks: tuple[int, ...]) -> None:
        self.ranks = ranks
        self.calls: dict[int, Call] = {}
        self.done = False
        self.error: CollectiveMismatch | None = None

    @property
    def complete(self) -> bool:
        """Whether every rank has arrived."""
        return len(self.calls) == len(self.ranks)

    def missing(self) -> set[int]:
        """Return the ranks that have not arrived."""
        return set(self.ranks) - self.calls.keys()

    def in_order(self) -> list[Call]:
        """Return the calls in the order of the group's ranks."""
        return [self.calls[rank] for rank in self.ranks]

    def mismatch(self) -> CollectiveMismatch | None:
        """Return an error naming two calls that do not belong together, if there are any."""
        first = self.calls[self.ranks[0]]
        for rank in self.ranks[1:]:
            other = self.calls[rank]
            if (other.kind, other.agreed) != (first.kind, first.agreed):
                return CollectiveMismatch(
                    f"ranks disagree: rank {self.ranks[0]} calls {first}; rank {rank} calls {other}"
                )
        return None


def call_site() -> str:
    """Return file and line of the innermost frame outside argosy's packages: the user's line, if there is one."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _is_ours(module: str) -> bool:
    top = module.partition(".")[0]
    return top == "argosy" or top.startswith("argosy_")
