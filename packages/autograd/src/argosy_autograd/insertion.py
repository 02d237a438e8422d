"""Emitting operations at a place, and taking back those that turn out unused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from argosy_phi_ops.context import context, emit_at
from argosy_pir import PURE, Builder, Operation, Value, has_trait

__all__ = ["Insertion", "erase_unused", "insertion"]


class Insertion:
    """The operations emitted at a builder since this object was made."""

    def __init__(self, builder: Builder) -> None:
        self.block = builder.block
        self.end: Operation | None = builder._before
        self.start = self.end.previous if self.end is not None else self.block.last

    def operations(self) -> list[Operation]:
        """They, in order."""
        found = []
        op = self.block.first if self.start is None else self.start.next
        while op is not None and op is not self.end:
            found.append(op)
            op = op.next
        return found

    def erase_dead(self, keep: Iterable[Value | None]) -> None:
        """Remove those without effects whose results nobody uses and that are not in ``keep``."""
        erase_unused(self.operations(), keep)


def erase_unused(operations: Iterable[Operation], keep: Iterable[Value | None] = ()) -> None:
    """Remove those of ``operations`` (in program order) without effects whose results nobody uses and ``keep``
    lacks."""
    kept = set(keep)
    for op in reversed(list(operations)):
        used = any(result.has_uses or result in kept for result in op.results)
        if not used and has_trait(op, PURE):
            op.erase()


@contextmanager
def insertion(builder: Builder) -> Iterator[Insertion]:
    """Let primitives emit at ``builder`` within the block; each operation gets the ambient location of its time."""
    inserted = Insertion(builder)
    ambient = context()
    location = ambient.location
    with emit_at(builder, location):
        yield inserted
