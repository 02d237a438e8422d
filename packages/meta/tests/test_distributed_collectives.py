"""The collectives of ``argosy.distributed`` on ranks of one process, against what each must give."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy.distributed.debug import run_ranks
from argosy_hwadapt import CollectiveMismatch, RankFailure


def _mine(*shape):
    """A tensor whose values tell the rank."""
    return paddle.full(list(shape), float(dist.get_rank() + 1))


@pytest.mark.parametrize(
    ("op", "expected"),
    [(dist.ReduceOp.SUM, 6), (dist.ReduceOp.PROD, 6), (dist.ReduceOp.MAX, 3), (dist.ReduceOp.MIN, 1), (4, 2)],
)
def test_all_reduce_combines_in_place_everywhere(op, expected):
    """All five reductions give every rank the combined value in the tensor itself."""

    def program():
        x = _mine(2, 3)
        task = dist.all_reduce(x, op)
        assert task.wait()
        assert task.is_completed()
        return x.numpy()

    for result in run_ranks(program, 3):
        np.testing.assert_array_equal(result, np.full((2, 3), expected))


def test_reduce_and_broadcast_follow_their_roots():
    """reduce changes the tensor of dst alone; broadcast copies that of src to all."""

    def program():
        x, y = _mine(2), _mine(2)
        dist.reduce(x, dst=1)
        dist.broadcast(y, src=2)
        return x.numpy()[0], y.numpy()[0]

    assert run_ranks(program, 3) == [(1, 3), (6, 3), (3, 3)]


def test_all_gather_appends_or_fills():
    """An empty list gets new tensors; a list of tensors is filled in place."""

    def program():
        made, given = [], [paddle.zeros([2]) for _ in range(3)]
        dist.all_gather(made, _mine(2))
        dist.all_gather(given, _mine(2))
        return [t.numpy()[0] for t in made], [t.numpy()[0] for t in given]

    assert run_ranks(program, 3) == [([1, 2, 3], [1, 2, 3])] * 3


def test_gather_scatter_and_reduce_scatter():
    """gather collects at dst, scatter deals out from src, reduce_scatter gives each rank its position's sum."""

    def program():
        collected, dealt, part = [], paddle.zeros([2]), paddle.zeros([2])
        dist.gather(_mine(2), collected if dist.get_rank() == 1 else None, dst=1)
        parts = [paddle.full([2], 10.0 * i) for i in range(3)] if dist.get_rank() == 2 else None
        dist.scatter(dealt, parts, src=2)
        dist.reduce_scatter(part, [_mine(2) * i for i in range(3)])
        return [t.numpy()[0] for t in collected], dealt.numpy()[0], part.numpy()[0]

    assert run_ranks(program, 3) == [([], 0, 0), ([1, 2, 3], 10, 6), ([], 20, 12)]


def test_alltoall_transposes_ranks_and_positions():
    """What rank r gives at position s is what rank s gets at position r; alltoall_single does so with uneven parts."""

    def program():
        rank, out = dist.get_rank(), []
        dist.alltoall(out, [paddle.to_tensor([rank, s]) for s in range(2)])
        sizes = [1, 2]  # to rank 0, to rank 1
        single = paddle.zeros([2 * sizes[rank]])
        dist.alltoall_single(single, paddle.arange(3.0) + 10 * rank, sizes, [sizes[rank]] * 2)
        return [t.tolist() for t in out], single.tolist()

    assert run_ranks(program, 2) == [([[0, 0], [1, 0]], [0, 10]), ([[0, 1], [1, 1]], [1, 2, 11, 12])]


def test_messages_keep_their_order_and_tasks_wait():
    """Several irecv from one sender get the messages in the order of asking, whichever is waited for first."""

    def program():
        rank, peer = dist.get_rank(), 1 - dist.get_rank()
        a, b = paddle.zeros([1]), paddle.zeros([1])
        tasks = [dist.irecv(a, peer), dist.irecv(b, peer)]
        dist.isend(_mine(1), peer)
        dist.send(_mine(1) * 10, peer)
        assert tasks[1].is_completed()
        tasks[0].wait()
        c = paddle.zeros([1])
        batch = [dist.P2POp(dist.irecv, c, peer), dist.P2POp(dist.isend, _mine(1), peer)]
        for task in dist.batch_isend_irecv(batch):
            task.wait()
        return rank, float(a), float(b), float(c)

    assert run_ranks(program, 2) == [(0, 2, 20, 2), (1, 1, 10, 1)]


def test_groups_have_ranks_and_ids_of_their_own():
    """new_group gives members a communicator, numbers groups from 10, and warns whoever is not a member."""

    def program():
        group = dist.new_group([0, 2])
        x = _mine(1)
        if group.is_member():
            dist.all_reduce(x, group=group)
        y = _mine(1)
        if dist.get_rank() != 1:
            dist.broadcast(y, src=2, group=group)
        return group.id, group.rank, group.nranks, dist.get_world_size(group), float(x), float(y)

    assert run_ranks(program, 3) == [(10, 0, 2, 2, 4, 3), (10, -1, 2, -1, 2, 2), (10, 1, 2, 2, 4, 3)]


def test_non_members_are_warned():
    """A collective of a group that this rank is not in does nothing, and says so."""

    def program():
        group = dist.new_group([0])
        if dist.get_rank() == 1:
            with pytest.warns(UserWarning, match="not a member"):
                assert dist.all_reduce(_mine(1), group=group) is None

    run_ranks(program, 2)


def test_objects_travel():
    """The object variants move anything that pickles, of different sizes."""

    def program():
        rank, gathered, own = dist.get_rank(), [], []
        dist.all_gather_object(gathered, {"rank": "x" * rank})
        shared = [rank, str(rank)]
        dist.broadcast_object_list(shared, src=1)
        dist.scatter_object_list(own, [("a",), ("b",)] if rank == 0 else None)
        return gathered, shared, own

    expected = [{"rank": ""}, {"rank": "x"}]
    assert run_ranks(program, 2) == [(expected, [1, "1"], [("a",)]), (expected, [1, "1"], [("b",)])]


def test_views_and_narrow_dtypes_are_reduced_in_place():
    """A tensor whose memory has gaps, one of bfloat16 and a 0-D one are all written where they are."""

    def program():
        whole = _mine(2, 4)
        dist.all_reduce(whole[:, 1:3])
        narrow, scalar = _mine(3).cast("bfloat16"), _mine()
        dist.all_reduce(narrow)
        dist.all_reduce(scalar)
        return whole.numpy()[0].tolist(), narrow.cast("float32").tolist(), float(scalar)

    assert run_ranks(program, 2)[0] == ([1, 3, 3, 1], [3, 3, 3], 3)


def test_alone_everything_is_a_no_op():
    """Without a launcher there is rank 0 of 1, nothing is initialised, and collectives leave values as they are."""
    assert (dist.get_rank(), dist.get_world_size()) == (0, 1)
    x, parts = paddle.to_tensor([1.0, 2.0]), []
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    dist.all_gather(parts, x)
    dist.barrier()
    assert x.tolist() == [1, 2]
    assert [t.tolist() for t in parts] == [[1, 2]]
    assert dist.get_backend() == "solo"


def test_ranks_that_call_different_collectives_are_named():
    """The error names both calls and the lines of the program that made them."""

    def program():
        if dist.get_rank() == 0:
            dist.all_reduce(_mine(1))
        else:
            dist.barrier()

    with pytest.raises(CollectiveMismatch, match=r"all_reduce\(.*test_distributed_collectives.py.*barrier\(\) at "):
        run_ranks(program, 2)


def test_a_rank_that_raises_ends_the_others():
    """Its exception is raised, with a note that tells the rank."""

    def program():
        if dist.get_rank() == 1:
            raise ValueError("boom")
        dist.barrier()

    with pytest.raises(ValueError, match="boom") as caught:
        run_ranks(program, 3)
    assert "rank 1 of 3" in caught.value.__notes__[0]
    assert not isinstance(caught.value, RankFailure)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: dist.all_reduce(np.ones(2)), TypeError, "expected a tensor, got ndarray"),
        (lambda: dist.all_reduce(paddle.ones([1]), op=9), ValueError, "ReduceOp.SUM"),
        (lambda: dist.all_reduce(paddle.ones([1], "int32"), op=4), TypeError, "avg"),
        (lambda: dist.broadcast(paddle.ones([1]), 5), ValueError, "rank 5 is not a member"),
        (lambda: dist.reduce_scatter(paddle.ones([1]), []), ValueError, "expected 1 tensors"),
        (lambda: dist.all_gather([paddle.ones([1])] * 3, paddle.ones([1])), ValueError, "has 3 tensors"),
        (lambda: dist.new_group([0, 0]), ValueError, "more than once"),
        (lambda: dist.new_group([4]), ValueError, "were not launched"),
        (lambda: dist.get_group(77), ValueError, "no group 77"),
        (lambda: dist.P2POp(print, None, 0), RuntimeError, "isend or distributed.irecv"),
        (lambda: dist.recv(paddle.ones([1]), 0), CollectiveMismatch, "a single rank waits"),
    ],
)
def test_wrong_calls_teach(call, error, message):
    """Each mistake raises its error, naming what came and what was expected."""
    with pytest.raises(error, match=message):
        call()
