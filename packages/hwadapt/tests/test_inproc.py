"""Ranks as threads: collectives move the right data, and every way to hang is an error instead."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy_hwadapt import CollectiveMismatch, CommunicatorError, RankFailure, run_ranks

SIZES = (1, 2, 3, 4)


def values(rank, count=12, dtype="float32"):
    """Different small integers per rank, exact in every dtype."""
    return ((np.arange(count) + 3 * rank) % 7 + 1).astype(dtype)


def test_run_ranks_returns_results_in_rank_order():
    """Each rank knows its place, and results come back in order."""
    assert run_ranks(lambda comm: (comm.rank, comm.size), 3) == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("op", "combine"),
    [("sum", np.sum), ("prod", np.prod), ("max", np.max), ("min", np.min), ("avg", np.mean)],
)
def test_all_reduce_equals_numpy(size, op, combine):
    """Every rank gets the same elementwise reduction."""

    def program(comm):
        recv = np.empty(12, np.float32)
        comm.all_reduce(values(comm.rank), recv, op)
        return recv

    expected = combine(np.stack([values(r) for r in range(size)]), axis=0)
    for result in run_ranks(program, size):
        np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "float16", "float64", "complex64", "uint8"])
def test_all_reduce_in_place(dtype):
    """send and recv may be one array, of any shape and dtype."""

    def program(comm):
        data = values(comm.rank, dtype=dtype).reshape(3, 4)
        comm.all_reduce(data, data)
        return data

    expected = sum(values(r, dtype=dtype) for r in range(3)).reshape(3, 4)
    for result in run_ranks(program, 3):
        np.testing.assert_array_equal(result, expected)


def test_half_precision_sums_are_accumulated_in_single():
    """Adding one to 2048 many times is exact, as it would not be in float16."""

    def program(comm):
        data = np.array([2048.0 if comm.rank == 0 else 1.0], np.float16)
        comm.all_reduce(data, data)
        return float(data[0])

    assert run_ranks(program, 5) == [2052.0] * 5


@pytest.mark.parametrize("size", SIZES)
def test_gather_scatter_and_exchange_are_consistent(size):
    """all_gather concatenates, reduce_scatter is a part of all_reduce, all_to_all transposes."""

    def program(comm):
        mine = values(comm.rank, 2 * size, "int64")
        gathered, part, swapped = np.empty(2 * size * size, "i8"), np.empty(2, "i8"), np.empty(2 * size, "i8")
        comm.all_gather(mine, gathered)
        comm.reduce_scatter(mine, part)
        comm.all_to_all(mine, swapped)
        return gathered.reshape(size, size, 2), part, swapped.reshape(size, 2)

    whole = np.stack([values(r, 2 * size, "int64") for r in range(size)]).reshape(size, size, 2)
    for rank, (gathered, part, swapped) in enumerate(run_ranks(program, size)):
        np.testing.assert_array_equal(gathered, whole)
        np.testing.assert_array_equal(part, whole.sum(0)[rank])
        np.testing.assert_array_equal(swapped, whole[:, rank])


@pytest.mark.parametrize("root", [0, 2])
def test_broadcast_copies_the_root(root):
    """Every rank ends with the root's values; the root's own array may be read-only."""

    def program(comm):
        data = values(comm.rank)
        data.flags.writeable = comm.rank != root
        comm.broadcast(data, root)
        return data

    for result in run_ranks(program, 3):
        np.testing.assert_array_equal(result, values(root))


def test_neighbours_may_send_to_each_other():
    """A send never waits, so a ring exchange works, and messages of a tag keep their order."""

    def program(comm):
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        for i in range(3):
            comm.send(np.array([10 * comm.rank + i]), right, tag=i % 2)
        received = [np.empty(1, int) for _ in range(3)]
        for i in (1, 0, 2):
            comm.recv(received[i], left, tag=i % 2)
        return [int(r[0]) for r in received]

    assert run_ranks(program, 3) == [[20, 21, 22], [0, 1, 2], [10, 11, 12]]


def test_send_copies():
    """The sender may overwrite its buffer at once."""

    def program(comm):
        data = np.array([1.0])
        if comm.rank == 0:
            comm.send(data, 1)
            data[0] = -1
        comm.barrier()
        if comm.rank == 1:
            comm.recv(data, 0)
        return data[0]

    assert run_ranks(program, 2) == [-1, 1]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-3, 3)), min_size=1, max_size=5))
def test_split_forms_groups_by_colour_ordered_by_key(choice):
    """Ranks of a colour form a group, ordered by key then rank, in which collectives work."""

    def program(comm):
        group = comm.split(*choice[comm.rank])
        if group is None:
            return None
        members = np.empty(group.size, int)
        group.all_gather(np.array([comm.rank]), members)
        assert members[group.rank] == comm.rank
        return members.tolist()

    for (color, _), result in zip(choice, run_ranks(program, len(choice)), strict=True):
        members = [r for r in range(len(choice)) if choice[r][0] == color]
        expected = sorted(members, key=lambda r: (choice[r][1], r)) if color >= 0 else None
        assert result == expected


def test_different_collectives_are_named_with_both_lines():
    """Ranks that call different collectives learn who called what, where."""

    def program(comm):
        if comm.rank == 0:
            comm.barrier()
        else:
            comm.all_reduce(np.ones(3), np.ones(3))

    with pytest.raises(CollectiveMismatch, match=r"barrier\(\) at .*test_inproc.py:\d+; .*all_reduce.*inproc.py:\d+"):
        run_ranks(program, 2)


@pytest.mark.parametrize(
    "operands",
    [
        lambda rank: (np.ones(3 + rank), "sum"),
        lambda rank: (np.ones(3, ["f4", "f8"][rank]), "sum"),
        lambda rank: (np.ones(3), ["sum", "max"][rank]),
    ],
    ids=["size", "dtype", "op"],
)
def test_different_operands_are_a_mismatch(operands):
    """Size, dtype and reduction must agree."""

    def program(comm):
        send, op = operands(comm.rank)
        comm.all_reduce(send, send, op)

    with pytest.raises(CollectiveMismatch, match="ranks disagree"):
        run_ranks(program, 2)


def test_message_of_another_size_is_a_mismatch():
    """A receiver's buffer must fit the message."""

    def program(comm):
        if comm.rank == 0:
            comm.send(np.ones(3), 1)
        else:
            comm.recv(np.ones(4), 0)

    with pytest.raises(CollectiveMismatch, match=r"size=3.*size=4"):
        run_ranks(program, 2)


def test_a_dead_rank_fails_the_others_within_a_second():
    """The others get RankFailure at once, and the caller gets the original exception with its rank."""
    failed = []

    def program(comm):
        if comm.rank == 1:
            raise KeyError("lost shard")
        try:
            comm.barrier()
        except RankFailure as error:
            failed.append((comm.rank, str(error)))
            raise

    with pytest.raises(KeyError, match="lost shard") as info:
        run_ranks(program, 3)
    assert info.value.__notes__ == ["(on rank 1 of 3)"]
    assert sorted(rank for rank, _ in failed) == [0, 2]
    assert all("rank 1 failed with KeyError" in message for _, message in failed)


def test_a_rank_that_leaves_early_fails_those_who_need_it():
    """A rank that returns without joining a collective is named."""

    def program(comm):
        if comm.rank == 0:
            comm.all_reduce(np.ones(1), np.ones(1))

    with pytest.raises(RankFailure, match=r"rank 0 waits in all_reduce.*but rank 1 has already finished"):
        run_ranks(program, 2)


def test_waiting_for_each_other_is_detected_at_once():
    """When everybody waits for a message that nobody sent, all lines are named, without a timeout."""

    def program(comm):
        comm.recv(np.ones(1), 1 - comm.rank)

    with pytest.raises(CollectiveMismatch, match=r"every rank waits.*rank 0 waits in recv.*rank 1 waits in recv"):
        run_ranks(program, 2)


def test_collective_against_receive_is_detected_at_once():
    """A rank in a collective and one in a receive wait for each other: a mismatch, not a hang."""

    def program(comm):
        if comm.rank == 0:
            comm.barrier()
        else:
            comm.recv(np.ones(1), 0)

    with pytest.raises(CollectiveMismatch, match=r"rank 0 waits in barrier.*rank 1 waits in recv"):
        run_ranks(program, 2)


def test_timeout_tells_who_computes_and_who_waits():
    """A rank that computes for ever is told apart from those that wait for it."""
    release = threading.Event()

    def program(comm):
        if comm.rank == 0:
            release.wait()
        else:
            comm.barrier()

    with pytest.raises(RankFailure, match=r"after 0.2 s: rank 0 computes; rank 1 waits in barrier"):
        run_ranks(program, 2, timeout=0.2)
    release.set()


def test_abort_reaches_the_others_with_its_reason():
    """A rank may end the group, and the reason arrives."""

    def program(comm):
        if comm.rank == 0:
            comm.abort("loss is not finite")
        else:
            comm.barrier()

    with pytest.raises(RankFailure, match="rank 0 aborted: loss is not finite"):
        run_ranks(program, 2)


def test_closed_communicators_refuse():
    """After close, an operation says so."""

    def program(comm):
        comm.close()
        comm.barrier()

    with pytest.raises(CommunicatorError, match="is closed"):
        run_ranks(program, 1)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda c: c.all_reduce([1.0], np.ones(1)), TypeError, "send must be a numpy array, got list"),
        (lambda c: c.all_reduce(np.ones((4, 4)).T, np.ones((4, 4))), ValueError, "must be C-contiguous"),
        (lambda c: c.all_reduce(np.ones(2), np.ones(2, "f4")), TypeError, "float64, recv has float32"),
        (lambda c: c.all_gather(np.ones(2), np.ones(3)), ValueError, "expected a ratio of 1 to 2"),
        (
            lambda c: c.all_reduce(np.ones(2), np.ones(2), "mean"),
            ValueError,
            "'mean' is unknown; there are sum",
        ),
        (
            lambda c: c.all_reduce(np.ones(2, int), np.ones(2, int), "avg"),
            TypeError,
            "'avg' needs an inexact",
        ),
        (lambda c: c.all_to_all(np.ones(3), np.ones(3)), ValueError, "3 elements do not divide into 2"),
        (lambda c: c.broadcast(np.ones(3), 2), ValueError, "rank 2 is not in a group of 2"),
        (lambda c: c.recv(np.frombuffer(bytes(8)), 0), ValueError, "read-only"),
    ],
)
def test_wrong_operands_are_refused_with_reasons(call, error, message):
    """An operand that is wrong by itself is an ordinary error on its own rank."""
    with pytest.raises(error, match=message):
        run_ranks(call, 2)


def test_thousand_collectives_under_contention():
    """Groups that overlap in time do not mix up their meetings."""

    def program(comm):
        row, column = comm.split(comm.rank // 2, 0), comm.split(comm.rank % 2, 0)
        total = np.zeros(1)
        for i in range(250):
            for group in (row, column, comm, row):
                group.all_reduce(np.full(1, i + comm.rank, float), total)
        return float(total[0])

    assert run_ranks(program, 4) == [499.0, 499.0, 503.0, 503.0]
