"""Convolutions in every form they are lowered to: by products, by taps, by places, by phases."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import DTYPES, build, check, unguarded_report

from argosy_cinn.pipeline import lower_program
from argosy_cinn.target import Target
from argosy_phi_ops import prim

RNG = np.random.default_rng(11)


def f32(*shape):
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def conv(strides=(1, 1), padding=((0, 0), (0, 0)), spread=(1, 1), dilation=(1, 1), groups=1):
    attributes = {"strides": strides, "padding": padding, "lhs_dilation": spread, "rhs_dilation": dilation}
    return lambda x, w: prim.conv(x, w, groups=groups, **attributes)


def native(function, x, w):
    report = unguarded_report(check(function, x, w, scale=100))
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


@pytest.mark.parametrize("taps", [(3, 3), (3, 2), (5, 3)])
@pytest.mark.parametrize("padding", [(1, 1), (2, 0), (0, 1)])
def test_phases_of_different_windows_are_products_of_their_own(taps, padding):
    """Of a spread input with many filters: no product multiplies zeros that only make windows equal."""
    made = conv((1, 1), tuple((n, n + 1) for n in padding), (2, 2))
    report = native(made, f32(2, 6, 7, 9), f32(32, 6, *taps))
    assert report["kernel_calls"] >= 4


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


#: Images, windows, and what is done with them: vectors of places that lie on one row, two, or several; strides that are
#: read by one load, by two, and element by element; windows that leave the image on any side.
SEEN = {
    "rows of 16": ((2, 5, 9, 18), (7, 5, 3, 3), {}),
    "rows of 20": ((2, 20, 6, 20), (33, 20, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "rows of 7": ((3, 18, 7, 7), (20, 18, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "rows of 4": ((2, 3, 40, 4), (9, 3, 3, 1), {"padding": ((1, 2), (0, 0))}),
    "stride 2": ((2, 6, 23, 41), (17, 6, 5, 3), {"strides": (2, 2), "padding": ((2, 1), (1, 0))}),
    "stride 3": ((2, 6, 31, 40), (17, 6, 3, 3), {"strides": (1, 3), "padding": ((0, 1), (2, 2))}),
    "dilated": ((1, 32, 19, 21), (8, 32, 3, 3), {"padding": ((2, 2), (3, 3)), "dilation": (2, 3)}),
    "in groups": ((2, 12, 16, 17), (18, 4, 3, 3), {"padding": ((1, 1), (1, 1)), "groups": 3}),
    "many channels": ((1, 70, 8, 32), (5, 70, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "rows on end": ((5, 9, 3, 11), (20, 9, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "images on end": ((9, 18, 3, 5), (20, 18, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "volumes": (
        (3, 4, 3, 4, 5),
        (20, 4, 3, 3, 3),
        {"strides": (1,) * 3, "padding": ((1, 1),) * 3, "spread": (1,) * 3, "dilation": (1,) * 3},
    ),
    "several steps": ((1, 131, 6, 18), (7, 131, 3, 3), {}),
    "one row": ((2, 20, 300), (24, 20, 5), {"strides": (1,), "padding": ((2, 2),), "spread": (1,), "dilation": (1,)}),
}


@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_patches_are_never_in_memory(name, dtype):
    """The product reads the image where it is: no buffer is as large as the patches, or even the image."""
    image, window, settings = SEEN[name]
    dtype = DTYPES.get(dtype, dtype)
    report = native(conv(**settings), f32(*image).astype(dtype), f32(*window).astype(dtype))
    results = 0 if prod(image[2:]) > 100 else prod(image[2:]) * image[0] * window[0]  # of few places: joined, moved
    assert report["arena_bytes"] <= results * np.dtype(dtype).itemsize + 4096


@pytest.mark.parametrize("shape", [(2, 32, 24, 24), (3, 18, 7, 7)])
def test_patches_of_what_is_computed_are_never_in_memory(shape):
    """A convolution of an activation: that gets memory, not the nine times larger patches of it."""

    def layer(x, w):
        positive = prim.tanh(prim.mul(x, x))
        return conv(padding=((1, 1), (1, 1)))(positive, w)

    report = native(layer, f32(*shape), f32(8, shape[1], 3, 3))
    assert report["arena_bytes"] <= 4 * prod(shape) + 4 * 8 * shape[0] * prod(shape[2:]) + 4096


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("channels", [3, 8, 16, 20])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
@pytest.mark.parametrize("size", [(13, 16), (12, 19)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_gradient_of_weights_reads_images_where_they_are(channels, strides, size, dtype):
    """What is summed comes in one run for each image, and is seen through windows on the other side."""
    rows, columns = (-(-n // s) for n, s in zip(size, strides, strict=True))
    reads = conv((1, 1), tuple((1, s - 1 - (n - 1) % s + 1) for n, s in zip(size, strides, strict=True)),
                 dilation=strides)  # fmt: skip

    def gradient(x, g):
        return reads(prim.transpose(x, permutation=(1, 0, 2, 3)), prim.transpose(g, permutation=(1, 0, 2, 3)))

    dtype = DTYPES.get(dtype, dtype)
    report = native(gradient, f32(2, channels, *size).astype(dtype), f32(2, 7, rows, columns).astype(dtype))
    assert report["arena_bytes"] <= 4 * (channels * 7 * 9 + 2 * 7 * rows * columns) + 8192


@pytest.mark.parametrize("groups", [1, 2])
def test_a_gradient_of_large_windows_reads_images_where_they_are(groups):
    report = native(conv(groups=groups), f32(3, 4, 20, 21), f32(6, 4 // groups, 18, 19))
    assert report["arena_bytes"] < 4 * 3 * 6 * 9 + 4096


def test_sums_over_several_axes_stop_where_memory_jumps():
    """Products that contract axes which are no single stride apart: neither operand is copied."""

    def product(x, y):
        return prim.dot_general(x, y, lhs_contract=(0, 2), rhs_contract=(0, 2))

    report = native(product, f32(3, 20, 700), f32(3, 33, 700))
    assert report["arena_bytes"] < 4096
    assert report["kernel_calls"] == 1
    native(product, f32(2, 5, 129), f32(2, 4, 129))


def test_what_is_beyond_an_edge_stays_there_through_a_reshape():
    """A window of an axis that keeps its place while others are split or joined: one access, linear in the loops."""

    def padded(x):
        joined = prim.reshape(x, shape=(6, 40))
        return prim.pad(joined, np.float32(0), low=(0, 1), high=(0, 1), interior=(0, 0))

    native(lambda x, w: prim.mul(padded(x), w), f32(2, 3, 40), f32(6, 42))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 3])
def test_one_two_and_three_spatial_axes(rank, groups):
    made = conv((2,) * rank, ((1, 1),) * rank, (1,) * rank, (1,) * rank, groups)
    native(made, f32(2, 6, *(7,) * rank), f32(9, 6 // groups, *(3,) * rank))
    spread = conv((1,) * rank, ((1, 2),) * rank, (2,) * rank, (1,) * rank, groups)
    native(spread, f32(2, 6, *(4,) * rank), f32(9, 6 // groups, *(3,) * rank))


@pytest.mark.parametrize("shape", [(2, 8, 9, 11), (3, 8, 5, 5), (1, 8, 16, 16)])
def test_convolutions_of_bytes_are_products_of_bytes(shape):
    """Summed in int32, equal to numpy's integers: no operand is widened in memory, and the lowered program's product
    takes int8."""
    x, w = (RNG.integers(-128, 128, s).astype(np.int8) for s in (shape, (12, 4, 3, 3)))
    widened = conv((2, 1), ((1, 1), (0, 1)), groups=2)

    def made(x, w):
        return widened(prim.cast(x, dtype="int32"), prim.cast(w, dtype="int32"))

    native(made, x, w)
    lowered = lower_program(build(made, [x, w]), Target.host())
    (product,) = [op for op in lowered.walk() if op.name == "prim.dot_general"]
    assert [v.dtype for v in (*product.operands, product.result)] == ["int8", "int8", "int32"]
