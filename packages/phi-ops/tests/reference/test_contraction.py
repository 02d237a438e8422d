"""dot_general and conv against einsum and loops."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy_phi_ops.reference.kernels import KERNELS

dot_general, conv = KERNELS["dot_general"], KERNELS["conv"]


@settings(deadline=None)
@given(st.data())
def test_dot_general_equals_einsum_for_any_arrangement_of_axes(data):
    names = data.draw(st.permutations("abcdefg"))
    counts = [data.draw(st.integers(0, 2)) for _ in range(2)]
    batch, contract = names[: counts[0]], names[2 : 2 + counts[1]]
    left_free, right_free = (
        names[4 : 4 + data.draw(st.integers(0, 2))],
        names[6 : 6 + data.draw(st.integers(0, 1))],
    )
    left = data.draw(st.permutations([*batch, *contract, *left_free]))
    right = data.draw(st.permutations([*batch, *contract, *right_free]))
    sizes = {name: data.draw(st.integers(0, 3)) for name in names}
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.integers(-4, 5, [sizes[n] for n in left]).astype(np.float64)
    y = rng.integers(-4, 5, [sizes[n] for n in right]).astype(np.float64)
    result = dot_general(
        x,
        y,
        lhs_contract=tuple(left.index(n) for n in contract),
        rhs_contract=tuple(right.index(n) for n in contract),
        lhs_batch=tuple(left.index(n) for n in batch),
        rhs_batch=tuple(right.index(n) for n in batch),
    )
    out = [*batch, *(n for n in left if n in left_free), *(n for n in right if n in right_free)]
    np.testing.assert_array_equal(result, np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x, y))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_products_are_summed_in_float32(dtype):
    x = np.full((1, 4096), 0.1).astype(dtype)
    result = dot_general(x, x.T, lhs_contract=(1,), rhs_contract=(0,))
    assert result.dtype == dtype
    exact = np.float64(x[0, 0]) ** 2 * 4096
    assert float(result[0, 0]) == pytest.approx(exact, rel=float(ml_dtypes.finfo(dtype).eps))
    wide = dot_general(x, x.T, lhs_contract=(1,), rhs_contract=(0,), accumulate="float32")
    assert wide.dtype == np.float32


def test_integer_products_stay_integers():
    x = np.arange(6, dtype=np.int8).reshape(2, 3) * 20
    result = dot_general(x, x, lhs_contract=(1,), rhs_contract=(1,))
    assert result.dtype == np.int8
    np.testing.assert_array_equal(result, (x.astype(int) @ x.T.astype(int)).astype(np.int8))


def naive_conv(x, w, strides, padding, lhs_dilation, rhs_dilation, groups):
    spread = np.zeros((*x.shape[:2], *((n - 1) * d + 1 for n, d in zip(x.shape[2:], lhs_dilation, strict=True))))
    spread[(..., *(slice(None, None, d) for d in lhs_dilation))] = x
    padded = np.pad(spread, [(0, 0), (0, 0), *padding])
    rank, per_group = len(strides), w.shape[1]
    out = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, d, s in zip(padded.shape[2:], w.shape[2:], rhs_dilation, strides, strict=True)
    ]
    result = np.zeros((x.shape[0], w.shape[0], *out))
    for o in range(w.shape[0]):
        first = o // (w.shape[0] // groups) * per_group
        for position in np.ndindex(*out):
            for tap in np.ndindex(*w.shape[2:]):
                at = [position[i] * strides[i] + tap[i] * rhs_dilation[i] for i in range(rank)]
                column = padded[(slice(None), slice(first, first + per_group), *at)]
                result[(slice(None), o, *position)] += column @ w[(o, slice(None), *tap)]
    return result


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_conv_equals_the_definition_with_groups_strides_and_dilations(data):
    rank, groups = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))
    small = st.integers(1, 2)
    per_axis = lambda strategy: tuple(data.draw(strategy) for _ in range(rank))  # noqa: E731
    kernel = per_axis(st.integers(1, 3))
    attributes = {
        "strides": per_axis(small),
        "padding": per_axis(st.tuples(st.integers(0, 2), st.integers(0, 2))),
        "lhs_dilation": per_axis(small),
        "rhs_dilation": per_axis(small),
        "groups": groups,
    }
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.integers(-3, 4, (2, 2 * groups, *per_axis(st.integers(5, 6)))).astype(np.float64)
    w = rng.integers(-3, 4, (2 * groups, 2, *kernel)).astype(np.float64)
    np.testing.assert_array_equal(conv(x, w, **attributes), naive_conv(x, w, **attributes))


def test_conv_of_no_images_is_empty():
    attributes = {"strides": (1,), "padding": ((0, 0),), "lhs_dilation": (1,), "rhs_dilation": (1,)}
    assert conv(np.zeros((0, 2, 5)), np.zeros((3, 2, 2)), **attributes).shape == (0, 3, 4)
