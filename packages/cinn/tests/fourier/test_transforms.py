"""Fourier transforms have native code: lengths, axes, kinds, signs, precisions, factors, threads; their accuracy."""

from math import isqrt

import numpy as np
import pytest
from programs import build, check

from argosy_cinn import CinnCompiler
from argosy_cinn.fourier.factors import has_radices, radices, split, two_factors
from argosy_cinn.fourier.rewrite import _pieces
from argosy_cinn.fourier.roots import root, roots
from argosy_cinn.runtime import set_threads
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_tensorcore.storage import StridedArray

EPSILON = {"complex64": 2.0**-24, "complex128": 2.0**-53}


def numbers(shape, dtype="complex128"):
    rng = np.random.default_rng(0)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def real(shape, dtype="float64"):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def transform(**attributes):
    return lambda x: prim.fft(x, **attributes)


def native(function, *arguments, **options):
    """Equal to the interpreter's, with no host call."""
    made = check(function, *arguments, scale=100, **options)
    assert made.report()["host_calls"] == {}
    return made


def run(function, x):
    made = CinnCompiler().compile(build(function, [x]), device("cpu"))
    return made.run([StridedArray.from_array(x)], [])[0].array()


def test_lengths_are_products_of_radices():
    for n in range(1, 3000):
        small = all(n % p for p in range(62, n + 1) if all(p % q for q in range(2, isqrt(p) + 1)))
        assert has_radices(n) == small
        if small:
            assert np.prod(radices(n)) == n
        parts = split(n, 16, 64)
        assert parts is None or (parts[0] * parts[1] == n and 4 <= parts[0] <= parts[1] <= 64)
    assert split(1024, 16, 64) == (32, 32)
    assert split(480, 16, 64) == (16, 30)
    with pytest.raises(ValueError, match="134 has a prime factor above 61"):
        radices(134)


def test_roots_of_unity_lie_on_the_circle_to_the_last_digit():
    for n in (1, 2, 3, 8, 12, 100, 4096):
        exact = np.exp(-2j * np.arctan2(np.longdouble(0), np.longdouble(-1)) * np.arange(n) / n)
        found = roots(np.arange(n), n)
        assert np.abs(found - exact).max() < 1.6e-16
        assert root(n // 3, n) == found[n // 3]
    assert roots(np.arange(4), 4).tolist() == [1, -1j, -1, 1j]


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("first", range(1, 200, 20))
def test_every_length_up_to_200_along_either_axis_in_each_kind(first):
    def program(*xs):
        made = []
        for i, x in enumerate(xs):
            axis, kind = i % 2, ("c2c", "r2c", "c2r")[i % 3]
            length = 2 * (x.shape[axis] - 1) + i // 3 % 2 if kind == "c2r" else 0
            made.append(prim.fft(x, axes=(axis,), kind=kind, inverse=bool(i // 2 % 2), length=max(length, 1)))
        return made

    shapes = [(n, 3) if i % 2 == 0 else (3, n) for i, n in enumerate(range(first, first + 20))]
    check(program, *(real(s) if i % 3 == 1 else numbers(s) for i, s in enumerate(shapes)), scale=100)


@pytest.mark.parametrize("kind", ["c2c", "r2c", "c2r"])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_several_axes_and_batches_that_no_vector_divides(kind, inverse, dtype):
    for shape, axes in (((5, 12, 39), (0, 1, 2)), ((2, 3, 10, 9), (2, 1)), ((33, 20), (1,)), ((7, 1, 4), (1, 2))):
        x = numbers(shape, dtype)
        x = x.real.copy() if kind == "r2c" else x
        length = 2 * (shape[axes[-1]] - 1)
        if kind == "c2r" and not has_radices(length):
            length += 1
        native(transform(axes=axes, kind=kind, inverse=inverse, length=length), x)


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(1 << 20,), (3, 1 << 13), (1, 15015), (2, 256), (1, 64), (4096, 2)])
def test_lines_that_are_long_or_few_are_taken_apart(shape, dtype):
    axis = int(np.argmax(shape))
    x = numbers(shape, dtype)
    got = run(transform(axes=(axis,), kind="c2c", inverse=True), x)
    want = np.fft.ifft(x.astype("complex128"), axis=axis, norm="forward")
    assert np.linalg.norm(got - want) <= 5 * EPSILON[dtype] * np.linalg.norm(want)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [16, 100, 2048, 4096, 2401, 1 << 16])
def test_the_error_grows_as_slowly_as_theory_says(n, dtype):
    """Root mean square errors of O(eps sqrt(log n)) (Schatzman, 1996)."""
    x = numbers((8, n), dtype)
    got = run(transform(axes=(1,), kind="c2c"), x).astype("clongdouble")
    want = np.fft.fft(x.astype("clongdouble"), axis=1)
    assert np.linalg.norm((got - want).astype("complex128")) <= 0.75 * EPSILON[dtype] * np.sqrt(np.log2(n)) * float(
        np.linalg.norm(want.astype("complex128"))
    )


def test_there_and_back_again():
    x = real((6, 250), "float32")

    def program(x):
        spectrum = prim.fft(x, axes=(0, 1), kind="r2c")
        back = prim.fft(spectrum, axes=(0, 1), kind="c2r", inverse=True, length=250)
        return prim.mul(back, 1 / 1500)

    np.testing.assert_allclose(run(program, x), x, atol=2e-6)


def test_factors_ride_along():
    """Products with real numbers before and after a transform need no kernel of their own."""

    def program(x):
        y = prim.fft(prim.mul(x, 3.0), axes=(0, 1), kind="c2c")
        z = prim.complex(prim.mul(prim.real(y), 2.0), prim.mul(prim.imag(y), 2.0))
        return prim.div(prim.mul(prim.fft(z, axes=(0, 1), kind="c2c", inverse=True), 0.5), 7.0)

    assert native(program, numbers((20, 24))).report()["kernel_calls"] == 4


def test_factors_that_others_read_or_that_differ_stay():
    def program(x, y):
        once = prim.fft(x, axes=(0,), kind="c2c")
        turned = prim.mul(prim.fft(x, axes=(1,), kind="c2c"), 1j)
        z = prim.complex(prim.mul(prim.real(y), 2.0), prim.mul(prim.imag(y), 3.0))
        return once, prim.mul(once, 2.0), turned, prim.fft(z, axes=(0,), kind="c2c")

    native(program, numbers((6, 10)), numbers((8, 5)))


def test_operands_are_computed_and_results_used_by_other_kernels():
    def program(x, w):
        y = prim.fft(prim.tanh(x), axes=(1,), kind="r2c")
        y = prim.mul(y, prim.complex(w, prim.neg(w)))
        return prim.tanh(prim.fft(y, axes=(1,), kind="c2r", inverse=True, length=30))

    native(program, real((9, 30)), real((16,))[None, :].repeat(9, 0))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("n", [16, 64, 256])
def test_square_lines_are_transformed_in_registers(n, inverse, dtype):
    for lines in (1, 2, 3, 33):
        native(
            lambda x: prim.mul(prim.fft(x, axes=(1,), kind="c2c", inverse=inverse), 0.25), numbers((lines, n), dtype)
        )


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [128, 192, 320, 384, 400, 496])
def test_lines_of_whole_vectors_in_either_precision(n, dtype):
    native(transform(axes=(1,), kind="c2c"), numbers((33, n), dtype))


def test_lines_with_a_length_of_whole_vectors_are_two_steps():
    """Steps whose groups of lines overlap cost more than passes over whole lines, and are not made."""
    pairs = {"float32": {256: (16, 16), 320: (16, 20), 496: (16, 31), 360: None, 500: None, 240: None, 272: None},
             "float64": {128: (8, 16), 192: (8, 24), 256: (16, 16), 208: None, 240: None, 120: None}}  # fmt: skip
    for real_type, lengths in pairs.items():
        for n, parts in lengths.items():
            assert _pieces("c2c", (4096, n), 1, real_type, 512) == parts, (real_type, n)


@pytest.mark.parametrize(("shape", "axis"), [((3, 17), 1), ((5, 34, 3), 1), ((2, 61 * 4), 1), ((59, 2), 0)])
def test_primes_up_to_61_are_radices(shape, axis):
    native(transform(axes=(axis,), kind="c2c"), numbers(shape))


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 67), 1), ((201, 5), 0), ((2, 4099), 1), ((4099, 3), 0), ((2, 10007), 1)]
)
def test_lengths_with_large_prime_factors_are_convolutions(shape, axis, dtype):
    x = numbers(shape, dtype)
    for inverse in (False, True):
        got = run(transform(axes=(axis,), kind="c2c", inverse=inverse), x)
        exact = x.astype("complex128")
        want = np.fft.ifft(exact, axis=axis, norm="forward") if inverse else np.fft.fft(exact, axis=axis)
        assert np.linalg.norm(got - want) <= 8 * EPSILON[dtype] * np.linalg.norm(want)


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [67, 227, 479, 1009, 2 * 1283, 16381])
def test_a_convolution_is_one_kernel_whatever_it_is_multiplied_with(n, dtype):
    """Primes p, of which p - 1 has a large prime factor too (227, 479), and an even number with one; nothing beside the
    lines is read or written."""
    for inverse in (False, True):

        def program(x, inverse=inverse):
            return prim.mul(prim.fft(prim.mul(x, 3.0), axes=(1,), kind="c2c", inverse=inverse), 1 / n)

        made = native(program, numbers((3, n), dtype))
        assert made.report()["kernel_calls"] == 1


@pytest.mark.parametrize("lanes", [2, 8, 16])
def test_convolutions_are_of_whole_vectors_and_long_enough(lanes):
    for n in (67, 1009, 4099, 16381):
        rows, columns = two_factors(n, lanes, 4096)
        assert rows % lanes == columns % lanes == 0
        assert 2 * n - 1 <= rows * columns <= max(lanes * lanes, 1 << (2 * n - 2).bit_length())
    assert two_factors(16411, lanes, 4096) is None


def test_convolutions_do_not_depend_on_the_number_of_threads():
    x, found = numbers((70, 1009), "complex64"), []
    made = CinnCompiler().compile(build(transform(axes=(1,), kind="c2c"), [x]), device("cpu"))
    before = made.report().get("threads")
    try:
        for threads in (1, 3):
            set_threads(threads)
            found.append(made.run([StridedArray.from_array(x)], [])[0].array().tobytes())
    finally:
        set_threads(before or 1)
    assert found[0] == found[1]


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("n", [67, 134, 4099, 8192, 9000])
def test_real_lines_of_lengths_without_steps_are_complex_ones(n):
    native(transform(axes=(1,), kind="r2c"), real((2, n)))
    native(transform(axes=(0,), kind="r2c", inverse=True), real((n, 3)))
    native(transform(axes=(1,), kind="c2r", length=n), numbers((2, n // 2 + 1)))
    native(transform(axes=(0, 1), kind="c2r", inverse=True, length=n), numbers((3, n // 2 + 1)))


def test_very_long_lines_with_large_prime_factors_run_on_the_host():
    made = check(transform(axes=(1,), kind="c2c"), numbers((2, 65537)), scale=1000)
    assert made.report()["host_calls"] == {"prim.fft": 1}


@pytest.mark.parametrize("length", [1, 2, 3, 12, 13])
def test_spectra_that_are_too_short_are_filled_up(length):
    for held in (1, 2, 9):
        native(transform(axes=(0,), kind="c2r", inverse=True, length=length), numbers((held, 3)))


def test_a_state_may_be_a_spectrum():
    def program(x, s):
        return [prim.fft(s, axes=(0,), kind="c2c")], [prim.fft(x, axes=(1,), kind="c2c")]

    check(program, numbers((6, 8)), states=[numbers((6, 8))], scale=100)


def test_results_do_not_depend_on_the_number_of_threads():
    def program(x):
        return prim.fft(x, axes=(0, 1), kind="c2c"), prim.fft(prim.real(x), axes=(1,), kind="r2c")

    x, found = numbers((300, 360), "complex64"), []
    made = CinnCompiler().compile(build(program, [x]), device("cpu"))
    before = made.report().get("threads")
    try:
        for threads in (1, 2, 4):
            set_threads(threads)
            found.append([y.array().tobytes() for y in made.run([StridedArray.from_array(x)], [])])
    finally:
        set_threads(before or 1)
    assert found[0] == found[1] == found[2]
