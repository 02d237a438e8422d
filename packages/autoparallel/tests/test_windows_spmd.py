"""Windows and running sums along a split axis: values of one process, by messages between neighbours."""

import numpy as np
import pytest
from ranks import on_ranks

from argosy_autoparallel import Partial, ProcessMesh, Replicate, Shard, count_collectives, shard_tensor
from argosy_autoparallel.distributed_sort import comparators
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore.tensor import Tensor

RNG = np.random.default_rng(0)
X, W = RNG.standard_normal((2, 3, 16)).astype(np.float32), RNG.standard_normal((4, 3, 3)).astype(np.float32)


def run(name, arrays, placements, size, *settings):
    """The value over ``size`` ranks, placements of the result, calls and bytes of each rank."""

    def main(rank):
        mesh = ProcessMesh(list(range(size)))
        given = [
            Tensor(a) if p is None else shard_tensor(a, mesh, [p]) for a, p in zip(arrays, placements, strict=True)
        ]
        with count_collectives() as counts:
            made = get_operator(name)(*given, *settings)
        return made.numpy(), made.placements, counts.calls, counts.total_bytes

    return on_ranks(main, size)


@pytest.mark.parametrize("settings", [(None, 1, 1), (None, 2, 1), (None, 1, 2, 2), (None, 3, 0)])
def test_windows_read_their_neighbours_parts(settings):
    """Strides, padding and dilation, uneven parts: each rank sends its rims."""
    expected = get_operator("conv1d")(Tensor(X), Tensor(W), *settings).numpy()
    for value, placements, calls, nbytes in run("conv1d", (X, W), (Shard(2), None), 3, *settings):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5)
        assert placements == [Shard(2)]
        assert calls.keys() <= {"send"}
        assert nbytes <= 2 * 4 * X[:, :, :3].size


def test_wide_windows_split_the_batch_instead():
    """Where ranks would lack more than half of the others' parts."""
    wide = RNG.standard_normal((1, 3, 13)).astype(np.float32)
    _, placements, calls, _ = run("conv1d", (X, wide), (Shard(2), None), 3)[0]
    assert (placements, calls) == ([Shard(0)], {"all_to_all": 1})


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(("name", "dtype"), [
    ("cumsum", "float32"), ("cumprod", "float32"), ("cummax", "int32"), ("logcumsumexp", "float32"),
])  # fmt: skip
def test_running_reductions_gather_totals(name, dtype, ranks):
    """One number of each rank for a line of the axis; ranks without elements, too."""
    x = np.array([[3, -1, 2, 5, 1], [-2, -3, -1, -4, -1]], dtype)
    if name == "logcumsumexp":
        x[1, :2] = -np.inf
    expected = get_operator(name)(Tensor(x), 1)
    made = run(name, (x,), (Shard(1),), ranks, 1) if name != "cummax" else _run_cummax(x, ranks)
    expected = expected[0] if isinstance(expected, tuple) else expected
    for value, placements, calls, _ in made:
        np.testing.assert_allclose(value, expected.numpy(), rtol=1e-6)
        assert placements == [Shard(1)]
        assert calls["all_gather"] == (2 if name == "cummax" else 1)


def _run_cummax(x, ranks):
    def main(rank):
        with count_collectives() as counts:
            values, _ = get_operator("cummax")(shard_tensor(x, ProcessMesh(list(range(ranks))), [Shard(1)]), 1)
        return values.numpy(), values.placements, counts.calls, 0

    return on_ranks(main, ranks)


def test_gradients_of_weights_are_sums_of_parts():
    """A convolution's weight gets terms of its gradient from each rank's part of the image."""

    def main(rank):
        mesh = ProcessMesh([0, 1])
        x, w = shard_tensor(X, mesh, [Shard(2)]), shard_tensor(W, mesh, [Replicate()], stop_gradient=False)
        get_operator("conv1d")(x, w, None, 1, 1).square().sum().backward()
        return w.grad.numpy(), w.grad.placements

    pytest.importorskip("argosy_autograd")
    w = Tensor(W, stop_gradient=False)
    get_operator("conv1d")(Tensor(X), w, None, 1, 1).square().sum().backward()
    for grad, placements in on_ranks(main, 2):
        np.testing.assert_allclose(grad, w.grad.numpy(), rtol=1e-4, atol=1e-4)
        assert placements in ([Partial()], [Replicate()])


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("size", [3, 9, 16])
def test_sorts_merge_the_ranks_parts(size, ranks):
    """Both ways, with equal elements, NaN, uneven parts and ranks without elements; nobody holds the whole axis."""
    x = RNG.integers(0, 4, (size,)).astype(np.float32)
    x[1] = np.nan
    for name, descending in (("sort", False), ("argsort", False), ("argsort", True)):
        expected = get_operator(name)(Tensor(x), 0, descending, stable=True).numpy()
        for value, placements, calls, _ in run(name, (x,), (Shard(0),), ranks, 0, descending, True):
            np.testing.assert_array_equal(value, expected)
            assert placements == [Shard(0)]
            assert calls.keys() == {"send"}


@pytest.mark.parametrize("count", range(9))
def test_comparators_put_all_zeros_and_ones_in_order(count):
    """Then they do with all values (Knuth's 0-1 principle)."""
    bits = np.arange(1 << count)[:, None] >> np.arange(count) & 1
    expected = np.sort(bits, axis=1)
    for low, high in comparators(count):
        bits[:, [low, high]] = np.sort(bits[:, [low, high]], axis=1)
    np.testing.assert_array_equal(bits, expected)


@pytest.mark.parametrize(("k", "calls"), [(2, {"all_gather": 2}), (9, {"all_to_all": 1})])
def test_the_largest_of_a_split_axis_are_found_among_those_of_each_rank(k, calls):
    """Where that moves less: the operator's own rule; else its decomposition is partitioned."""
    x = RNG.integers(0, 9, (4, 40)).astype(np.float32)
    expected = [y.numpy() for y in get_operator("topk")(Tensor(x), k)]

    def main(rank):
        with count_collectives() as counts:
            made = get_operator("topk")(shard_tensor(x, ProcessMesh([0, 1]), [Shard(1)]), k)
        return [y.numpy() for y in made], counts.calls

    for found, counted in on_ranks(main, 2):
        assert counted == calls
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
