"""Convolutions by minimal filtering: right for every shape, as exact as stated, and left out where asked for."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import build, check

from argosy_cinn import CinnCompiler
from argosy_cinn.runtime import set_threads
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, SymExpr, TensorType
from argosy_tensorcore.storage import StridedArray

pytestmark = pytest.mark.skipif(Target.host().vector_bits != 512, reason="minimal filtering takes vectors of 512 bits")
#: The largest factor by which transforms multiply what rounding does to a sum (`winograd.transforms`).
AMPLIFICATION, UNIT = 189, 2.0**-24


def f32(*shape, seed=3):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def conv(padding=((1, 1), (1, 1)), groups=1):
    ones = (1, 1)
    return lambda x, w: prim.conv(
        x, w, strides=ones, padding=padding, lhs_dilation=ones, rhs_dilation=ones, groups=groups
    )


def run(function, *arguments, **options):
    """The first result, and what the kernels are said to do."""
    executable = CinnCompiler().compile(build(function, arguments), device("cpu"), options=options)
    first, *_ = executable.run([StridedArray.from_array(a) for a in arguments])
    return first.array().copy(), executable.describe()


def exact(x, w, padding=((1, 1), (1, 1)), taps=(3, 3)):
    """The convolution in float64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), *padding))
    windows = np.lib.stride_tricks.sliding_window_view(x, taps, (2, 3))
    return np.einsum("nchwij,fcij->nfhw", windows, w.astype(np.float64), optimize=True)


#: Images, filters, padding and groups: tiles that end inside and outside of an image, rows of more vectors than one,
#: chunks of parts of an image and of several, panels that end anywhere, filters that are no multiple of any block.
SEEN = {
    "whole tiles": ((2, 16, 16, 16), 16, ((1, 1), (1, 1)), 1),
    "odd rows": ((3, 24, 15, 13), 21, ((1, 1), (1, 1)), 1),
    "few places": ((9, 40, 7, 7), 36, ((1, 1), (1, 1)), 1),
    "wide": ((1, 16, 10, 150), 17, ((1, 1), (1, 1)), 1),
    "parts of an image": ((2, 130, 36, 33), 16, ((1, 1), (1, 1)), 1),
    "no padding": ((2, 16, 23, 34), 20, ((0, 0), (0, 0)), 1),
    "uneven padding": ((2, 16, 18, 17), 20, ((2, 0), (0, 2)), 1),
    "groups": ((5, 48, 14, 14), 60, ((1, 1), (1, 1)), 3),
}


@pytest.mark.parametrize("name", SEEN)
def test_every_place_of_every_shape(name):
    """Operands end where no memory follows, or begin where none comes before."""
    image, filters, padding, groups = SEEN[name]
    x, w = f32(*image), f32(filters, image[1] // groups, 3, 3)
    executable = check(conv(padding, groups), x, w, scale=100)
    assert "minimal filtering" in executable.describe()


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(8, 40), st.integers(8, 40), st.integers(5, 40), st.integers(5, 70),
       st.integers(0, 2), st.integers(0, 2))  # fmt: skip
def test_random_shapes(images, channels, filters, height, width, low, high):
    padding = ((low, high), (high, low))
    check(conv(padding), f32(images, channels, height, width), f32(filters, channels, 3, 3), scale=100)


sizes = st.tuples(
    st.integers(0, 3), st.sampled_from([8, 16, 24]), st.sampled_from([8, 16, 33]), st.sampled_from([1, 2, 3])
)
margins = st.tuples(st.tuples(st.integers(0, 2), st.integers(0, 2)), st.tuples(st.integers(0, 2), st.integers(0, 2)))


@settings(max_examples=20, deadline=None)
@given(sizes, margins, st.integers(5, 34), st.integers(5, 40), st.sampled_from([1, 2, 4]))
def test_random_groups_batches_margins_and_threads(size, padding, height, width, threads):
    """Forward and the gradient of the weights, no image at all included: the same bits on any number of threads."""
    images, channels, filters, groups = size
    x, w = f32(images, channels * groups, height, width), f32(filters * groups, channels, 3, 3)
    g = f32(images, filters * groups, *(n + sum(p) - 2 for n, p in zip((height, width), padding, strict=True)))

    def function(x, w, g):
        turned = [prim.transpose(v, permutation=(1, 0, 2, 3)) for v in (x, g)]
        found = [conv(padding, groups)(x, w)]
        return found if groups > 1 or images == 0 else [*found, conv(padding)(*turned)]

    executable = check(function, x, w, g, scale=300)
    held = [StridedArray.from_array(a) for a in (x, w, g)]
    once = [r.array().tobytes() for r in executable.run(held)]
    try:
        set_threads(threads)
        assert [r.array().tobytes() for r in executable.run(held)] == once
    finally:
        set_threads(os.cpu_count() or 1)


def test_a_batch_and_an_image_of_any_size_are_compiled_once():
    n, h = SymExpr.symbol("n"), SymExpr.symbol("h")
    program = Program("symbolic")
    x = program.add_input(TensorType((n, 16, h, 20), "float32"))
    w = program.add_input(TensorType((24, 16, 3, 3), "float32"))
    with emit_at(Builder.at_end(program.block)):
        y = conv()(x, w)
        program.set_outputs([prim.tanh(y), prim.reduce_sum(y, axes=(0, 2, 3))])
    executable = CinnCompiler().compile(program, device("cpu"))
    weights = f32(24, 16, 3, 3) / 12
    for images, height in ((1, 1), (2, 16), (3, 17), (1, 70), (5, 5)):
        image = f32(images, 16, height, 20)
        want, _ = interpret(program, [image, weights])
        got = executable.run([StridedArray.from_array(a) for a in (image, weights)])
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a.array(), b, rtol=1e-3, atol=2e-2)
    assert executable.report()["compilations"] == 1


def test_what_follows_is_still_the_epilogue():
    """Convolution, shift, addition and rectification are one kernel."""

    def block(x, w, shift, other):
        y = conv()(x, w)
        wide = prim.broadcast(shift, shape=y.shape, axes=(1,))
        y = prim.add(prim.add(y, wide), other)
        return prim.select(prim.gt(y, 0.0), y, prim.mul(y, 0.0))

    executable = check(block, f32(2, 16, 20, 20), f32(24, 16, 3, 3), f32(24), f32(2, 24, 20, 20), scale=100)
    assert "minimal filtering" in executable.describe()
    assert "1 kernels" in executable.describe()


@pytest.mark.parametrize("channels", [16, 256])
def test_rounding_is_as_stated(channels):
    """About twice that of a plain sum in the mean square, and below the bound for the worst case."""
    x, w = f32(2, channels, 24, 24), f32(16, channels, 3, 3)
    want, (got, text), (plain, _) = exact(x, w), run(conv(), x, w), run(conv(), x, w, winograd=False)
    assert "minimal filtering" in text
    mean = [np.sqrt(np.mean((y - want) ** 2)) for y in (got, plain)]
    assert mean[0] < 2.7 * mean[1]
    largest = AMPLIFICATION * (channels + 40) * UNIT * np.abs(w).sum((1, 2, 3)) * np.abs(x).max()
    assert (np.abs(got - want) < largest[:, None, None]).all()


def test_the_worst_operands_stay_below_the_bound():
    """Signs that let all terms of one place add up, and cancel at its neighbours."""
    signs = np.where(np.arange(24)[:, None] % 2 == np.arange(24) % 2, 1.0, -1.0).astype(np.float32)
    x = np.ascontiguousarray(np.broadcast_to(signs * np.float32(1.1), (1, 32, 24, 24)))
    w = np.ascontiguousarray(np.broadcast_to(signs[:3, :3] * np.float32(0.3), (16, 32, 3, 3)))
    got, text = run(conv(), x, w)
    assert "minimal filtering" in text
    bound = AMPLIFICATION * (32 + 40) * UNIT * np.abs(w[0]).sum() * np.abs(x).max()
    assert np.abs(got - exact(x, w)).max() < bound


def test_small_whole_numbers_are_close_to_exact():
    x, w = (np.round(3 * a) for a in (f32(2, 16, 16, 16), f32(16, 16, 3, 3)))
    got, _ = run(conv(), x, w)
    assert np.abs(got - exact(x, w)).max() < 1e-3


@pytest.mark.parametrize("name", SEEN)
def test_what_is_not_finite_stays_where_a_plain_sum_has_it(name):
    image, filters, padding, groups = SEEN[name]
    x, w = f32(*image), f32(filters, image[1] // groups, 3, 3)
    x.flat[np.random.default_rng(0).integers(x.size, size=4)] = np.inf, -np.inf, np.nan, np.inf
    w[-1, -1, 1, 1] = -np.inf
    (got, text), (plain, _) = run(conv(padding, groups), x, w), run(conv(padding, groups), x, w, winograd=False)
    assert "minimal filtering" in text
    finite = np.isfinite(plain)
    assert 0 < finite.sum() < finite.size
    np.testing.assert_array_equal(got[~finite], plain[~finite])
    np.testing.assert_allclose(got[finite], plain[finite], rtol=1e-3, atol=1e-3)


def test_numbers_that_only_transforms_are_too_large_for_are_summed_plainly():
    x, w = np.full((1, 16, 20, 20), 3e38, np.float32), f32(24, 16, 3, 3) / 1000
    (got, text), (plain, _) = run(conv(), x, w), run(conv(), x, w, winograd=False)
    assert "minimal filtering" in text
    np.testing.assert_array_equal(got, plain)


def test_any_number_of_threads_gives_the_same_bits():
    """Filters are cut for more threads: no bit depends on that."""
    x, w, found = f32(2, 32, 28, 28), f32(200, 32, 3, 3), []
    try:
        for threads in (1, 2, 3, 7):
            set_threads(threads)
            found.append(run(conv(), x, w)[0])
    finally:
        set_threads(os.cpu_count() or 1)
    assert all((found[0] == y).all() for y in found)


def weights(padding=((1, 1), (1, 1))):
    """The gradient of weights, of the image and the result's gradient."""

    def function(x, g):
        turned = [prim.transpose(v, permutation=(1, 0, 2, 3)) for v in (x, g)]
        return prim.transpose(conv(padding)(*turned), permutation=(1, 0, 2, 3))

    return function


#: Images, filters and padding: sums of one step and of several, parts of an image, chunks of filters and of channels,
#: panels of one to three vectors, images too small for terms in runs.
GRADIENTS = {
    "whole tiles": ((2, 16, 16, 16), 16, ((1, 1), (1, 1))),
    "odd rows": ((3, 24, 15, 13), 21, ((1, 1), (1, 1))),
    "few places": ((9, 40, 7, 7), 72, ((1, 1), (1, 1))),
    "one image": ((1, 33, 30, 30), 32, ((1, 1), (1, 1))),
    "several chunks": ((2, 200, 14, 14), 150, ((1, 1), (1, 1))),
    "parts of an image": ((2, 70, 90, 34), 16, ((1, 1), (1, 1))),
    "wide": ((1, 16, 10, 150), 17, ((1, 1), (1, 1))),
    "no padding": ((2, 16, 23, 34), 20, ((0, 0), (0, 0))),
    "uneven padding": ((3, 47, 18, 17), 36, ((2, 0), (0, 2))),
}


def operands_of_gradient(image, filters, padding):
    places = (n + low + high - 2 for n, (low, high) in zip(image[2:], padding, strict=True))
    return f32(*image), f32(image[0], filters, *places, seed=5)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_weights(name):
    image, filters, padding = GRADIENTS[name]
    executable = check(weights(padding), *operands_of_gradient(image, filters, padding), scale=300)
    assert "minimal filtering" in executable.describe()


def test_a_gradient_of_weights_is_rounded_about_as_a_plain_sum():
    x, g = operands_of_gradient((4, 32, 28, 28), 24, ((1, 1), (1, 1)))
    (got, text), (plain, _) = run(weights(), x, g), run(weights(), x, g, winograd=False)
    assert "minimal filtering" in text
    want = exact(x.transpose(1, 0, 2, 3), g.transpose(1, 0, 2, 3), taps=(28, 28)).transpose(1, 0, 2, 3)
    mean = [np.sqrt(np.mean((y - want) ** 2)) for y in (got, plain)]
    assert mean[0] < 2.7 * mean[1]


def test_any_number_of_threads_gives_the_same_gradient_of_weights():
    x, g = operands_of_gradient((2, 32, 28, 28), 200, ((1, 1), (1, 1)))
    found = []
    try:
        for threads in (1, 2, 3, 7):
            set_threads(threads)
            found.append(run(weights(), x, g)[0])
    finally:
        set_threads(os.cpu_count() or 1)
    assert all((found[0] == y).all() for y in found)


def test_it_can_be_left_out(monkeypatch):
    x, w = f32(2, 16, 16, 16), f32(16, 16, 3, 3)
    found = [run(conv(), x, w, winograd=False), run(conv(), x, w, without=("winograd",))]
    monkeypatch.setenv("ARGOSY_WINOGRAD", "0")
    found.append(run(conv(), x, w))
    assert not any("minimal filtering" in text for _, text in found)
    assert all((y == found[0][0]).all() for y, _ in found)
    assert "minimal filtering" in run(conv(), x, w, winograd=True)[1]
    with pytest.raises(ValueError, match="option winograd is 'no'"):
        run(conv(), x, w, winograd="no")
    monkeypatch.setenv("ARGOSY_WINOGRAD", "off")
    with pytest.raises(ValueError, match="ARGOSY_WINOGRAD is 'off'"):
        run(conv(), x, w)


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_other_dtypes_are_plain_sums(dtype):
    x, w = f32(2, 16, 16, 16).astype(dtype), f32(16, 16, 3, 3).astype(dtype)
    assert "minimal filtering" not in run(conv(), x, w)[1]


@pytest.mark.parametrize(
    ("image", "filters", "settings"),
    [
        ((2, 16, 16, 16), 16, {"strides": (2, 2)}),
        ((2, 16, 20, 20), 16, {"rhs_dilation": (2, 2)}),
        ((2, 4, 16, 16), 16, {}),
        ((1, 64, 4, 4), 64, {}),
    ],
)
def test_what_it_cannot_do_or_would_not_save_is_a_plain_sum(image, filters, settings):
    ones = (1, 1)
    chosen = {"strides": ones, "padding": ((1, 1), (1, 1)), "lhs_dilation": ones, "rhs_dilation": ones, **settings}

    def function(x, w):
        return prim.conv(x, w, groups=1, **chosen)

    assert "minimal filtering" not in check(function, f32(*image), f32(filters, image[1], 3, 3), scale=100).describe()
