"""DualPipeV (DeepSeek-AI, 2025; Sea AI Lab's form of DualPipe, cut in half): forward passes of one chunk in turns with
backward passes of the other.
"""

from __future__ import annotations

from collections import deque

from argosy_autoparallel.pipeline.schedules.order import Order, Stage, check_sizes
from argosy_autoparallel.schedule.instructions import Run


def dual_pipe_v(ranks: int, microbatches: int) -> list[Order]:
    """Two stages for each rank, ``rank`` and ``2 ranks - 1 - rank``. A whole backward pass is the two halves in turn;
    where ranks would wait, weights' gradients come later. Needs two microbatches for each rank, and holds the
    activations of as many and one.
    """
    check_sizes("DualPipeV", ranks, microbatches, at_least=2 * ranks)
    return [_Rank(rank, ranks).order(microbatches) for rank in range(ranks)]


class _Rank:
    """What one rank has done. ``later`` are the weights' gradients that were put off, the earliest first."""

    def __init__(self, rank: int, ranks: int) -> None:
        self.rank, self.others = rank, ranks - rank - 1
        self.down, self.up = Stage(rank), Stage(2 * ranks - 1 - rank)
        self.later: deque[Run] = deque()
        self.made: Order = []

    def order(self, microbatches: int) -> Order:
        """The eight phases of the published implementation, whose numbers of rounds these are."""
        rank, others, made = self.rank, self.others, self.made
        made += [self.down.forward() for _ in range(2 * others)]
        for _ in range(rank + 1):
            made += self.down.forward(), self.up.forward()
        for _ in range(others):
            self._back(self.up, put_off=True)
            self._weight()
            made.append(self.up.forward())
        for _ in range(microbatches - 2 * (rank + others + 1) + rank + 1):
            made.append(self.down.forward())
            self._back(self.up)
            made.append(self.up.forward())
            self._back(self.down)
        for _ in range(others):
            self._back(self.up)
            made.append(self.up.forward())
            self._back(self.down)
        self._backward_phase()
        for _ in range(others):
            self._weight()
            self._back(self.down, put_off=True)
        while self.later:
            self._weight()
        return made

    def _backward_phase(self) -> None:
        """Backward passes alone; the second half of them puts the weights' gradients off."""
        rounds = self.rank + 1
        for i in range(rounds):
            self._back(self.up, put_off=i >= (rounds + 1) // 2)
            self._back(self.down, put_off=i >= rounds // 2)

    def _back(self, stage: Stage, put_off: bool = False) -> None:
        self.made.append(stage.input())
        self.later.append(stage.weight())
        if not put_off:
            self.made.append(self.later.pop())

    def _weight(self) -> None:
        self.made.append(self.later.popleft())
