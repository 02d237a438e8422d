"""Every library of Fourier transforms against sums of exponentials: kinds, signs, precisions, axes, places, threads."""

from importlib.util import find_spec

import numpy as np
import pytest

from argosy_phi_ops.reference.kernels import KERNELS, fourier
from argosy_phi_ops.reference.kernels.registry import kernel_into_for

RNG = np.random.default_rng(0)


@pytest.fixture(params=["ducc0", "scipy", "numpy"])
def library(request):
    if find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return fourier.fft_library(request.param)


def exponentials(x, axes, inverse):
    """The definition, axis by axis."""
    for axis in axes:
        n = x.shape[axis]
        matrix = np.exp((2j if inverse else -2j) * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
        x = np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
    return x


def numbers(shape, dtype):
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape) if dtype.startswith("c") else x).astype(dtype)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("axes", [(0,), (2, 0), (0, 1, 2)])
@pytest.mark.parametrize(
    ("real", "wide", "tolerance"), [("float32", "complex64", 2e-5), ("float64", "complex128", 1e-12)]
)
def test_transforms(library, real, wide, tolerance, axes, inverse):
    """Results keep the precision of what they are of, and can be put where they are wanted."""
    z, x = numbers((3, 4, 5), wide), numbers((3, 4, 5), real)
    expected = exponentials(z, axes, inverse)
    spectrum = exponentials(x, axes, inverse)
    half = np.take(spectrum, range(x.shape[axes[-1]] // 2 + 1), axes[-1])
    back = exponentials(spectrum, axes, not inverse).real
    cases = [
        (lambda out: library.c2c(z, axes, inverse, out), expected, wide),
        (lambda out: library.r2c(x, axes, inverse, out), half, wide),
        (lambda out: library.c2r(half.astype(wide), axes, not inverse, x.shape[axes[-1]], out), back, real),
    ]
    for call, wanted, dtype in cases:
        made = call(None)
        assert made.dtype == dtype
        np.testing.assert_allclose(made, wanted, atol=tolerance * np.abs(wanted).max())
        place = np.full(made.shape, np.nan, dtype)
        assert call(place) is place
        np.testing.assert_array_equal(place, made)


def test_lengths_that_cut_and_pad_a_half_spectrum(library):
    """As numpy's."""
    z = numbers((3, 4), "complex128")
    for length in (2, 5, 6, 7, 9, 10):
        made = library.c2r(z, (0, 1), True, length, None)
        expected = np.fft.irfftn(z, s=(3, length), axes=(0, 1), norm="forward")
        np.testing.assert_allclose(made, expected, atol=1e-12)


def test_any_number_of_threads_gives_the_same_bits(library, monkeypatch):
    """The lines of a transform are independent."""
    x = numbers((256, 512), "complex64")
    made = []
    for threads in ("1", "2"):
        monkeypatch.setenv("ARGOSY_NUM_THREADS", threads)
        assert fourier.threads_for(x) == int(threads)
        assert fourier.threads_for(x[:8]) == 1
        made.append(library.c2c(x, (0, 1), False, None))
    np.testing.assert_array_equal(*made)


def test_nothing_to_transform():
    """No elements, and no axes."""
    for shape in ((0, 4), (2, 0, 4)):
        made = KERNELS["fft"](np.zeros(shape, np.complex64), axes=(-1,), kind="c2c")
        assert (made.shape, made.dtype) == (shape, np.complex64)
    z = numbers((2, 3), "complex128")
    np.testing.assert_array_equal(KERNELS["fft"](z, axes=(), kind="c2c"), z)


@pytest.mark.parametrize(
    ("name", "operands", "attributes"),
    [
        ("fft", [numbers((4, 6), "complex64")], {"axes": (0, 1), "kind": "c2c", "inverse": True, "length": 0}),
        ("fft", [numbers((4, 6), "float64")], {"axes": (1,), "kind": "r2c"}),
        ("fft", [numbers((4, 4), "complex128")], {"axes": (1,), "kind": "c2r", "length": 6}),
    ],
)
def test_kernels_that_write_to_an_array(name, operands, attributes):
    """They give what the other form gives."""
    expected = KERNELS[name](*operands, **attributes)
    out = np.empty_like(expected, order="C")
    kernel_into_for(name)(out, *operands, **attributes)
    np.testing.assert_array_equal(out, expected)
