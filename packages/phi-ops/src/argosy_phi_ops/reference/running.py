"""The operation whose communication is going on, for those who count what is communicated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from argosy_phi_ops.context import RankState
from argosy_pir.core import Operation

__all__ = ["RUNNING", "running", "running_operation"]


def _nothing() -> Operation | None:
    return None


RUNNING: RankState[Operation | None] = RankState("argosy.running", _nothing)


@contextmanager
def running(op: Operation) -> Iterator[None]:
    """Let ``op`` be the one whose communication is going on, for the length of a block."""
    RUNNING.value = op
    try:
        yield
    finally:
        RUNNING.value = None


def running_operation() -> Operation | None:
    """The operation of a program that makes the call this rank's communicator is given; None where none does."""
    return RUNNING.value
