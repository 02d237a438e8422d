"""Interleaved 1F1B (VPP, Narayanan et al., 2021): each rank has several chunks of the model, each a few layers long."""

from __future__ import annotations

from argosy_autoparallel.pipeline.schedules.order import Order, backward, check_sizes, forward
from argosy_autoparallel.schedule.instructions import Run


def interleaved_one_f_one_b(ranks: int, microbatches: int, chunks: int) -> list[Order]:
    """The order of each rank, which has the stages ``rank + k * ranks``. Microbatches go through in rounds of as many
    as there are ranks, so their number must be divisible by that.
    """
    check_sizes("VPP", ranks, microbatches, multiple_of=ranks)
    return [_order(rank, ranks, microbatches, chunks) for rank in range(ranks)]


def _order(rank: int, ranks: int, microbatches: int, chunks: int) -> Order:
    total = microbatches * chunks
    warmup = min(2 * (ranks - rank - 1) + (chunks - 1) * ranks, total)

    def place(k: int) -> tuple[int, int]:
        """The chunk and microbatch of a rank's k-th pass."""
        rounds, within = divmod(k, ranks * chunks)
        return within // ranks, rounds * ranks + within % ranks

    def ahead(k: int) -> Run:
        chunk, microbatch = place(k)
        return forward(chunk * ranks + rank, microbatch)

    def back(k: int) -> Run:
        chunk, microbatch = place(k)
        return backward((chunks - 1 - chunk) * ranks + rank, microbatch)

    order = [ahead(k) for k in range(warmup)]
    for k in range(warmup, total):
        order += ahead(k), back(k - warmup)
    return order + [back(k) for k in range(total - warmup, total)]
