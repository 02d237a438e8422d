"""FThenB (GPipe, Huang et al., 2019): all forward passes, then all backward passes."""

from __future__ import annotations

from argosy_autoparallel.pipeline.schedules.order import Order, backward, check_sizes, forward


def f_then_b(ranks: int, microbatches: int) -> list[Order]:
    """The order of each rank, which has one stage. Every rank holds the activations of all microbatches."""
    check_sizes("FThenB", ranks, microbatches)
    every = range(microbatches)
    return [[*(forward(r, i) for i in every), *(backward(r, i) for i in every)] for r in range(ranks)]
