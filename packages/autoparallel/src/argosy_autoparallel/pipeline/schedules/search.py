"""A search for schedules without bubbles in a given memory, after Qi et al. (2024): passes are chosen in order of time
by rules that some numbers vary; the order that takes the least time is taken.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from argosy_autoparallel.pipeline.schedules.order import (
    Order,
    backward_input,
    backward_weight,
    check_sizes,
    forward,
)
from argosy_autoparallel.schedule.lists import ScheduleError
from argosy_tensorcore.wait_notice import announce_wait

__all__ = ["Durations", "search_zero_bubble"]


class Durations(NamedTuple):
    """Seconds of the passes of a stage and of a message; only their ratios matter."""

    forward: float = 1.0
    backward_input: float = 1.0
    backward_weight: float = 1.0
    message: float = 0.0


class _Rules(NamedTuple):
    """``ahead``: how many more passes than 1F1B's warm-up come before the first backward pass. ``patience``: which
    part of a weight pass a rank waits for something that is on its way, before it runs one instead."""

    ahead: int
    patience: float


@announce_wait("searching the order of a pipeline")
def search_zero_bubble(
    ranks: int, microbatches: int, times: float = 1.0, chunks: int = 1, durations: Durations | None = None
) -> list[Order]:
    """The best order found in which no rank holds the activations of more than ``times`` of ``ranks`` microbatches,
    1F1B's on its first rank. With two ``chunks`` rank r has the stages ``r`` and ``2 ranks - 1 - r``.

    Raises :class:`ScheduleError` for other numbers of chunks, and for a limit below that of 1F1B.
    """
    check_sizes("search for zero bubble", ranks, microbatches)
    if chunks not in (1, 2) or times < 1:
        raise ScheduleError(
            f"search for zero bubble: takes 1 or 2 chunks and a limit of at least 1, got {chunks} and {times}"
        )
    limit = int(times * ranks) * chunks
    tries = (_Search(ranks, microbatches, chunks, limit, durations or Durations(), rules) for rules in _variants(limit))
    return min((one.run() for one in tries), key=lambda found: found[0])[1]


def _variants(limit: int) -> Iterator[_Rules]:
    aheads = sorted({0, 1, limit // 4, limit // 2, limit})
    return (_Rules(*numbers) for numbers in product(aheads, (0.0, 0.5, 1.0)))


class _Search:
    """One try. A pass is ready when what it reads has arrived; ``arrivals[rank][chunk]`` are the times of that by
    microbatch, of forward passes and of backward ones."""

    def __init__(
        self, ranks: int, microbatches: int, chunks: int, limit: int, durations: Durations, rules: _Rules
    ) -> None:  # fmt: skip
        self.ranks, self.microbatches, self.chunks, self.limit = ranks, microbatches, chunks, limit
        self.durations, self.rules = durations, rules
        self.members = [_Rank(rank, self) for rank in range(ranks)]
        self.queue: list[tuple[float, int]] = [(0.0, rank) for rank in range(ranks)]
        for microbatch in range(microbatches):
            self.members[0].forwards[0].append((0.0, microbatch))

    def run(self) -> tuple[tuple[float, float], list[Order]]:
        """The time of the whole and the longest of a rank, and the orders."""
        while self.queue:
            now, rank = heapq.heappop(self.queue)
            self.members[rank].act(now)
        if any(member.left for member in self.members):
            return (float("inf"), 0.0), []
        whole = max(member.free for member in self.members)
        longest = max(member.free - member.begin for member in self.members)
        return (round(whole, 9), longest), [member.order for member in self.members]

    def rank_of(self, stage: int) -> tuple[int, int]:
        """The rank and chunk that have a stage."""
        return (stage, 0) if stage < self.ranks else (2 * self.ranks - 1 - stage, 1)

    def deliver(self, piece: str, stage: int, microbatch: int, source: int, at: float) -> None:
        """What a pass gives arrives at the rank of the next stage, or of the one before."""
        last = self.ranks * self.chunks - 1
        if piece == "forward":
            backward, to = stage == last, min(stage + 1, last)
        elif stage == 0:
            return
        else:
            backward, to = True, stage - 1
        rank, chunk = self.rank_of(to)
        arrival = at + (0.0 if rank == source else self.durations.message)
        member = self.members[rank]
        (member.backwards if backward else member.forwards)[chunk].append((arrival, microbatch))
        if rank != source:
            heapq.heappush(self.queue, (arrival, rank))


class _Rank:
    def __init__(self, rank: int, search: _Search) -> None:
        self.rank, self.search = rank, search
        self.stages = [rank, 2 * search.ranks - 1 - rank][: search.chunks]
        self.forwards: list[list[tuple[float, int]]] = [[] for _ in self.stages]
        self.backwards: list[list[tuple[float, int]]] = [[] for _ in self.stages]
        self.done = {"forward": [0] * search.chunks, "backward": [0] * search.chunks}
        self.weights: list[tuple[int, int]] = []
        self.weighed = 0
        self.left = 3 * search.microbatches * search.chunks
        self.held = 0
        self.free = self.begin = 0.0
        self.order: Order = []
        warmup = search.ranks - rank if search.chunks == 1 else 2 * (search.ranks - rank) - 1
        self.warmup = warmup + search.rules.ahead
        self.turn = "backward"

    def act(self, now: float) -> None:
        """Run the pass that the rules choose, if this rank is free and one is ready."""
        if self.free > now or not self.left:
            return
        chosen = self._choose(now)
        if chosen is None:
            return
        piece, chunk = chosen
        getattr(self, f"_{piece}")(chunk, now)
        self.left -= 1
        heapq.heappush(self.search.queue, (self.free, self.rank))

    def _choose(self, now: float) -> tuple[str, int] | None:
        ready = self._ready_chunk(self._next_arrivals("backward"), now)
        ahead = self._ready_chunk(self._next_arrivals("forward"), now)
        if ready is not None and (ahead is None or self.turn == "backward" or self._is_full()):
            return "backward", ready
        if ahead is not None and self._may_go_ahead(ahead):
            return "forward", ahead
        if ready is not None:
            return "backward", ready
        if self.weighed == len(self.weights):
            return None
        durations = self.search.durations
        wait = min(
            (t for t, _ in [*self._next_arrivals("backward"), *self._next_arrivals("forward", self._is_full())]),
            default=now + 1e18,
        )
        if ahead is None and now < wait < now + durations.backward_weight * self.search.rules.patience:
            return None
        return "weight", self.weights[self.weighed][0]

    def _next_arrivals(self, kind: str, none: bool = False) -> list[tuple[float, int]]:
        """When each chunk's next pass is ready, as far as that is known, and the chunk: the later one first."""
        arrivals = self.forwards if kind == "forward" else self.backwards
        done = self.done[kind]
        chunks = () if none else range(len(self.stages) - 1, -1, -1)
        return [(arrivals[c][done[c]][0], c) for c in chunks if done[c] < len(arrivals[c])]

    @staticmethod
    def _ready_chunk(known: list[tuple[float, int]], now: float) -> int | None:
        return next((chunk for at, chunk in known if at <= now), None)

    def _is_full(self) -> bool:
        return self.held >= self.search.limit

    def _may_go_ahead(self, chunk: int) -> bool:
        """Whether memory is left, of which the last chunk may use all: what went ahead must come back; and before the
        first backward pass, whether the warm-up is over."""
        spare = self.search.chunks - 1 - chunk
        if self.held + spare >= self.search.limit:
            return False
        return chunk > 0 or any(self.done["backward"]) or self.done["forward"][0] < self.warmup

    def _forward(self, chunk: int, now: float) -> None:
        microbatch = self._take("forward", chunk, now)
        self.held += 1
        if len(self.order) == 0:
            self.begin = now
        self.order.append(forward(self.stages[chunk], microbatch))
        self.free = now + self.search.durations.forward
        self.turn = "backward"
        self.search.deliver("forward", self.stages[chunk], microbatch, self.rank, self.free)

    def _backward(self, chunk: int, now: float) -> None:
        microbatch = self._take("backward", chunk, now)
        self.weights.append((chunk, microbatch))
        self.order.append(backward_input(self.stages[chunk], microbatch))
        self.free = now + self.search.durations.backward_input
        self.turn = "forward"
        self.search.deliver("backward", self.stages[chunk], microbatch, self.rank, self.free)

    def _weight(self, chunk: int, now: float) -> None:
        microbatch = self.weights[self.weighed][1]
        self.weighed += 1
        self.held -= 1
        self.order.append(backward_weight(self.stages[chunk], microbatch))
        self.free = now + self.search.durations.backward_weight

    def _take(self, kind: str, chunk: int, now: float) -> int:
        arrivals = self.forwards if kind == "forward" else self.backwards
        at = self.done[kind][chunk]
        self.done[kind][chunk] += 1
        return arrivals[chunk][at][1]
