"""Decompositions of Hermitian matrices, and eigenvectors, through functions that do not depend on free phases."""

from __future__ import annotations

import numpy as np
import pytest

from argosy_autograd.algebra import adjoint, matmul
from argosy_autograd.checks import check_program
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Builder, Program, TensorType

RNG = np.random.default_rng(11)


def matrix(complex_, *shape):
    a = RNG.standard_normal(shape)
    return a + 1j * RNG.standard_normal(shape) if complex_ else a


def program_of(array, function):
    program = Program(function.__name__)
    x = program.add_input(TensorType(array.shape, array.dtype.name))
    with emit_at(Builder.at_end(program.block)):
        results = function(x)
    program.set_outputs(results)
    return program


def cholesky(x):
    return [prim.cholesky(matmul(x, adjoint(x)))]


def eigh(x):
    values, vectors = prim.eigh(x + adjoint(x))
    return [values, prim.abs(vectors)]


def eig(x):
    values, vectors = prim.eig(x)
    return [values, prim.abs(vectors)]


def svd(x):
    u, s, vh = prim.svd(x)
    return [s, prim.abs(u), prim.abs(vh)]


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("function", [cholesky, eigh, eig, svd])
def test_decomposition_differentiates(function, complex_):
    """Both modes agree with differences, for real and complex matrices and a batch of them."""
    array = matrix(complex_, 2, 3, 3)
    check_program(program_of(array, function), [array], order=1, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", [cholesky, eigh])
def test_second_order(function):
    """The gradient of the gradient, too."""
    array = matrix(False, 3, 3)
    check_program(program_of(array, function), [array], order=2, rtol=1e-4, atol=1e-5)
