"""The operation whose communication is going on, for those who count what is communicated."""

from __future__ import annotations

from argosy_phi_ops.context import RankState
from argosy_pir.core import Operation

__all__ = ["RUNNING", "running_operation"]


def _nothing() -> Operation | None:
    return None


RUNNING: RankState[Operation | None] = RankState("argosy.running", _nothing)


def running_operation() -> Operation | None:
    """The operation of a program that makes the call this rank's communicator is given; None where none does."""
    return RUNNING.value
