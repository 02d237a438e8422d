"""ZB-H1 and ZB-V (Qi et al., 2024): weight gradients are computed where ranks would wait."""

from __future__ import annotations

from argosy_autoparallel.pipeline.schedules.one_f_one_b import one_f_one_b
from argosy_autoparallel.pipeline.schedules.order import (
    Order,
    Stage,
    backward_input,
    backward_weight,
    check_sizes,
)


def zb_h1(ranks: int, microbatches: int) -> list[Order]:
    """1F1B with its backward pass in two; on rank r the weights' part comes r microbatches later. Every rank holds the
    activations of as many microbatches as there are ranks.
    """
    check_sizes("ZB-H1", ranks, microbatches)
    return [
        _delay_weight_gradients(order, rank, microbatches)
        for rank, order in enumerate(one_f_one_b(ranks, microbatches))
    ]


def _delay_weight_gradients(order: Order, rank: int, microbatches: int) -> Order:
    made: Order = []
    for run in order:
        if run.piece == "forward":
            made.append(run)
            continue
        made.append(backward_input(rank, run.microbatch))
        if run.microbatch >= rank:
            made.append(backward_weight(rank, run.microbatch - rank))
    return made + [backward_weight(rank, i) for i in range(max(0, microbatches - rank), microbatches)]


def zb_v(ranks: int, microbatches: int) -> list[Order]:
    """Two stages for each rank, ``rank`` and ``2 ranks - 1 - rank``, so that the last rank turns round by itself.
    Without bubbles where all passes take equal time; holds as many activations as 1F1B does on its first rank.
    """
    check_sizes("ZB-V", ranks, microbatches)
    return [_v(rank, ranks, microbatches) for rank in range(ranks)]


def _v(rank: int, ranks: int, microbatches: int) -> Order:
    """The order for as many microbatches as it has a steady phase for, without those that are too many."""
    count = max(2 * ranks - 1, microbatches)
    down, up = Stage(rank), Stage(2 * ranks - 1 - rank)
    order: Order = []
    order += [down.forward() for _ in range(2 * (ranks - rank) - 1)]
    for _ in range(rank):
        order += up.forward(), down.forward()
    for _ in range(ranks - rank):
        order += up.forward(), up.input(), up.weight()
    while up.forwards < down.forwards or down.forwards < count:
        if down.forwards < count:
            order.append(down.forward())
        order += down.input(), down.weight()
        order += up.forward(), up.input(), up.weight()
    for _ in range(rank):
        order += down.input(), up.input()
    for _ in range(ranks - rank):
        order += down.input(), down.weight()
    order += [stage.weight() for stage in (up, down) for _ in range(stage.inputs - stage.weights)]
    return [run for run in order if run.microbatch < microbatches]
