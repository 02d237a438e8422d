"""Decompositions as loops are those of LAPACK, pivots and signs included."""

import numpy as np
import pytest

from argosy_cinn.rewrites.decompositions import ExpandDecompositions
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir.builder import Builder
from argosy_pir.program import Program
from argosy_pir.types import TensorType

RNG = np.random.default_rng(8)
on_fields = pytest.mark.parametrize("dtype", [np.float64, np.complex128], ids=["real", "complex"])


def numbers(dtype, *shape):
    made = RNG.standard_normal(shape)
    return made + 1j * RNG.standard_normal(shape) if dtype is np.complex128 else made


def check(name, *arrays, **attributes):
    """The expanded program gives what LAPACK gives."""
    found, expected = expanded(name, *arrays, **attributes)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-11 * np.abs(y).max(initial=1))
    return found


def expanded(name, *arrays, **attributes):
    """Results of the expanded program and of LAPACK, by the interpreter: the code of loops has tests of its own."""
    program = Program("decomposition")
    inputs = [program.add_input(TensorType(x.shape, x.dtype.name)) for x in arrays]
    with emit_at(Builder.at_end(program.block)):
        made = getattr(prim, name)(*inputs, **attributes)
        program.set_outputs(list(made) if isinstance(made, tuple) else [made])
    expected, _ = interpret(program, list(arrays))
    assert ExpandDecompositions().run(program)
    assert not [op for op in program.block if op.name == f"prim.{name}"]
    found, _ = interpret(program, list(arrays))
    assert [(x.dtype, x.shape) for x in found] == [(y.dtype, y.shape) for y in expected]
    return found, expected


@on_fields
@pytest.mark.parametrize("n", [1, 2, 7])
def test_factors_and_solutions_of_square_matrices(n, dtype):
    x = numbers(dtype, 2, 3, n, n)
    check("cholesky", x @ x.conj().swapaxes(-1, -2) + n * np.eye(n))
    check("solve", x, numbers(dtype, 2, 3, n, 4))


@on_fields
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(
    "turned", [(False, False), (True, False), (True, True)], ids=["plain", "transposed", "adjoint"]
)
def test_triangular_systems_read_one_triangle(turned, lower, left, dtype):
    """What is in the other one does not matter; nor does the diagonal of unit triangles."""
    a, b = numbers(dtype, 2, 5, 5) + 5 * np.eye(5), numbers(dtype, 2, 5, 5)
    for unit in (False, True):
        settings = {"lower": lower, "left": left, "transpose": turned[0], "conjugate": turned[1], "unit": unit}
        (found,) = check("triangular_solve", a, b, **settings)
        other = np.where(np.tri(5, k=-unit, dtype=bool) == lower, a, np.nan) if lower else a
        (again,) = check("triangular_solve", np.where(np.isnan(other), 9e9, other), b, **settings)
        np.testing.assert_array_equal(again, found)


@on_fields
@pytest.mark.parametrize("shape", [(3, 3), (6, 2), (2, 5), (4, 1), (1, 3)], ids=str)
def test_rectangles_have_pivots_and_signs_of_lapack(shape, dtype):
    """Zeros, identities, and a column that is zero before the others."""
    x = numbers(dtype, 2, *shape)
    x[1, :, 0] = 0
    for given in (x, np.zeros(shape, dtype), np.eye(*shape, dtype=dtype)):
        check("lu", given)
        for full in (False, True):
            check("qr", given, full=full)


@on_fields
@pytest.mark.parametrize("shape", [(5, 5), (7, 2), (2, 5), (4, 1), (1, 3)], ids=str)
def test_singular_values_are_those_of_lapack(shape, dtype):
    """Vectors are, but for their phases; of matrices without full rank they are unitary."""
    x = numbers(dtype, 2, *shape)
    x[1, :, 0] = 0
    for full in (False, True):
        (u, s, vh), (_, expected, _) = expanded("svd", x, full=full)
        np.testing.assert_allclose(s, expected, rtol=0, atol=1e-12 * expected.max())
        k = min(shape)
        np.testing.assert_allclose(u[..., :k] * s[:, None] @ vh[:, :k], x, atol=1e-12 * expected.max())
        for q in (u, vh.conj().swapaxes(1, 2)):
            np.testing.assert_allclose(q.conj().swapaxes(1, 2) @ q, np.eye(q.shape[2])[None].repeat(2, 0), atol=1e-12)


@on_fields
@pytest.mark.parametrize("lower", [False, True])
def test_eigenvalues_of_symmetric_matrices_are_those_of_lapack(lower, dtype):
    """Read from one triangle; values of both signs, equal ones, and none but zero."""
    q = np.linalg.qr(numbers(dtype, 6, 6))[0]
    x = np.stack([q * values @ q.conj().T for values in ([3, -3, 1, 1, 0, 1e-3], [0] * 6)])
    other = (
        np.where(np.tri(6, k=-1, dtype=bool) == lower, x, 9) if lower else np.where(np.tri(6, k=-1, dtype=bool), 9, x)
    )
    other = np.where(np.eye(6, dtype=bool), x, other)
    (values, vectors), (expected, _) = expanded("eigh", other, lower=lower)
    np.testing.assert_allclose(values, expected, atol=1e-13)
    np.testing.assert_allclose(x @ vectors, vectors * values[:, None], atol=1e-12)
    np.testing.assert_allclose(vectors.conj().swapaxes(1, 2) @ vectors, np.eye(6)[None].repeat(2, 0), atol=1e-12)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_sizes_whose_squares_are_no_numbers_have_singular_values_and_eigenvalues(size):
    """As LAPACK's, which scales, too."""
    x = numbers("float64", 2, 4, 4)
    (_, s, _), (_, expected, _) = expanded("svd", x * size, full=False)
    np.testing.assert_allclose(s / size, expected / size, atol=1e-12)
    (values, _), (expected, _) = expanded("eigh", (x + x.swapaxes(1, 2)) * size, lower=True)
    np.testing.assert_allclose(values / size, expected / size, atol=1e-12)


def test_what_is_not_positive_definite_is_not_finite():
    program = Program("indefinite")
    x = program.add_input(TensorType((2, 2), "float32"))
    with emit_at(Builder.at_end(program.block)):
        program.set_outputs([prim.cholesky(x)])
    ExpandDecompositions().run(program)
    ((found,), _) = interpret(program, [np.array([[1, 2], [2, 1]], np.float32)])
    assert np.isnan(found).any()
