"""Collectives through shared memory, all ranks in one thread, in any order: what one rank sees of another is tested by
`test_mpi`."""

import errno
import itertools
import mmap
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy_hwadapt import board, exchange
from argosy_hwadapt.communicator import reduce_arrays

LINES = 3 * 64


def _exchanges(size, depth):
    memory = mmap.mmap(-1, (LINES + depth * exchange._ROW) * size)
    made = [exchange.SharedExchange(memory, rank, size, set) for rank in range(size)]
    for each in made:
        each._spins = 1
    return made


def _run(steps, order):
    """Step one rank or another until all are done."""
    pending = dict(enumerate(steps))
    while pending:
        rank = list(pending)[next(order) % len(pending)]
        if next(pending[rank], "done") == "done":
            del pending[rank]


@settings(deadline=None, max_examples=25)
@given(
    st.integers(2, 4), st.integers(2, 4), st.sampled_from(["float32", "float16", "int64"]), st.integers(0, 2**32),
    st.lists(st.tuples(st.sampled_from(["all_reduce", "in place", "reduce_scatter", "all_gather", "several gathered",
                                           "several scattered in place"]),
                       st.integers(1, 90_000)), min_size=1, max_size=4),
)  # fmt: skip
def test_ranks_in_any_order_have_the_bits_of_arrays_in_order(size, depth, dtype, seed, called):
    """Pieces use the few places of the memory again and again, within a call and after it."""
    random = np.random.default_rng(seed)
    ranks, order = _exchanges(size, depth), iter(lambda: int(random.integers(size)), None)
    for kind, count in called:
        whole = [(random.random(size * count) * 8 - 4).astype(dtype) for _ in range(size)]
        total, given = reduce_arrays(whole, "sum"), [x.copy() for x in whole]
        if kind == "all_gather":
            made = [np.empty(size * size * count, dtype) for _ in ranks]
            _run([r.all_gather([(x, y)]) for r, x, y in zip(ranks, given, made, strict=True)], order)
            expected = [np.concatenate(whole)] * size
        elif kind == "several gathered":
            cut = size * (count // 2)
            made = [np.empty(size * size * count, dtype) for _ in ranks]
            pairs = [[(x[:cut], y[: size * cut]), (x[cut:], y[size * cut :])] for x, y in zip(given, made, strict=True)]
            _run([r.all_gather(p) for r, p in zip(ranks, pairs, strict=True)], order)
            expected = [np.concatenate([x[:cut] for x in whole] + [x[cut:] for x in whole])] * size
        elif kind == "reduce_scatter":
            made = [np.empty(count, dtype) for _ in ranks]
            _run([r.reduce_scatter([(x, y)], "sum") for r, x, y in zip(ranks, given, made, strict=True)], order)
            expected = np.split(total, size)
        elif kind == "several scattered in place":
            operands = [[x, x[::-1].copy()] for x in given]
            pairs = [[(x, x[:count]) for x in xs] for xs in operands]
            _run([r.reduce_scatter(p, "sum") for r, p in zip(ranks, pairs, strict=True)], order)
            made = [np.concatenate([y for _, y in p]) for p in pairs]
            parts = zip(np.split(total, size), np.split(total[::-1], size), strict=True)
            expected = [np.concatenate(p) for p in parts]
        else:
            made = given if kind == "in place" else [np.empty_like(x) for x in whole]
            _run([r.all_reduce(x, y, "sum") for r, x, y in zip(ranks, given, made, strict=True)], order)
            expected = [total] * size
        for x, y in zip(made, expected, strict=True):
            assert x.tobytes() == y.tobytes()


def test_what_is_faster_writes_to_the_slots(monkeypatch):
    """Each way is tried in every collective that uses a slot again; the next one takes what was faster, by a clock that
    writes alone move."""
    slow, used, clock = [0], [], [0.0]
    monkeypatch.setattr(exchange, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def copy(way):
        def run(target, source):
            used.append(way)
            clock[0] += 1.0 if way in slow else 0.1
            np.copyto(target, source)

        return run

    ranks, ways = _exchanges(2, 2), []
    for each in ranks:
        each._copies = copy(0), copy(1)
    for slow[0] in (0, 0, 1, 1, 1, 1, 1, 1):
        used.clear()
        given = [np.ones(5 * exchange._ROW // 4, np.float32) for _ in ranks]
        _run([r.all_reduce(x, x, "sum") for r, x in zip(ranks, given, strict=True)], itertools.count())
        assert {*used} == {0, 1}
        assert (given[0] == 2).all()
        ways.append(used[0])
    assert (ways[:3], ways[-1]) == ([0, 1, 1], 0)


@pytest.mark.parametrize(("available", "is_there"), [(1 << 40, True), (1 << 20, False)])
def test_the_memory_is_what_the_machine_has(available, is_there, monkeypatch):

    def reserve(descriptor, nbytes):
        if nbytes > available:
            raise OSError(errno.ENOSPC, "no space left")
        original(descriptor, nbytes)

    original = board._reserve
    monkeypatch.setattr(board, "_reserve", reserve)
    label, memory = exchange.exchange_memory(2)
    try:
        assert (memory is not None) == is_there
        if memory is not None:
            other = board.open_segment(label)
            other[5] = 7
            assert memory[5] == 7
    finally:
        board.remove_segment(label)
    assert board.open_segment(label) is None
    assert board.open_segment(b"another machine\n" + label.split(b"\n")[1]) is None
