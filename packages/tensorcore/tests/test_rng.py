"""Philox streams: known answers, independence of how they are drawn, and the numbers made of them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy_tensorcore.erfinv import erfinv, log_positive
from argosy_tensorcore.rng import (
    Generator,
    normal_from_bits,
    philox_bits,
    philox_block,
    uniform_from_bits,
)

ONES = 0xFFFFFFFF
words64 = st.integers(0, 2**64 - 1)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((ONES,) * 4, (ONES,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_known_answers_of_the_authors(counter, key, expected):
    """A block equals the known-answer vectors published with Random123."""
    assert " ".join(f"{word:08x}" for word in philox_block(counter, key)) == expected


@given(words64, words64, st.integers(0, 2**40), st.integers(0, 200))
@settings(deadline=None)
def test_arrays_equal_blocks(seed, counter, index0, count):
    """Array evaluation gives the same words as one block at a time, from any element on."""
    bits = philox_bits(seed, counter, (count,), index0)
    key, high = (seed & ONES, seed >> 32), (counter & ONES, counter >> 32)
    for i in {0, 1, count // 2, count - 1} & set(range(count)):
        block, lane = divmod(index0 + i, 4)
        assert bits[i] == philox_block((block & ONES, block >> 32, *high), key)[lane]


def test_chunks_and_shapes_do_not_matter():
    """A draw longer than a chunk is seamless, and equals its parts drawn apart."""
    whole = philox_bits(5, 9, (40_001,))
    parts = [philox_bits(5, 9, (n,), start) for start, n in ((0, 7), (7, 16_377), (16_384, 23_617))]
    assert (np.concatenate(parts) == whole).all()
    assert (philox_bits(5, 9, (3, 5, 7)).reshape(-1) == whole[:105]).all()
    assert philox_bits(5, 9, (2, 0)).shape == (2, 0)
    assert philox_bits(5, 9, ()).shape == ()
    assert philox_bits(5, 9, 4).dtype == np.uint32


def test_negative_seeds_wrap_and_negative_places_are_refused():
    """Seeds are taken modulo 2**64; a negative index or size raises ValueError."""
    assert (philox_bits(-1, 0, (4,)) == philox_bits(2**64 - 1, 0, (4,))).all()
    with pytest.raises(ValueError, match="negative"):
        philox_bits(0, 0, (4,), -1)
    with pytest.raises(ValueError, match="negative"):
        philox_bits(0, 0, (-4,))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniforms_fill_the_unit_interval(dtype):
    """Uniforms lie in [0, 1), are exact in their dtype, and have the mean and variance they must."""
    count = 40_000
    bits = philox_bits(1, 2, (count, 2) if dtype == "float64" else (count,))
    u = uniform_from_bits(bits, dtype)
    assert u.dtype.name == dtype
    assert u.shape == (count,)
    values = u.astype(np.float64)
    assert values.min() >= 0
    assert values.max() < 1
    half_step = {"bfloat16": 2.0**-9, "float16": 2.0**-12}.get(dtype, 0.0)
    assert abs(values.mean() + half_step - 0.5) < 5 / math.sqrt(12 * count)
    assert abs(values.var() - 1 / 12) < 0.002


def test_uniform_ends_are_exact():
    """The smallest and largest words give 0 and the largest number below 1."""
    ends = np.array([0, ONES], np.uint32)
    assert uniform_from_bits(ends).tolist() == [0.0, 1 - 2.0**-24]
    assert uniform_from_bits(np.stack([ends, ends], -1), "float64").tolist() == [0.0, 1 - 2.0**-53]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_normals_have_the_normal_distribution(dtype):
    """Moments and the distribution function of 40,000 normals are those of the standard normal."""
    count = 40_000
    bits = philox_bits(3, 4, (count, 2) if dtype == "float64" else (count,))
    z = normal_from_bits(bits, dtype)
    assert z.dtype.name == dtype
    values = np.sort(z.astype(np.float64))
    assert np.isfinite(values).all()
    assert abs(values.mean()) < 5 / math.sqrt(count)
    assert abs(values.var() - 1) < 5 * math.sqrt(2 / count)
    # Kolmogorov-Smirnov at one in a thousand.
    cdf = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in values])
    assert np.abs(cdf - (np.arange(count) + 0.5) / count).max() < 1.95 / math.sqrt(count)


def test_normals_are_symmetric_and_finite_at_the_ends():
    """The extreme words give finite opposite numbers, and complementary words opposite numbers."""
    words = np.array([0, ONES, 1 << 31, (1 << 31) - 1, 12345 << 9, ONES - (12345 << 9)], np.uint32)
    z = normal_from_bits(words)
    assert np.isfinite(z).all()
    assert (z[::2] == -z[1::2]).all()
    pairs = normal_from_bits(np.stack([words, words], -1), "float64")
    assert np.isfinite(pairs).all()
    assert (pairs[::2] == -pairs[1::2]).all()


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 4e-7), (np.float64, 1e-15)])
def test_erfinv_inverts_erf(dtype, bound):
    """The relative error of erfinv, found through one Newton step in double precision, is bounded."""
    x = np.concatenate([np.linspace(-0.9999, 0.9999, 3001), 1 - np.logspace(-1, -6, 30)]).astype(dtype)
    y = erfinv(x).astype(np.float64)
    step = [(math.erf(b) - float(a)) * math.sqrt(math.pi) / 2 * math.exp(b * b) for a, b in zip(x, y, strict=True)]
    assert np.max(np.abs(step) / np.maximum(np.abs(y), 1e-3)) < bound * 20  # erf's own rounding grows with exp(b*b)
    assert np.max(np.abs(step)[:3001] / np.maximum(np.abs(y[:3001]), 0.1)) < bound * 5


def test_erfinv_at_and_beyond_the_ends():
    """+-1 give infinities, what lies outside gives nan, zero gives zero."""
    got = erfinv(np.array([1, -1, 2, np.nan, 0], np.float64))
    np.testing.assert_array_equal(got, [np.inf, -np.inf, np.nan, np.nan, 0])


@pytest.mark.parametrize(("dtype", "ulps"), [(np.float32, 3), (np.float64, 3)])
def test_the_logarithm_is_accurate(dtype, ulps):
    """log_positive is within a few units in the last place over the whole range of normal numbers."""
    info = np.finfo(dtype)
    x = np.exp(np.linspace(np.log(float(info.tiny)), np.log(float(info.max)) * 0.999, 20_001)).astype(dtype)
    x = np.concatenate([x, np.linspace(0.5, 2, 2001).astype(dtype)])
    exact = np.log(x.astype(np.longdouble))
    error = np.abs(log_positive(x) - exact)
    assert (error <= ulps * info.eps * np.maximum(np.abs(exact), info.eps)).mean() > 0.99
    assert error.max() <= ulps * info.eps * 90 * (8 if dtype is np.float64 else 1)


def test_normal_bits_are_fixed_for_all_time():
    """Known normals: any change of a bit in polynomial, logarithm or order of operations shows here."""
    bits = philox_bits(0, 0, (8,))
    assert normal_from_bits(bits).view(np.uint32).tolist() == NORMAL_FLOAT32
    assert normal_from_bits(bits.reshape(4, 2), "float64").view(np.uint64).tolist() == NORMAL_FLOAT64


NORMAL_FLOAT32 = [
    3196254799,
    1066842959,
    1059148730,
    1049165288,
    1073027144,
    3199511557,
    1057082448,
    3219425708,
]
NORMAL_FLOAT64 = [13821652027230530783, 4603851409473462302, 4611302326261591826, 4602742083149318411]


@pytest.mark.parametrize("function", [uniform_from_bits, normal_from_bits])
def test_wrong_requests_are_named(function):
    """Integer dtypes and unpaired words for float64 raise errors that say what is wanted."""
    with pytest.raises(TypeError, match="int32"):
        function(philox_bits(0, 0, 4), "int32")
    with pytest.raises(ValueError, match="pairs"):
        function(philox_bits(0, 0, 4).reshape(1, 4), "float64")


def test_a_generator_counts_draws_in_its_state():
    """Draws have consecutive counters; the state tensor is live, copyable and can be put back."""
    generator = Generator(42)
    assert [generator.draw() for _ in range(3)] == [(42, 0), (42, 1), (42, 2)]
    saved = generator.get_state()
    live = generator.state
    assert live.tolist() == [42, 3]
    generator.draw()
    assert live.tolist() == [42, 4]
    assert live.inplace_version == 1
    live.set_value(np.array([7, 100], np.uint64))
    assert (generator.seed, generator.offset, generator.draw()) == (7, 100, (7, 100))
    generator.set_state(saved)
    assert generator.draw() == (42, 3)
    generator.advance(5)
    assert generator.draw() == (42, 9)
    assert generator.manual_seed(-1) is generator
    assert generator.initial_seed() == 2**64 - 1
    with pytest.raises(ValueError, match="uint64"):
        generator.set_state(np.zeros(3, np.uint64))
