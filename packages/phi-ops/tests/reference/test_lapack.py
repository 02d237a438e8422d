"""Factors and solutions of the library behind numpy, and what stands in where it is not found."""

import numpy as np
import pytest

from argosy_phi_ops.reference.kernels import KERNELS, lapack

DTYPES = ["float32", "float64", "complex64", "complex128"]


@pytest.fixture(params=["found", "missing"])
def library(request, monkeypatch):
    """Both ways of every kernel: with the library, and where numpy's loader gives none."""
    if request.param == "missing":
        monkeypatch.setattr(lapack, "_lapack", lambda *_: None)
        monkeypatch.setattr(lapack, "_trsm", lambda *_: None)
    elif lapack._library() is None or lapack._lapack("getrf", "f", 6) is None:
        pytest.skip("numpy's linear algebra is in a library that gives no routines by name")
    return request.param


def matrices(*shape, dtype):
    rng = np.random.default_rng(5)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.startswith("c") else x).astype(dtype)


def tolerance(dtype):
    return 2e-4 if dtype in ("float32", "complex64") else 1e-11


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
@pytest.mark.parametrize(("size", "count"), [(1, 1), (5, 2), (5, 0), (0, 2), (40, 40)])
def test_solutions_solve_in_the_dtype_of_their_matrices(library, dtype, shape, size, count):
    """Stacks, none at all and empty ones; operands stay as they are."""
    a, b = matrices(*shape, size, size, dtype=dtype), matrices(*shape, size, count, dtype=dtype)
    before = a.copy(), b.copy()
    y = KERNELS["solve"](a, b)
    assert (y.dtype, y.shape) == (b.dtype, b.shape)
    np.testing.assert_allclose(a @ y, b, atol=size * tolerance(dtype) + 1e-12, rtol=0)
    np.testing.assert_array_equal(a, before[0])
    np.testing.assert_array_equal(b, before[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_operands_may_be_views(library, dtype):
    """Matrices that lie otherwise than row after row, and repeated ones."""
    a, b = matrices(4, 4, dtype=dtype).T, np.broadcast_to(matrices(4, 1, dtype=dtype), (4, 3))
    np.testing.assert_allclose(a @ KERNELS["solve"](a, b), b, atol=10 * tolerance(dtype))
    y = KERNELS["triangular_solve"](a, b, lower=False)
    np.testing.assert_allclose(np.triu(a) @ y, b, atol=10 * tolerance(dtype))
    packed, _, order = KERNELS["lu"](a)
    lower = np.tril(packed, -1) + np.eye(4)
    np.testing.assert_allclose(lower @ np.triu(packed), a[order], atol=10 * tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3), (3, 5), (2, 0, 3), (0, 3, 3)])
def test_pivots_are_the_same_with_and_without_the_library(dtype, shape, monkeypatch):
    """Up to rounding: LAPACK compares complex numbers by |re| + |im|, so only real ones must agree in pivots."""
    x = matrices(*shape, dtype=dtype)
    found = KERNELS["lu"](x)
    monkeypatch.setattr(lapack, "_lapack", lambda *_: None)
    other = KERNELS["lu"](x)
    assert [(v.dtype, v.shape) for v in found] == [(v.dtype, v.shape) for v in other]
    if not dtype.startswith("c"):
        np.testing.assert_allclose(found[0], other[0], atol=tolerance(dtype))
        np.testing.assert_array_equal(found[1], other[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_matrices_give_what_is_not_finite(library, dtype):
    """In their place of a stack; the others are solved."""
    a = np.stack([np.eye(3), np.ones((3, 3)), 2 * np.eye(3)]).astype(dtype)
    y = KERNELS["solve"](a, np.ones((3, 3, 1), dtype))
    assert np.isfinite(y[[0, 2]]).all()
    assert not np.isfinite(y[1]).all()
    zero = KERNELS["triangular_solve"](np.zeros((2, 2), dtype), np.ones((2, 1), dtype))
    assert not np.isfinite(zero).any()


def test_least_squares_of_lower_rank_is_the_least_solution():
    """As numpy's: of all that make the residual least, the shortest."""
    from argosy_phi_ops import get_operator
    from argosy_tensorcore import Tensor

    rng = np.random.default_rng(2)
    x = rng.standard_normal((6, 2)) @ rng.standard_normal((2, 4))
    y = rng.standard_normal((6, 3))
    solution, residuals, rank, values = get_operator("least_squares")(Tensor(x), Tensor(y), 1e-10)
    expected, _, expected_rank, expected_values = np.linalg.lstsq(x, y, rcond=1e-10)
    np.testing.assert_allclose(solution.numpy(), expected, atol=1e-10)
    np.testing.assert_allclose(residuals.numpy(), np.square(x @ expected - y).sum(0), atol=1e-10)
    assert int(rank) == expected_rank == 2
    np.testing.assert_allclose(values.numpy(), expected_values, atol=1e-10)
