"""Which process waits for which, on a board that all of them see, so that a wait without end is an error.

A rank that waits longer than a moment publishes its call and whom it waits for, and looks at the others. It gives up
when it waits, directly or through others, for a rank that has ended, or for itself. What it sees may be a moment old,
so a verdict needs two looks: between them every rank of the circle was in one and the same wait and has asked again
whether it may go on. Computing ranks are never suspected, however long they take.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from argosy_hwadapt.board import Board
from argosy_hwadapt.errors import CollectiveMismatch, CommunicatorError, RankFailure
from argosy_hwadapt.outbox import Outbox
from argosy_hwadapt.progress import Progress

_SPINS = 200
_LOOK = 0.15
"""Seconds between two looks at the others."""
_BEATS = 5
"""How often each rank must have asked again between two looks: enough for MPI to deliver what is on its way."""
_LONGEST_PAUSE = 0.002
"""Seconds between two questions, at most; a quarter of it where each rank has a core."""
_GROWTH, _GROWTH_ALONE = 1.5, 1.05
"""Of the time between two questions; where each rank has a core, what comes is noticed within a twentieth of the time
that it took."""
_ROW = 2048
_ENDED = -1
_VERDICTS: dict[int, type[CommunicatorError]] = {-2: CollectiveMismatch, -3: RankFailure}
"""The state of a rank that has given up, and its error."""


class Waits:
    """All ranks' present waits, seen from ``rank``. Ranks are numbered as in the communicator of all.

    ``memory`` (zeroed, of :meth:`nbytes`) is shared by all; None where ranks run on several machines: then nobody
    looks at anybody, and a wait ends only when what it waits for comes. ``outbox`` and ``progress``,
    what this rank has sent and started, move on while it waits.
    """

    def __init__(self, memory: Any, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.outbox = Outbox()
        self.progress = Progress()
        self._turn = 0
        alone = size <= (os.cpu_count() or 1)
        self._longest = _LONGEST_PAUSE / 4 if alone else _LONGEST_PAUSE
        self._growth = _GROWTH_ALONE if alone else _GROWTH
        self._board: Board | None = None
        if memory is not None:
            self._board = Board(memory, size, _ROW)
            after = size * _ROW
            self._beats = np.ndarray(size, np.int64, memory, after)
            self._states = np.ndarray(size, np.int64, memory, after + size * 8)
            self._needs = np.ndarray((size, size), np.uint8, memory, after + size * 16)

    @staticmethod
    def nbytes(size: int) -> int:
        """Return the bytes that ``size`` ranks need."""
        return size * (_ROW + 16 + size)

    def wait(self, describe: Callable[[], str], missing: Callable[[], set[int] | None]) -> None:
        """Return once ``missing()``, the ranks that something is expected from, is None; it may be empty before.

        ``describe()`` is the call, for the others' messages. Raises RankFailure when a rank that this one needs has
        ended, CollectiveMismatch when ranks wait for each other in a circle.
        """
        for _ in range(_SPINS):
            if missing() is None:
                return
            time.sleep(0)
        self._begin(describe())
        try:
            self._watch(missing)
        finally:
            self._end()

    def leave(self, how: str) -> None:
        """Say that this rank will communicate no more: ``has ended its program``. A rank that gave up has said so."""
        if self._board is not None and self._states[self.rank] not in _VERDICTS:
            self._publish(_ENDED, how)

    def ended_ranks(self, ranks: Sequence[int]) -> set[int]:
        """Return those of ``ranks`` that communicate no more."""
        return set() if self._board is None else {rank for rank in ranks if self._states[rank] < 0}

    def _watch(self, missing: Callable[[], set[int] | None]) -> None:
        pause, before, look = 2e-5, None, time.monotonic() + _LOOK
        while (needed := missing()) is not None:
            self.progress.run_locked(self.outbox.receivers)
            self._beat(needed)
            if self._board is not None and time.monotonic() > look:
                before = self._look(before)
                look = time.monotonic() + _LOOK
            time.sleep(pause if needed else 0)
            pause = min(pause * self._growth, self._longest)

    # Odd states are waits, even ones are computation, negative ones the end. A new number is a new wait.

    def _begin(self, call: str) -> None:
        self._turn += 2
        self._publish(self._turn - 1, call)

    def _end(self) -> None:
        if self._board is not None and self._states[self.rank] >= 0:
            self._states[self.rank] = self._turn

    def _publish(self, state: int, text: str) -> None:
        if self._board is not None:
            self._needs[self.rank] = 0
            self._board.write(self.rank, state, text.encode())
            self._states[self.rank] = state

    def _beat(self, needed: set[int]) -> None:
        if self._board is not None:
            row = self._needs[self.rank]
            for rank in np.flatnonzero(row):
                if rank not in needed:
                    row[rank] = 0
            row[list(needed)] = 1
            self._beats[self.rank] += 1

    def _look(self, before: tuple[Any, Any] | None) -> tuple[Any, Any]:
        """Return what is seen now; raises when it and ``before`` show that this wait will never end."""
        states, beats = self._states.copy(), self._beats.copy()
        stuck = _find_deadlock(states, self._needs.copy())
        if before is None or self.rank not in stuck:
            return states, beats
        asked_again = (states < 0) | (beats >= before[1] + _BEATS)
        involved = list(stuck)
        if not ((states == before[0]) & asked_again)[involved].all():
            return before if (states == before[0])[involved].all() else (states, beats)
        failure = self._verdict(stuck, states)
        self._publish(next(state for state, kind in _VERDICTS.items() if type(failure) is kind), str(failure))
        raise failure

    def _verdict(self, stuck: set[int], states: Any) -> CommunicatorError:
        texts = {}
        for rank in sorted(stuck):
            state, texts[rank] = self._final_state(rank, int(states[rank]))
            if state in _VERDICTS:
                return _VERDICTS[state](texts[rank])
        waits = "; ".join(f"rank {rank} waits in {text}" for rank, text in texts.items() if states[rank] >= 0)
        ended = ", ".join(f"rank {rank} {text}" for rank, text in texts.items() if states[rank] == _ENDED)
        if ended:
            return RankFailure(f"{waits}; but {ended}")
        return CollectiveMismatch(f"ranks wait for each other: {waits}")

    def _final_state(self, rank: int, seen: int) -> tuple[int, str]:
        """Return the state and the text of a rank that cannot go on: those ``seen``, or the verdict it found since."""
        assert self._board is not None
        for _ in range(1000):  # its row may be in the middle of its change; killed there, it is never whole again
            for state in (seen, *_VERDICTS):
                if (text := self._board.read(rank, state)) is not None:
                    return state, text.decode(errors="replace")
            time.sleep(0.001)
        return seen, "(no longer known)"


def _find_deadlock(states: Any, needs: Any) -> set[int]:
    """Return the ranks that cannot go on, and those ended ranks that they need.

    A waiting rank is free if all that it needs are: start from the computing ranks and add until nothing changes.
    """
    free = {rank for rank, state in enumerate(states) if state >= 0 and state % 2 == 0}
    waiting = {rank for rank, state in enumerate(states) if state >= 0 and state % 2}
    while more := {rank for rank in waiting if all(int(other) in free for other in np.flatnonzero(needs[rank]))}:
        free |= more
        waiting -= more
    ended = {int(rank) for waiter in waiting for rank in np.flatnonzero(needs[waiter]) if states[rank] < 0}
    return waiting | ended
