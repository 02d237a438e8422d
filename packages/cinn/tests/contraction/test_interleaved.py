"""Dilated convolutions and their gradients by minimal filtering on the phases of the image."""

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
from argosy_tensorcore.storage import StridedArray

pytestmark = pytest.mark.skipif(Target.host().vector_bits != 512, reason="minimal filtering takes vectors of 512 bits")
ONES = (1, 1)


def f32(*shape, seed=3):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def dilated(padding, dilation, groups=1):
    return lambda x, w: prim.conv(
        x, w, strides=ONES, padding=padding, lhs_dilation=ONES, rhs_dilation=dilation, groups=groups
    )


def weights(padding, dilation):
    """The gradient of the weights, of the image and the result's gradient."""

    def function(x, g):
        turned = [prim.transpose(v, permutation=(1, 0, 2, 3)) for v in (x, g)]
        made = prim.conv(*turned, strides=dilation, padding=padding, lhs_dilation=ONES, rhs_dilation=ONES, groups=1)
        return prim.transpose(made, permutation=(1, 0, 2, 3))

    return function


def operands_of_gradient(image, filters, padding, dilation):
    along = zip(image[2:], padding, dilation, strict=True)
    places = (n + low + high - 2 * d for n, (low, high), d in along)
    return f32(*image), f32(image[0], filters, *places, seed=5)


def run(function, *arguments, **options):
    executable = CinnCompiler().compile(build(function, arguments), device("cpu"), options=options)
    first, *_ = executable.run([StridedArray.from_array(a) for a in arguments])
    return first.array().copy(), executable.describe()


#: Images, filters, padding, dilation and groups: phases of one size and of several, of one axis and of both, padding
#: that is a multiple of the dilation and that is none, or that is less than the window on one side.
SEEN = {
    "whole phases": ((2, 16, 32, 32), 16, ((2, 2), (2, 2)), (2, 2), 1),
    "odd sizes": ((2, 24, 29, 31), 21, ((2, 2), (2, 2)), (2, 2), 1),
    "thirds": ((2, 16, 40, 38), 24, ((3, 3), (3, 3)), (3, 3), 1),
    "one axis": ((2, 16, 23, 34), 20, ((1, 1), (2, 2)), (1, 2), 1),
    "unequal": ((2, 16, 36, 40), 20, ((3, 2), (1, 4)), (3, 2), 1),
    "no padding": ((2, 16, 33, 30), 20, ((0, 0), (0, 0)), (2, 2), 1),
    "cut off": ((2, 16, 40, 40), 20, ((2, -3), (3, -1)), (2, 2), 1),
    "groups": ((3, 48, 28, 28), 60, ((2, 2), (2, 2)), (2, 2), 3),
}


@pytest.mark.parametrize("name", SEEN)
def test_every_place_of_every_shape(name):
    image, filters, padding, dilation, groups = SEEN[name]
    x, w = f32(*image), f32(filters, image[1] // groups, 3, 3)
    executable = check(dilated(padding, dilation, groups), x, w, scale=100)
    assert "minimal filtering" in executable.describe()


@pytest.mark.parametrize("name", [name for name in SEEN if name != "groups"])
def test_gradients_of_weights(name):
    image, filters, padding, dilation, _ = SEEN[name]
    operands = operands_of_gradient(image, filters, padding, dilation)
    executable = check(weights(padding, dilation), *operands, scale=300)
    assert "minimal filtering" in executable.describe()


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 3), st.integers(8, 20), st.integers(8, 20), st.integers(9, 40), st.integers(9, 40),
    st.tuples(st.integers(1, 4), st.integers(1, 4)), st.integers(0, 5), st.integers(0, 5), st.booleans(),
)  # fmt: skip
def test_random_shapes(images, channels, filters, height, width, dilation, low, high, gradient):
    image, padding = (images, channels, height, width), ((low, high), (high, low))
    if gradient:
        check(weights(padding, dilation), *operands_of_gradient(image, filters, padding, dilation), scale=300)
    else:
        check(dilated(padding, dilation), f32(*image), f32(filters, channels, 3, 3), scale=100)


def test_what_comes_before_and_after():
    """The image is computed, and so is what is made of the result."""

    def block(x, w, shift):
        y = dilated(((2, 2), (2, 2)), (2, 2))(prim.tanh(x), w)
        return prim.mul(prim.add(y, prim.broadcast(shift, shape=y.shape, axes=(1,))), y), prim.exp(x)

    executable = check(block, f32(2, 16, 32, 31), f32(24, 16, 3, 3), f32(24), scale=100)
    assert "minimal filtering" in executable.describe()
    assert executable.report()["host_calls"] == {}


def test_what_is_not_finite_stays_where_a_plain_sum_has_it():
    x, w = f32(2, 16, 31, 32), f32(20, 16, 3, 3)
    x.flat[[7, 3000, 20000]] = np.inf, np.nan, -np.inf
    function = dilated(((2, 2), (3, 2)), (2, 2))
    (got, text), (plain, _) = run(function, x, w), run(function, x, w, winograd=False)
    assert "minimal filtering" in text
    finite = np.isfinite(plain)
    assert 0 < finite.sum() < finite.size
    np.testing.assert_array_equal(got[~finite], plain[~finite])
    np.testing.assert_allclose(got[finite], plain[finite], rtol=1e-3, atol=1e-3)


def test_any_number_of_threads_gives_the_same_bits():
    found = []
    padding, dilation = ((2, 2), (2, 2)), (2, 2)
    try:
        for threads in (1, 2, 4):
            set_threads(threads)
            result, _ = run(dilated(padding, dilation), f32(2, 32, 28, 28), f32(70, 32, 3, 3))
            operands = operands_of_gradient((2, 32, 28, 28), 70, padding, dilation)
            found.append((result, run(weights(padding, dilation), *operands)[0]))
    finally:
        set_threads(os.cpu_count() or 1)
    assert all(np.array_equal(x, y) for pair in found for x, y in zip(found[0], pair, strict=True))


@pytest.mark.parametrize("options", [{"winograd": False}, {"without": ("winograd",)}])
def test_it_can_be_left_out(options):
    """The image is then read in place: no phases are in memory."""
    _, text = run(dilated(((2, 2), (2, 2)), (2, 2)), f32(2, 16, 32, 32), f32(16, 16, 3, 3), **options)
    assert "minimal filtering" not in text
    assert "cinn.kept" not in text


@pytest.mark.parametrize(
    ("image", "filters", "dilation"), [((2, 4, 32, 32), 16, (2, 2)), ((1, 16, 12, 12), 16, (5, 5))]
)
def test_what_would_not_be_faster_is_a_plain_sum(image, filters, dilation):
    padding = tuple((d, d) for d in dilation)
    executable = check(dilated(padding, dilation), f32(*image), f32(filters, image[1], 3, 3), scale=100)
    assert "minimal filtering" not in executable.describe()
