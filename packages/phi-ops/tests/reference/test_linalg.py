"""Decompositions and transforms against their defining equations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy_phi_ops.reference.kernels import KERNELS


def matrices(*shape: int, dtype: str = "float64") -> np.ndarray:
    rng = np.random.default_rng(3)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.startswith("c") else x).astype(dtype)


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 5), (5, 3), (0, 2, 2)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_lu_reassembles_to_the_permuted_matrix(shape, dtype):
    x = matrices(*shape, dtype=dtype)
    packed, pivots, order = KERNELS["lu"](x)
    least = min(shape[-2:])
    assert pivots.dtype == np.int32
    assert pivots.shape == (*shape[:-2], least)
    lower = np.tril(packed[..., :least], -1) + np.eye(shape[-2], least)
    upper = np.triu(packed[..., :least, :])
    permuted = x.copy().reshape(-1, *shape[-2:])
    for matrix, rows in zip(permuted, pivots.reshape(-1, least), strict=True):
        for k, row in enumerate(rows):
            matrix[[k, row]] = matrix[[row, k]]
    np.testing.assert_allclose(lower @ upper, permuted.reshape(shape), atol=1e-12)
    np.testing.assert_array_equal(np.take_along_axis(x, order[..., None], -2), permuted.reshape(shape))
    assert order.dtype == np.int32


def test_lu_of_a_singular_matrix_has_a_zero_pivot():
    packed, *_ = KERNELS["lu"](np.ones((2, 2)))
    assert packed[1, 1] == 0


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("conjugate", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_solve_solves(left, transpose, conjugate, lower, unit):
    a, b = matrices(2, 4, 4, dtype="complex128"), matrices(2, 4, 4, dtype="complex128")
    x = KERNELS["triangular_solve"](a, b, lower=lower, transpose=transpose, conjugate=conjugate, unit=unit, left=left)
    op = np.tril(a) if lower else np.triu(a)
    if unit:
        op[..., range(4), range(4)] = 1
    op = op.conj() if conjugate else op
    op = op.swapaxes(-1, -2) if transpose else op
    np.testing.assert_allclose(op @ x if left else x @ op, b, atol=1e-9)


def test_decompositions_reassemble():
    x = matrices(2, 4, 3)
    q, r = KERNELS["qr"](x)
    np.testing.assert_allclose(q @ r, x, atol=1e-12)
    u, s, vh = KERNELS["svd"](x)
    np.testing.assert_allclose((u * s[..., None, :]) @ vh, x, atol=1e-12)
    h = x.swapaxes(-1, -2) @ x
    factor = KERNELS["cholesky"](h)
    np.testing.assert_allclose(factor @ factor.swapaxes(-1, -2), h, atol=1e-12)
    w, v = KERNELS["eigh"](h)
    np.testing.assert_allclose(h @ v, v * w[..., None, :], atol=1e-10)
    values, vectors = KERNELS["eig"](h[0].astype(np.float32))
    assert values.dtype == vectors.dtype == np.complex64


def dft(x: np.ndarray, sign: int, axes: tuple[int, ...]) -> np.ndarray:
    result = x.astype(complex)
    for axis in axes:
        n = x.shape[axis]
        matrix = np.exp(sign * 2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
        result = np.moveaxis(np.tensordot(matrix, result, (1, axis)), 0, axis)
    return result


@pytest.mark.parametrize("inverse", [False, True])
@given(shape=st.tuples(st.integers(1, 5), st.integers(2, 6)))
@settings(deadline=None)
def test_fft_is_the_unscaled_transform_in_all_three_kinds(inverse, shape):
    rng = np.random.default_rng(1)
    z, x = rng.standard_normal((2, *shape)) @ np.eye(shape[1]) + 0j, rng.standard_normal(shape)
    z = z[0] + 1j * z[1]
    sign = 1 if inverse else -1
    fft, axes = KERNELS["fft"], (0, 1)
    np.testing.assert_allclose(fft(z, axes=axes, kind="c2c", inverse=inverse), dft(z, sign, axes), atol=1e-10)
    half = fft(x, axes=axes, kind="r2c", inverse=inverse)
    full = dft(x, sign, axes)
    np.testing.assert_allclose(half, full[:, : shape[1] // 2 + 1], atol=1e-10)
    back = fft(half, axes=axes, kind="c2r", inverse=not inverse, length=shape[1])
    np.testing.assert_allclose(back / x.size, x, atol=1e-10)


@pytest.mark.parametrize("kind", ["c2c", "r2c", "c2r"])
def test_fft_keeps_single_precision(kind):
    x = np.ones(8, np.float32 if kind == "r2c" else np.complex64)
    result = KERNELS["fft"](x, axes=(0,), kind=kind, length=8)
    assert result.dtype == (np.float32 if kind == "c2r" else np.complex64)


def test_random_bits_continue_from_the_state():
    rng_bits = KERNELS["rng_bits"]
    fresh, later = np.array([7, 0], np.uint64), np.array([7, 5], np.uint64)
    np.testing.assert_array_equal(rng_bits(fresh, counter=6, shape=(3, 5)), rng_bits(later, counter=1, shape=(3, 5)))
    assert rng_bits(fresh, counter=0, shape=()).dtype == np.uint32
    assert len(np.unique(rng_bits(fresh, counter=0, shape=(1000,)))) > 990
