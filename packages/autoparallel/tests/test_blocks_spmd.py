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


def _nested(placements):
    axes = [p.dim for p in placements if isinstance(p, Shard)]
    return len(axes) > len(set(axes))


def test_all_changes_of_layout_keep_the_value():
    """Between blocks, other splits and sums, on a line of ranks and on a square."""

    def main(rank):
        line, square = ProcessMesh([0, 1, 2, 3]), ProcessMesh([[0, 1], [2, 3]])
        for a, b in itertools.product([p for p in BLOCKS if p != Shard(1, 3)] + [Shard(1)], repeat=2):
            y = reshard(shard_tensor(X, line, [a]), line, [b])
            assert y.placements == [b]
            np.testing.assert_array_equal(y.numpy(), X)
        for a, b in itertools.product(BLOCKS, repeat=2):
            given, wanted = ([p, q] for p, q in ((a, Shard(1, 3)), (Shard(0), b)))
            if not any(_nested(layout) for layout in (given, wanted)):
                y = reshard(shard_tensor(X, square, given), square, wanted)
            np.testing.assert_array_equal(y.numpy(), X)

    on_ranks(main, 4)


def test_parts_are_even_and_blocks_do_not_nest():
    """Errors with the numbers."""

    def main(rank):
        line, square = ProcessMesh([0, 1]), ProcessMesh([[0, 1]])
        with pytest.raises(ValueError, match=r"12 elements .* are not 4 blocks of 2 equal parts"):
            shard_tensor(X, line, [Shard(1, 4)])
        with pytest.raises(ValueError, match="one mesh dimension alone"):
            shard_tensor(X, square, [Shard(1), Shard(1, 3)])
        with pytest.raises(ValueError, match="one at least"):
            Shard(0, 0)

    on_ranks(main, 2)


def split_by_reshape(y):
    return op("unbind", op("reshape", y, [8, 3, 4]), axis=1)


def split_by_slices(y):
    return op("chunk", y, 3, axis=1)


@pytest.mark.parametrize("split", [split_by_reshape, split_by_slices])
def test_fused_projections_are_split_through_heads(split):
    """Nothing is communicated on the way to query, key and value, whose columns are split."""

    def main(rank):
        mesh = ProcessMesh([0, 1])
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
    for found in on_ranks(main, 2):
        for a, b in zip(found, (q, k, v, np.concatenate([q, k, v], 1), y.sum(1)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
