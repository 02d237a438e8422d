"""Convolutions in every form they are lowered to: by products, by taps, by places, by phases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import check

from argosy_phi_ops import prim

RNG = np.random.default_rng(11)


def f32(*shape):
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def conv(strides=(1, 1), padding=((0, 0), (0, 0)), spread=(1, 1), dilation=(1, 1), groups=1):
    attributes = {"strides": strides, "padding": padding, "lhs_dilation": spread, "rhs_dilation": dilation}
    return lambda x, w: prim.conv(x, w, groups=groups, **attributes)


def native(function, x, w):
    report = check(function, x, w, scale=100).report()
    assert report["host_calls"] == {}
    return report


@settings(max_examples=20, deadline=None)
@given(
    st.integers(2, 4), st.integers(1, 7), st.integers(-1, 6), st.integers(0, 5), st.sampled_from([1, 2]),
    st.integers(1, 6),
)  # fmt: skip
def test_a_spread_input_is_never_spread(spread, taps, low, high, groups, size):
    if (size - 1) * spread + 1 + low + high < taps:
        return
    made = conv((1,), ((low, high),), (spread,), (1,), groups)
    native(made, f32(2, 4, size), f32(6, 4 // groups, taps))


def test_the_gradient_of_a_patch_embedding_needs_no_patches():
    made = conv(padding=((7, 7), (7, 7)), spread=(8, 8))
    report = native(made, f32(2, 16, 7, 7), f32(3, 16, 8, 8))
    assert report["arena_bytes"] < 1 << 20


@pytest.mark.parametrize("filters", [1, 2])
@pytest.mark.parametrize("strides", [(1, 1), (2, 1)])
def test_a_window_over_one_channel_is_one_loop(filters, strides):
    made = conv(strides, ((1, 2), (0, 1)), groups=6)
    assert native(made, f32(2, 6, 9, 20), f32(6 * filters, 1, 3, 3))["kernel_calls"] == 1


def test_a_gradient_of_such_windows_is_a_sum_for_each_place():
    assert native(conv(padding=((1, 1), (1, 1)), groups=5), f32(1, 10, 17, 13), f32(5, 2, 17, 13))["arena_bytes"] < 2000
    native(conv(padding=((1, 1), (1, 1)), dilation=(2, 1), groups=5), f32(1, 10, 17, 13), f32(10, 2, 8, 13))


@pytest.mark.parametrize("groups", [1, 2])
def test_a_gradient_of_weights_reads_what_it_contracts_in_place(groups):
    """Of windows over several channels: beside the patches, memory holds one small sum for each sample."""
    x, w = f32(3, 4, 20, 21), f32(6, 4 // groups, 18, 19)
    report = native(conv(groups=groups), x, w)
    patches, sums = 3 * 4 * 9 * 18 * 19, 4 // groups * 6 * 3 * 9
    assert report["arena_bytes"] < 4 * (patches + 2 * sums) + 8192


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 3])
def test_one_two_and_three_spatial_axes(rank, groups):
    made = conv((2,) * rank, ((1, 1),) * rank, (1,) * rank, (1,) * rank, groups)
    native(made, f32(2, 6, *(7,) * rank), f32(9, 6 // groups, *(3,) * rank))
    spread = conv((1,) * rank, ((1, 2),) * rank, (2,) * rank, (1,) * rank, groups)
    native(spread, f32(2, 6, *(4,) * rank), f32(9, 6 // groups, *(3,) * rank))
