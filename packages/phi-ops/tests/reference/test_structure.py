"""Layout, reduction, indexing and sorting kernels against numpy spelled out."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from argosy_phi_ops.reference.kernels import KERNELS

SMALL = hnp.arrays(np.int64, hnp.array_shapes(max_dims=3, max_side=4), elements=st.integers(-9, 9))


def test_broadcast_puts_operand_axes_where_told():
    x = np.arange(6).reshape(2, 3)
    result = KERNELS["broadcast"](x, shape=(3, 4, 2), axes=(2, 0))
    np.testing.assert_array_equal(result, np.broadcast_to(x.T[:, None, :], (3, 4, 2)))


@given(SMALL, st.data())
@settings(deadline=None)
def test_pad_equals_placing_elements_one_by_one(x, data):
    counts = st.integers(-2, 2)
    low, high = ([data.draw(counts) for _ in x.shape] for _ in range(2))
    interior = [data.draw(st.integers(0, 2)) for _ in x.shape]
    shape = [lo + n + (n - 1) * gap + hi for lo, n, hi, gap in zip(low, x.shape, high, interior, strict=True)]
    if min(shape) < 0:
        return
    expected = np.full(shape, 77)
    for index in np.ndindex(*x.shape):
        at = tuple(lo + i * (gap + 1) for lo, i, gap in zip(low, index, interior, strict=True))
        if all(0 <= i < n for i, n in zip(at, shape, strict=True)):
            expected[at] = x[index]
    result = KERNELS["pad"](x, np.asarray(77), low=low, high=high, interior=interior)
    np.testing.assert_array_equal(result, expected)


def test_slice_reverse_concat_and_iota():
    x = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(KERNELS["slice"](x, start=(0, 1), limit=(3, 4), stride=(2, 2)), x[0:3:2, 1:4:2])
    np.testing.assert_array_equal(KERNELS["reverse"](x, axes=(1,)), x[:, ::-1])
    np.testing.assert_array_equal(KERNELS["concat"](x, x[:1], axis=0), np.vstack([x, x[:1]]))
    rows = KERNELS["iota"](shape=(3, 2), axis=0, dtype="float32")
    np.testing.assert_array_equal(rows, [[0, 0], [1, 1], [2, 2]])
    assert rows.dtype == np.float32


@pytest.mark.parametrize(("name", "whole"), [("sum", 0), ("prod", 1), ("max", None), ("min", None)])
@given(x=SMALL, data=st.data())
@settings(deadline=None)
def test_reductions_over_any_axes(name, whole, x, data):
    axes = tuple(data.draw(st.sets(st.integers(0, x.ndim - 1))))
    result = KERNELS[f"reduce_{name}"](x, axes=axes)
    np.testing.assert_array_equal(result, getattr(np, name)(x, axis=axes))
    assert result.dtype == x.dtype
    assert type(result) is np.ndarray


def test_reducing_nothing_gives_the_identity():
    empty = np.zeros((0, 2), np.float32)
    expected = {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf}
    for name, value in expected.items():
        np.testing.assert_array_equal(KERNELS[f"reduce_{name}"](empty, axes=(0,)), [value, value])
    assert KERNELS["reduce_max"](np.zeros(0, np.int8), axes=(0,)) == -128


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_sums_accumulate_in_float32(dtype):
    x = np.ones(5000, dtype)
    assert float(KERNELS["reduce_sum"](x, axes=(0,))) == float(np.asarray(5000).astype(dtype))
    assert float(KERNELS["cumulative"](x, axis=0, kind="sum")[-1]) == float(np.asarray(5000).astype(dtype))


def test_extremes_propagate_nan_and_take_the_first_index():
    x = np.array([1.0, np.nan, 3.0])
    assert np.isnan(KERNELS["reduce_max"](x, axes=(0,)))
    assert KERNELS["argmax"](x, axis=0, dtype="int32") == 1
    assert KERNELS["argmax"](np.array([2, 5, 5]), axis=0, dtype="int64") == 1
    assert KERNELS["argmin"](np.array([[2, 1, 1]]), axis=1, dtype="int64").dtype == np.int64


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min", "logsumexp"])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulations_equal_reductions_of_prefixes(kind, reverse):
    x = np.random.default_rng(0).standard_normal((3, 5))
    reduce = (lambda a: np.log(np.exp(a).sum())) if kind == "logsumexp" else getattr(np, kind)
    rows = x[:, ::-1] if reverse else x
    expected = np.array([[reduce(row[: i + 1]) for i in range(5)] for row in rows])
    if reverse:
        expected = expected[:, ::-1]
    np.testing.assert_allclose(KERNELS["cumulative"](x, axis=1, kind=kind, reverse=reverse), expected, rtol=1e-12)


def test_gather_and_scatter_share_batch_axes():
    x = np.arange(24).reshape(2, 3, 4)
    indices = np.array([[[2], [0]], [[1], [9]]])  # the 9 is clamped by gather and dropped by scatter
    expected = np.stack([x[0, [2, 0]], x[1, [1, 2]]])
    np.testing.assert_array_equal(KERNELS["gather"](x, indices, axes=(1,), batch=1), expected)
    updates = np.full((2, 2, 4), -1)
    changed = x.copy()
    changed[0, [2, 0]] = -1
    changed[1, 1] = -1
    np.testing.assert_array_equal(KERNELS["scatter"](x, indices, updates, axes=(1,), batch=1, kind="set"), changed)


@given(st.data())
@settings(deadline=None)
def test_gather_along_several_axes_equals_a_loop(data):
    shape = tuple(data.draw(st.integers(1, 3)) for _ in range(3))
    axes = tuple(data.draw(st.permutations(range(3))))[: data.draw(st.integers(1, 3))]
    outer = tuple(data.draw(st.lists(st.integers(0, 3), max_size=2)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, indices = rng.integers(0, 99, shape), rng.integers(-1, 4, (*outer, len(axes)))
    rest = [i for i in range(3) if i not in axes]
    expected = np.empty((*outer, *(shape[i] for i in rest)), x.dtype)
    for where in np.ndindex(*outer):
        at = [slice(None)] * 3
        for k, axis in enumerate(axes):
            at[axis] = min(max(int(indices[(*where, k)]), 0), shape[axis] - 1)
        expected[where] = x[tuple(at)]
    np.testing.assert_array_equal(KERNELS["gather"](x, indices, axes=axes), expected)


@pytest.mark.parametrize(
    ("kind", "expected"), [("set", [3, 0, 0]), ("add", [6, 0, 0]), ("max", [3, 0, 0]), ("min", [0, 0, 0])]
)
def test_scatter_combines_duplicates(kind, expected):
    indices, updates = np.array([[0], [0], [0], [5]]), np.array([1, 2, 3, 9])
    result = KERNELS["scatter"](np.zeros(3, np.int64), indices, updates, axes=(0,), kind=kind)
    np.testing.assert_array_equal(result, expected)


def test_scatter_leaves_its_operand_alone():
    x = np.zeros(3)
    KERNELS["scatter"](x, np.array([[1]]), np.ones(1), axes=(0,), kind="add")
    assert not x.any()


def test_dynamic_slices_are_moved_inside():
    x, start = np.arange(5), np.asarray(4)
    np.testing.assert_array_equal(KERNELS["dynamic_slice"](x, start, sizes=(3,)), [2, 3, 4])
    np.testing.assert_array_equal(KERNELS["dynamic_update_slice"](x, np.array([7, 7]), start), [0, 1, 2, 7, 7])


@given(hnp.arrays(np.int64, 12, elements=st.integers(0, 3)), st.booleans())
@settings(deadline=None)
def test_sort_is_stable_and_carries_other_operands(keys, descending):
    positions = np.arange(12)
    expected = sorted(range(12), key=lambda i: -keys[i] if descending else keys[i])
    _, carried = KERNELS["sort"](keys, positions, axis=0, keys=1, descending=descending)
    np.testing.assert_array_equal(carried, expected)


def test_sort_by_two_keys():
    first, second = np.array([1, 0, 1, 0]), np.array([2.0, 5.0, 1.0, 4.0])
    results = KERNELS["sort"](first, second, np.arange(4), axis=0, keys=2)
    np.testing.assert_array_equal(results[2], [3, 1, 2, 0])
    assert isinstance(KERNELS["sort"](first, axis=0), np.ndarray)
