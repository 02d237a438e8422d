"""What a collective returns: a handle to wait on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

__all__ = ["Postbox", "Task"]


class Task:
    """An operation that is done when it is returned, whatever ``sync_op`` said; only ``irecv`` is done later."""

    __slots__ = ()

    def wait(self, timeout: object = None) -> bool:
        """Return once the operation is done."""
        return True

    def is_completed(self) -> bool:
        """Whether the operation is done."""
        return True

    def synchronize(self) -> None:
        """Wait, as :meth:`wait` does."""
        self.wait()


class Receipt(Task):
    """A message that was asked for. Asking whether it has come waits for it, so that polling loops end."""

    __slots__ = ("_box", "_receive", "done")

    def __init__(self, box: Postbox, receive: Callable[[], None]) -> None:
        self._box, self._receive, self.done = box, receive, False

    def wait(self, timeout: object = None) -> bool:
        """Receive this message, after those of the same sender that were asked for before."""
        while not self.done:
            self._box.take()
        return True

    def is_completed(self) -> bool:
        """Receive, and return True."""
        return self.wait()

    def receive(self) -> None:
        """Receive now."""
        self._receive()
        self.done = True


class Postbox:
    """Messages asked for from one sender, in order."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[Receipt] = deque()

    def ask(self, receive: Callable[[], None]) -> Receipt:
        """Queue ``receive``, which waits for the message and stores it."""
        receipt = Receipt(self, receive)
        self._waiting.append(receipt)
        return receipt

    def take(self) -> None:
        """Receive the oldest one."""
        self._waiting.popleft().receive()
