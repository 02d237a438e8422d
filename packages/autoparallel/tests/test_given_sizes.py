"""Axes split in parts of given sizes."""

import itertools

import numpy as np
import pytest
from prover import prove
from ranks import on_ranks

from argosy_autoparallel import (
    Layout,
    Partial,
    ProcessMesh,
    Replicate,
    Shard,
    count_collectives,
    dtensor_from_local,
    largest_local_shape,
    reshard,
    shard_tensor,
)
from argosy_autoparallel.dist_tensor import local_value
from argosy_autoparallel.tensor_layout import parse_layout, print_layout
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

X = np.arange(96.0, dtype=np.float32).reshape(8, 12)
ROWS, COLUMNS, BLOCKS = Shard(0, sizes=[1, 5, 0, 2]), Shard(1, sizes=[3, 2, 6, 1]), Shard(1, 3, sizes=[0, 2, 1, 1])


def op(name, *operands, **attributes):
    return get_operator(name)(*operands, **attributes)


def test_each_rank_has_as_many_elements_as_given():
    """In order; of each block, where there are several. The text of a layout says so and parses back."""
    line = ProcessMesh([0, 1, 2, 3])
    found = [Layout(line, [ROWS]).local_slice((8, 12), rank) for rank in range(4)]
    assert [(part.offset[0], part.shape[0]) for part in found] == [(0, 1), (1, 5), (6, 0), (6, 2)]
    assert largest_local_shape((8, 12), line, [ROWS]) == (5, 12)
    for placement, text in ((ROWS, "S(0:1,5,0,2)"), (BLOCKS, "S(1/3:0,2,1,1)")):
        layout = Layout(line, [placement])
        assert print_layout(layout) == f"d0=4 on 0-3: {text}"
        assert parse_layout(print_layout(layout)) == layout
    assert repr(BLOCKS) == "Shard(dim=1, split_factor=3, sizes=(0, 2, 1, 1))"
    parts = on_ranks(lambda rank: local_value(shard_tensor(X, line, [BLOCKS])).numpy(), 4)
    for (start, stop), part in zip([(0, 0), (0, 2), (2, 3), (3, 4)], parts, strict=True):
        np.testing.assert_array_equal(part, X.reshape(8, 3, 4)[:, :, start:stop].reshape(8, -1))


def test_sizes_are_those_of_the_axis_and_the_mesh():
    """Errors with the numbers, on all ranks, whatever each of them has."""

    def main(rank):
        line, square = ProcessMesh([0, 1, 2, 3]), ProcessMesh([[0, 1], [2, 3]])
        with pytest.raises(ValueError, match=r"8 elements over 4 ranks have no parts of sizes \[3, 5\]"):
            shard_tensor(X, line, [Shard(0, sizes=[3, 5])])
        with pytest.raises(ValueError, match=r"12 elements over 4 ranks have no parts of sizes \[1, 5, 0, 2\]"):
            shard_tensor(X, line, [Shard(1, sizes=[1, 5, 0, 2])])
        with pytest.raises(ValueError, match="elements over 2 ranks have no parts"):  # of halves of 3 and 2
            shard_tensor(X[:5], square, [Shard(0), Shard(0, sizes=[1, 2])])
        for sizes in ([], [-1, 9], [1.5, 2]):
            with pytest.raises(ValueError, match="one number for each"):
                Shard(0, sizes=sizes)

    on_ranks(main, 4)


LINE = [Replicate(), Partial(), Shard(0), Shard(1), ROWS, Shard(0, sizes=[0, 0, 8, 0]), COLUMNS, BLOCKS, Shard(1, 4)]
SQUARE = [
    (Shard(0, sizes=[5, 3]), Shard(0)), (Shard(0), Shard(0, sizes=[1, 3])), (Shard(1, sizes=[2, 10]), Partial()),
    (Replicate(), Shard(0, sizes=[7, 1])), (Partial(), Shard(1, sizes=[7, 5])), (Shard(1), Shard(0)),
    (Shard(0, sizes=[2, 6]), Shard(1, sizes=[12, 0])),
]  # fmt: skip


@pytest.mark.parametrize(("mesh", "layouts"), [([0, 1, 2, 3], [[p] for p in LINE]), ([[0, 1], [2, 3]], SQUARE)])
def test_all_changes_of_layout_keep_the_value(mesh, layouts):
    """Between given sizes, other splits, blocks and sums, on a line of ranks and on a square: parts of parts, too."""

    def main(rank):
        on = ProcessMesh(mesh)
        for a, b in itertools.product(layouts, repeat=2):
            y = reshard(shard_tensor(X, on, a), on, b)
            assert y.placements == list(b)
            np.testing.assert_array_equal(y.numpy(), X)

    on_ranks(main, 4)


def test_ranks_are_sent_what_they_lack():
    """Where the same axis is cut otherwise: from 4 and 4 rows to 3 and 5 one of them travels."""

    def main(rank):
        mesh = ProcessMesh([0, 1])
        x = shard_tensor(X, mesh, [Shard(0)])
        with count_collectives() as counts:
            reshard(x, mesh, [Shard(0, sizes=[3, 5])])
        return counts.bytes

    assert on_ranks(main, 2) == [{"send": 12 * 4}, {}]


def test_equal_sizes_stay():
    """Nothing is communicated by elementwise operators, products and sums, indices and a fused projection."""

    def main(rank):
        mesh = ProcessMesh([0, 1, 2])
        rows, heads = Shard(0, sizes=[3, 0, 5]), Shard(1, 3, sizes=[2, 1, 1])
        x, w = shard_tensor(X, mesh, [rows]), shard_tensor(X, mesh, [])
        columns = shard_tensor(X, mesh, [Shard(1, sizes=[1, 4, 7])])
        with count_collectives() as counts:
            y = op("add", op("tanh", op("multiply", x, x)), 2.0)
            product = op("matmul", y, w, transpose_y=True)
            total, column = op("sum", y, axis=1), op("sum", y, axis=0)
            terms = op("matmul", columns, columns, transpose_y=True)
            fused = op("matmul", w, shard_tensor(X[:, :12].repeat(2, 0)[:12], mesh, [heads]))
            q, k, v = op("chunk", fused, 3, axis=1)
            table = op("gather", x, Tensor(np.array([7, 0, 3])), axis=0)
            heads_apart = op("reshape", op("matmul", w, w, transpose_x=True), [12, 3, 4])
            split = op("reshape", shard_tensor(X, mesh, [Shard(1, sizes=[4, 0, 8])]), [8, 3, 4])
        assert not counts.calls
        apart = [Shard(1, 1, [2, 1, 1])]
        found = [z.placements for z in (y, product, total, column, terms, fused, q, k, v, table, heads_apart, split)]
        assert found == [
            [rows], [rows], [rows], [Partial()], [Partial()], [heads], apart, apart, apart, [Partial()],
            [Replicate()], [Shard(1, sizes=[1, 0, 2])],
        ]  # fmt: skip
        return [z.numpy() for z in (product, total, column, terms, q, table, split)]

    y = np.tanh(X * X) + 2
    wanted = [y @ X.T, y.sum(1), y.sum(0), X @ X.T, X @ X.repeat(2, 0)[:12][:, :4], X[[7, 0, 3]], X.reshape(8, 3, 4)]
    for found in on_ranks(main, 3):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_windows_and_running_sums_stay():
    """Ranks are sent the rows that their windows lack; results of fewer or more rows lie where what they read lies."""

    def main(rank):
        mesh = ProcessMesh([0, 1])
        x = shard_tensor(np.arange(96, dtype=np.float32).reshape(1, 1, 12, 8), mesh, [Shard(2, sizes=[8, 4])])
        w = shard_tensor(X[:3, :3].reshape(1, 1, 3, 3), mesh, [])
        with count_collectives() as counts:
            found = [
                op("conv2d", x, w, padding=1), op("conv2d", x, w, stride=2), op("cumsum", x, axis=2),
                op("slice", x, axes=[2], starts=[2], ends=[12]), op("pad", x, [0, 0, 1, 2], mode="constant"),
            ]  # fmt: skip
        return [y.placements for y in found], counts.calls, [y.numpy() for y in found]

    placements, calls, values = zip(*on_ranks(main, 2), strict=True)
    sizes = [[8, 4], [4, 1], [8, 4], [6, 4], [9, 6]]
    assert placements == ([[Shard(2, sizes=each)] for each in sizes],) * 2
    assert [call["send"] for call in calls] == [1, 2]
    assert all(call.keys() <= {"send", "all_gather"} for call in calls)
    whole, weight = Tensor(np.arange(96, dtype=np.float32).reshape(1, 1, 12, 8)), Tensor(X[:3, :3].reshape(1, 1, 3, 3))
    wanted = [
        op("conv2d", whole, weight, padding=1), op("conv2d", whole, weight, stride=2), op("cumsum", whole, axis=2),
        op("slice", whole, axes=[2], starts=[2], ends=[12]), op("pad", whole, [0, 0, 1, 2], mode="constant"),
    ]  # fmt: skip
    for mine in values:
        for a, b in zip(mine, wanted, strict=True):
            np.testing.assert_allclose(a, b.numpy(), rtol=1e-5)


def test_what_cannot_work_on_them_takes_even_parts():
    """Windows of which ranks lack much, sorts, unequal sizes of two operands, sizes within parts of the same axis."""

    def main(rank):
        mesh, square = ProcessMesh([0, 1, 2, 3]), ProcessMesh([[0, 1], [2, 3]])
        x = shard_tensor(X, mesh, [ROWS])
        found = [
            op("slice", x, axes=[0], starts=[1], ends=[7]), op("sort", x, axis=0, descending=True),
            op("flip", x, axis=[0]),
            op("add", x, shard_tensor(X, mesh, [Shard(0, sizes=[2, 2, 2, 2])])), op("cumsum", x, axis=0),
            op("topk", x, 2, axis=0)[0],
        ]  # fmt: skip
        nested = shard_tensor(X, square, [Shard(0, sizes=[3, 5]), Shard(0)])
        inner = shard_tensor(X, square, [Shard(0), Shard(0, sizes=[1, 3])])
        for y in (nested, inner):
            found += [op("add", y, y), op("reshape", y, [2, 4, 12]), op("reshape", y, [96]), op("matmul", y, y, True)]
        return [y.numpy() for y in found]

    both = [X + X, X.reshape(2, 4, 12), X.reshape(96), X.T @ X]
    wanted = [X[1:7], X[::-1], X[::-1], X + X, np.cumsum(X, 0), X[:-3:-1], *both, *both]
    for found in on_ranks(main, 4):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


PROVEN = [
    "add", "where", "sum", "max", "softmax", "matmul", "linear", "reshape", "transpose", "concat", "split", "gather",
    "embedding", "scatter", "expand", "pad", "cumsum", "topk", "conv2d", "getitem", "dropout",
]  # fmt: skip


@pytest.mark.parametrize("mesh", [[0, 1, 2], pytest.param([[0, 1], [2, 3]], marks=pytest.mark.exhaustive)])
def test_operators_give_what_one_process_gives(mesh):
    """By brute force, over layouts by chance, some of which have parts of given sizes."""
    assert sum(proven.cases for proven in prove(PROVEN, mesh, 4, longest=30, sized=True).values()) > 2 * len(PROVEN)


def test_gradients_lie_like_their_tensors():
    """Of a product of rows of given sizes, beside one process."""
    pytest.importorskip("argosy_autograd")

    def main(rank):
        mesh = ProcessMesh([0, 1])
        x = shard_tensor(X, mesh, [Shard(0, sizes=[3, 5])], stop_gradient=False)
        w = shard_tensor(X[:, :3].repeat(2, 0)[:12], mesh, [Shard(0, sizes=[9, 3])], stop_gradient=False)
        op("sum", op("tanh", op("multiply", op("matmul", x, w), 1e-3))).backward()
        assert (x.grad.placements, w.grad.placements) == (x.placements, w.placements)
        return x.grad.numpy(), w.grad.numpy()

    w = X[:, :3].repeat(2, 0)[:12]
    g = 1e-3 * (1 - np.tanh(1e-3 * (X @ w)) ** 2)
    for dx, dw in on_ranks(main, 2):
        np.testing.assert_allclose(dx, g @ w.T, rtol=2e-4)
        np.testing.assert_allclose(dw, X.T @ g, rtol=2e-4)


def test_tensors_without_elements_have_parts_too():
    """Reshaped as well, where what an axis lacks is another's."""

    def main(rank):
        mesh = ProcessMesh([0, 1])
        rows = shard_tensor(X[:0], mesh, [Shard(0, sizes=[0, 0])])
        assert op("sum", op("add", rows, rows), axis=1).placements == [Shard(0, sizes=[0, 0])]
        for placement in (Shard(1), Shard(1, 2), Shard(1, sizes=[4, 8]), Shard(0, sizes=[0, 0])):
            x = shard_tensor(X[:0], mesh, [placement])
            for shape in ([0, 3, 4], [0], [12, 0], [4, 0, 3]):
                assert op("reshape", x, shape).numpy().shape == tuple(op("reshape", Tensor(X[:0]), shape).shape)

    on_ranks(main, 2)


def test_parts_of_ranks_make_a_tensor():
    """Of which each rank knows its own part alone."""

    def main(rank):
        mesh = ProcessMesh([0, 1])
        x = dtensor_from_local(Tensor(X[:3] if rank == 0 else X[3:]), mesh, [Shard(0, sizes=[3, 5])])
        np.testing.assert_array_equal(x.numpy(), X)
        with pytest.raises(ValueError, match=r"8 elements are cut into \[5, 3\]"):
            dtensor_from_local(Tensor(X[:3] if rank == 0 else X[3:]), mesh, [Shard(0, sizes=[5, 3])])

    on_ranks(main, 2)
