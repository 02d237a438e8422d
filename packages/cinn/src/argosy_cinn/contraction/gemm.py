"""Matrix products in kernels: how many chunks there are, and what one chunk computes.

    chunks = grid(b, problem)                   # in the caller
    emit(b, problem, chunk, chunks)             # in the kernel that runs chunk after chunk

Skinny products have a plan of their own (`skinny`), and so have convolutions by minimal filtering (`winograd`); others
are blocked (`blocking`) into chunks of C (`nest`)
made of register tiles (`stage`, `tile`).
"""

from __future__ import annotations

from dataclasses import replace

from argosy_cinn.contraction.blocking import Blocking, choose
from argosy_cinn.contraction.nest import Nest
from argosy_cinn.contraction.orientation import turn_product
from argosy_cinn.contraction.problem import Contraction
from argosy_cinn.contraction.skinny import emit_skinny, skinny_grid
from argosy_cinn.contraction.skinny_blocking import plan_skinny
from argosy_cinn.contraction.winograd.blocking import plan_winograd
from argosy_cinn.contraction.winograd.chunk import emit_winograd, winograd_grid
from argosy_cinn.contraction.winograd.weights import (
    emit_winograd_weights,
    plan_winograd_weights,
    winograd_weights_grid,
)
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import Index, Value
from argosy_cinn.runtime.workers import thread_count

#: Chunks for a balanced load.
_CHUNKS_PER_THREAD = 4
#: Rows for which packing a block of B is worth a thread's while, and for which it does not show.
_WORTH_PACKING, _NO_PACKING_SEEN = 128, 512
#: Rows whose products take as long as packing what they are multiplied with.
_PACKING = 17
#: Operations of a chunk that outweigh handing it to another thread (about five microseconds).
_WORTH_WAKING = 1_000_000


def grid(b: Function, problem: Contraction, blocking: Blocking | None = None) -> Index:
    """The number of chunks: batch elements x column blocks x row blocks.

    There are more row blocks for more threads. That moves no element between chains of sums, so it changes
    no bit.
    """
    if blocking is None and (skinny := plan_skinny(problem, b.module.target)) is not None:
        return skinny_grid(b, problem, skinny)
    if blocking is None and (plan := plan_winograd(problem, b.module.target)) is not None:
        return winograd_grid(b, problem, plan)
    if blocking is None and (weights := plan_winograd_weights(problem, b.module.target)) is not None:
        return winograd_weights_grid(b, problem, weights)
    blocking = blocking or choose(problem, b.module.target)
    problem = turn_product(problem) if blocking.turned else problem
    others = b.ceil_div(problem.n, blocking.columns)
    for size in problem.batch:
        others = b.mul(others, size)
    fewest = b.ceil_div(problem.m, blocking.rows)
    if isinstance(problem.m, int) and problem.m <= _fewest_rows(problem, blocking):
        return b.mul(others, fewest)
    return b.mul(others, b.maximum(_row_blocks(b, problem, blocking, b.maximum(others, 1)), fewest))


def _row_blocks(b: Function, problem: Contraction, blocking: Blocking, others: Index) -> Index:
    """Row blocks for as many threads as there are, beside ``others`` that share the work. One thread has nothing to
    balance; several get few blocks, for each of which B is packed again, or many, whichever should be done first.
    """
    threads, most = thread_count(b), b.maximum(b.ceil_div(problem.m, _fewest_rows(problem, blocking)), 1)
    many = b.maximum(b.minimum(b.div(b.mul(threads, _CHUNKS_PER_THREAD), others), most), 1)
    chosen = many
    if blocking.packs_b:
        one_each = b.minimum(b.div(b.sub(b.add(threads, others), 1), others), most)
        few = b.maximum(b.minimum(many, b.div(problem.m, _NO_PACKING_SEEN)), one_each)
        rounds = [_rounds(b, problem, b.mul(others, blocks), threads, blocks) for blocks in (few, many)]
        chosen = b.select(b.icmp("slt", rounds[1], rounds[0]), many, few)
    return b.select(b.icmp("eq", threads, 1), 1, chosen)


def _rounds(b: Function, problem: Contraction, chunks: Index, threads: Value, blocks: Index) -> Index:
    """Rows that the busiest thread multiplies, packing counted as some."""
    each = b.div(b.sub(b.add(chunks, threads), 1), threads)
    return b.mul(each, b.add(b.div(problem.m, blocks), _PACKING))


def _fewest_rows(problem: Contraction, blocking: Blocking) -> int:
    """The least rows of a chunk: it must be worth a thread's while, and worth packing B for."""
    least = _WORTH_PACKING if blocking.packs_b else 2 * blocking.tile_rows
    if isinstance(problem.k, int):
        least = max(least, _WORTH_WAKING // (2 * blocking.columns * max(problem.k, 1)))
    return least


def emit(b: Function, problem: Contraction, chunk: Value, chunks: Value, blocking: Blocking | None = None) -> None:
    """Emit the code of one chunk into a kernel; ``chunks`` is their number, as `grid` gave it."""
    if problem.location:
        b.comment(problem.location)
    if blocking is None and (skinny := plan_skinny(problem, b.module.target)) is not None:
        alike = skinny.dots and skinny.few_rows
        for one in (problem,) if alike else (replace(problem, siblings=()), *problem.siblings):
            emit_skinny(b, one, skinny, chunk)
        return
    if blocking is None and (plan := plan_winograd(problem, b.module.target)) is not None:
        emit_winograd(b, problem, plan, chunk, chunks)
        return
    if blocking is None and (weights := plan_winograd_weights(problem, b.module.target)) is not None:
        emit_winograd_weights(b, problem, weights, chunk, chunks)
        return
    for one in (problem, *problem.siblings):
        Nest(b, one, blocking or choose(one, b.module.target)).emit(chunk, chunks)
