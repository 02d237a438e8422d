"""Sums of many arrays in few collectives: the values of one collective for each, to the bit."""

import numpy as np
import pytest
from ranks import on_ranks

from argosy_autoparallel import Partial, ProcessMesh, Replicate, Shard, count_collectives, reshard, shard_tensor, world
from argosy_autoparallel.bucketing import all_reduce_buckets
from argosy_autoparallel.dist_tensor import ShardedArray, layout_of
from argosy_tensorcore.tensor import Tensor


def arrays(rank):
    """Of different sizes and dtypes, a scalar and an empty one among them; one is no contiguous memory."""
    rng = np.random.default_rng(rank)
    found = [rng.standard_normal(shape).astype(np.float32) for shape in [(3, 4), (), (0, 2), (7,), (2, 5)]]
    found.insert(2, rng.standard_normal(6))
    found.append(rng.standard_normal((4, 3)).astype(np.float32).T)
    found.append(rng.integers(0, 9, (3,)))
    return found


@pytest.mark.parametrize(("op", "limit", "calls"), [("sum", 1 << 20, 3), ("max", 60, 6), ("sum", 0, 8)])
def test_sums_are_those_of_one_collective_each(op, limit, calls):
    """For any size of buckets; what is larger than a bucket travels alone, and dtypes do not mix."""

    def main(rank):
        given = arrays(rank)
        expected = [np.empty_like(x, order="C") for x in given]
        for x, y in zip(given, expected, strict=True):
            world().all_reduce(np.array(x, order="C"), y, op)
        with count_collectives() as counts:
            found = all_reduce_buckets(given, world(), op, limit)
        return expected, found, counts.calls

    for expected, found, counted in on_ranks(main, 3):
        assert counted == {"all_reduce": calls}
        for x, y in zip(expected, found, strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            np.testing.assert_array_equal(x, y)
            assert y.flags.c_contiguous
            assert y.flags.writeable


LAYOUTS = [
    [Partial(), Replicate()], [Replicate(), Partial()], [Partial(), Partial()], [Shard(0), Partial()],
    [Replicate(), Shard(1)], [Partial(), Shard(0)], [Shard(0), Replicate()],
]  # fmt: skip


def test_gradients_are_adopted_together():
    """Each as it would be alone, whatever leads to its tensor's layout, with a collective for each mesh dimension."""

    def main(rank):
        mesh = ProcessMesh([[0, 1], [2, 3]])
        rng = np.random.default_rng(5)
        tensors, gradients = [], []
        for i, placements in enumerate(LAYOUTS):
            value = rng.integers(0, 100, (3, 5 + i)).astype(np.float32)
            kept = [p if p.is_shard() and i < 4 else Replicate() for p in placements]
            tensors.append(shard_tensor(value, mesh, kept).payload)
            gradients.append(reshard(shard_tensor(value, mesh, [Replicate()] * 2), mesh, placements))
        gradients.append(Tensor(np.ones((2, 2), np.float32)))  # an ordinary one, which every rank has
        tensors.append(shard_tensor(np.zeros((2, 2), np.float32), mesh, [Shard(0), Replicate()]).payload)
        with count_collectives() as alone:
            expected = [x.adopt_gradient(g) for x, g in zip(tensors, gradients, strict=True)]
        with count_collectives() as counts:
            found = ShardedArray.adopt_gradients(tensors, gradients)
        assert [layout_of(g) for g in found] == [layout_of(g) for g in expected]
        assert [layout_of(g) for g in found] == [x.layout for x in tensors]
        values = [(g.numpy(), e.numpy()) for g, e in zip(found, expected, strict=True)]
        return values, alone.calls["all_reduce"], counts.calls["all_reduce"]

    for values, alone, together in on_ranks(main, 4):
        for found, expected in values:
            np.testing.assert_array_equal(found, expected)
        assert (alone, together) == (6, 3)
