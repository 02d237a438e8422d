"""1F1B (PipeDream-Flush, Narayanan et al., 2021) and its eager form: one forward, one backward, after a warm-up."""

from __future__ import annotations

from argosy_autoparallel.pipeline.schedules.order import Order, backward, check_sizes, forward


def one_f_one_b(ranks: int, microbatches: int) -> list[Order]:
    """The order of each rank, which has one stage. Rank r holds the activations of ``ranks - r`` microbatches."""
    check_sizes("1F1B", ranks, microbatches)
    return [_alternate(r, microbatches, ranks - r - 1) for r in range(ranks)]


def eager_one_f_one_b(ranks: int, microbatches: int) -> list[Order]:
    """1F1B with about twice the warm-up, so that messages have the time of a pass to arrive: rank r holds the
    activations of ``2 (ranks - r) - 1`` microbatches.
    """
    check_sizes("Eager1F1B", ranks, microbatches)
    return [_alternate(r, microbatches, 2 * (ranks - r) - 2) for r in range(ranks)]


def _alternate(stage: int, microbatches: int, warmup: int) -> Order:
    warmup = min(warmup, microbatches)
    order = [forward(stage, i) for i in range(warmup)]
    for i in range(warmup, microbatches):
        order += forward(stage, i), backward(stage, i - warmup)
    return order + [backward(stage, i) for i in range(microbatches - warmup, microbatches)]
