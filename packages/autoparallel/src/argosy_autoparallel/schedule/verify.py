"""The static check of lists, before anything runs.

It finds messages without a partner or of another shape or dtype, collectives that a group's members start in different
orders, circles of waits, values that are read before they are there or after they were freed, and how much memory the
values take at most. Lists do not depend on data, so what passes runs, unless a piece raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from argosy_autoparallel.schedule.instructions import Ref
from argosy_autoparallel.schedule.lists import InstructionList
from argosy_autoparallel.schedule.machine import Machine
from argosy_autoparallel.schedule.matching import Place

__all__ = ["Peak", "VerificationResult", "verify"]


class Peak(NamedTuple):
    """The most bytes that a rank takes: on the device, where ``resident_bytes`` of its list are throughout, on the
    host, on disk; where those of values on the device are most, and what they are then."""

    device: int
    host: int
    disk: int
    at: Place | None
    values: dict[Ref, int]


class VerificationResult(NamedTuple):
    """What the check knows of lists that passed: the peak of each rank, and the values that are left on each."""

    peaks: tuple[Peak, ...]
    left: tuple[tuple[Ref, ...], ...]


def verify(lists: Sequence[InstructionList]) -> VerificationResult:
    """Check the lists of all ranks, rank by rank in order. Raises :class:`ScheduleError` at the first mismatch, with
    the ranks, the instructions and the user's lines.
    """
    machine = Machine(lists)
    waiting = set(range(len(lists)))
    while waiting:
        moved = False
        for rank in sorted(waiting):
            while not machine.has_ended(rank) and machine.is_ready(rank):
                machine.step(rank)
                moved = True
            if machine.has_ended(rank):
                waiting.discard(rank)
        if waiting and not moved:
            raise machine.deadlock_error()
    machine.finish()
    peaks = tuple(Peak(m.peak["device"], m.peak["host"], m.peak["disk"], m.at, m.values) for m in machine.memory)
    return VerificationResult(peaks, tuple(tuple(values) for values in machine.values))
