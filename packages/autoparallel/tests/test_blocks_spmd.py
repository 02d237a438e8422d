"""Axes split in blocks: each rank has a part of each block."""

import itertools

import numpy as np
import pytest
from ranks import on_ranks

from argosy_autoparallel import (
    Layout,
    Partial,
    ProcessMesh,
    Replicate,
    Shard,
    count_collectives,
    reshard,
    shard_tensor,
)
from argosy_autoparallel.dist_tensor import local_value
from argosy_autoparallel.tensor_layout import parse_layout, print_layout
from argosy_phi_ops.declare.operator import get_operator

X = np.arange(96.0, dtype=np.float32).reshape(8, 12)
BLOCKS = [Replicate(), Partial(), Shard(0), Shard(1), Shard(1, 3), Shard(0, split_factor=2)]


def op(name, *operands, **attributes):
    return get_operator(name)(*operands, **attributes)


def test_each_rank_has_a_part_of_each_block():
    """Of three blocks of four columns the first two, or the last two."""

    def main(rank):
        return local_value(shard_tensor(X, ProcessMesh([0, 1]), [Shard(1, 3)])).numpy()

    for rank, part in enumerate(on_ranks(main, 2)):
        np.testing.assert_array_equal(part, X.reshape(8, 3, 2, 2)[:, :, rank].reshape(8, 6))
    layout = Layout(ProcessMesh([0, 1]), [Shard(1, 3)])
    assert parse_layout(print_layout(layout)) == layout
    assert repr(Shard(1, 3)) == "Shard(dim=1, split_factor=3)"


PAIRS = Shard(0, split_factor=2)
SQUARE = [
    (Replicate(), Shard(1, 3)), (Shard(1, 3), Partial()), (Shard(0), Shard(1, 3)), (Partial(), PAIRS),
    (Shard(1), Shard(1, 3)), (PAIRS, Shard(0)), (Shard(1, 4), Shard(1, 2)), (Shard(1, 3), Shard(1, 3)),
]  # fmt: skip


def test_all_changes_of_layout_keep_the_value():
    """Between blocks, other splits and sums, on a line of ranks and on a square: uneven parts, parts of parts."""
    uneven = X[:6]

    def main(rank):
        line, square = ProcessMesh([0, 1, 2, 3]), ProcessMesh([[0, 1], [2, 3]])
        for a, b in itertools.product([*BLOCKS, Shard(1, 4)], repeat=2):
            y = reshard(shard_tensor(uneven, line, [a]), line, [b])
            assert y.placements == [b]
            np.testing.assert_array_equal(y.numpy(), uneven)
        for a, b in itertools.product(SQUARE, repeat=2):
            y = reshard(shard_tensor(uneven, square, a), square, b)
            assert y.placements == list(b)
            np.testing.assert_array_equal(y.numpy(), uneven)

    on_ranks(main, 4)


def test_blocks_are_equal():
    """Errors with the numbers, on all ranks, whatever each of them has."""

    def main(rank):
        line, square = ProcessMesh([0, 1, 2, 3]), ProcessMesh([[0, 1], [2, 3]])
        with pytest.raises(ValueError, match=r"12 elements of dimension 1 are not 5 equal blocks"):
            shard_tensor(X, line, [Shard(1, 5)])
        with pytest.raises(ValueError, match=r"2 elements of dimension 0 are not 3 equal blocks"):
            shard_tensor(X[:5], square, [Shard(0), Shard(0, 3)])
        with pytest.raises(ValueError, match="one at least"):
            Shard(0, 0)

    on_ranks(main, 4)


def test_operators_work_on_parts_of_parts():
    """Nothing is communicated where operands and results are cut alike, in uneven parts, too."""

    def main(rank):
        mesh = ProcessMesh([[0, 1], [2, 3]])
        nested = [Shard(1, 3), Shard(1)]
        x, w = shard_tensor(X[:, :5], mesh, []), shard_tensor(X[:5, :9], mesh, nested)
        with count_collectives() as counts:
            y = op("multiply", op("tanh", op("matmul", x, w)), shard_tensor(X[:, :9], mesh, nested))
            total = op("sum", y, axis=1)
            rows = op("slice", y, axes=[0], starts=[2], ends=[5])
        assert not counts.calls
        assert [z.placements for z in (y, rows, total)] == [nested, nested, [Partial(), Partial()]]
        halves = op("chunk", y, 3, axis=1)
        return y.numpy(), rows.numpy(), total.numpy(), op("concat", halves, axis=1).numpy()

    y = np.tanh(X[:, :5] @ X[:5, :9]) * X[:, :9]
    for found in on_ranks(main, 4):
        for a, b in zip(found, (y, y[2:5], y.sum(1), y), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_indices_in_blocks_are_checked():
    """The columns of indices, of which each rank has some of each block."""

    def main(rank, last=2):
        mesh = ProcessMesh([0, 1])
        x, at = np.arange(81).reshape(3, 3, 3, 3), np.array([[1, 0, 2, 1], [0, 2, last, 2]])
        found = op("gather_nd", shard_tensor(x, mesh, []), shard_tensor(at, mesh, [Shard(1, 2)])).numpy()
        np.testing.assert_array_equal(found, x[tuple(at.T)])

    on_ranks(main, 2)
    with pytest.raises(IndexError, match="3"):
        on_ranks(lambda rank: main(rank, 3), 2)


def split_by_reshape(y):
    return op("unbind", op("reshape", y, [8, 3, 4]), axis=1)


def split_by_slices(y):
    return op("chunk", y, 3, axis=1)


@pytest.mark.parametrize("split", [split_by_reshape, split_by_slices])
@pytest.mark.parametrize("ranks", [2, 3])
def test_fused_projections_are_split_through_heads(split, ranks):
    """Nothing is communicated on the way to query, key and value, whose columns are split, in uneven parts, too."""

    def main(rank):
        mesh = ProcessMesh([*range(ranks)])
        x, w = shard_tensor(X[:, :5], mesh, [Replicate()]), shard_tensor(X[:5], mesh, [Shard(1, 3)])
        b = shard_tensor(X[0], mesh, [Shard(0, 3)])
        with count_collectives() as counts:
            y = op("add", op("matmul", x, w), b)
            q, k, v = split(y)
            total = op("sum", y, axis=1)
        assert not counts.calls
        assert [z.placements for z in (y, q, k, v, total)] == [[Shard(1, 3)], *[[Shard(1)]] * 3, [Partial()]]
        return q.numpy(), k.numpy(), v.numpy(), op("concat", [q, k, v], axis=1).numpy(), total.numpy()

    y = X[:, :5] @ X[:5] + X[0]
    q, k, v = np.split(y, 3, axis=1)
    for found in on_ranks(main, ranks):
        for a, b in zip(found, (q, k, v, np.concatenate([q, k, v], 1), y.sum(1)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
