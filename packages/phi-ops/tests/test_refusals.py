"""Values that eager execution refuses, on the long way, the short one and in native code; captured code computes on."""

from __future__ import annotations

import numpy as np
import pytest

from argosy_hwadapt import device
from argosy_phi_ops import get_operator
from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.compiler import get_compiler
from argosy_phi_ops.errors import OperatorError
from argosy_pir.types import TensorType
from argosy_tensorcore import Tensor

GOOD, SINGULAR = np.array([[2.0, 1.0], [1.0, 3.0]], np.float32), np.array([[1.0, 2.0], [2.0, 4.0]], np.float32)
INVERTING = {
    "inv": lambda x: get_operator("inv")(x),
    "solve": lambda x: get_operator("solve")(x, Tensor(np.ones((2, 1), x.dtype.numpy))),
    "matrix_power": lambda x: get_operator("matrix_power")(x, -2),
}


@pytest.mark.parametrize("name", INVERTING)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_singular_matrices_are_refused_each_time(name, dtype):
    """The error names the operator and its argument; of a stack one singular matrix is enough."""
    for _ in range(2):
        INVERTING[name](Tensor(GOOD.astype(dtype)))
        for x in (SINGULAR, np.zeros((2, 2)), np.stack([GOOD, SINGULAR]), GOOD * np.nan):
            with pytest.raises(OperatorError, match=rf"{name}\(\): argument 'x' .* is not invertible"):
                INVERTING[name](Tensor(x.astype(dtype)))


def test_what_is_not_finite_for_other_reasons_is_given():
    """An infinite right-hand side, or a result beyond the range of its dtype, is no singular matrix."""
    solve = get_operator("solve")
    y = Tensor(np.array([np.inf, 1.0], np.float32))
    assert not np.isfinite(solve(Tensor(np.eye(2, dtype=np.float32)), y).numpy()).all()
    tiny = Tensor(np.diag([1e-30, 1.0]).astype(np.float32))
    assert np.isinf(solve(tiny, Tensor(np.array([1e30, 1.0], np.float32))).numpy()[0])
    assert np.isfinite(get_operator("matrix_power")(Tensor(SINGULAR), 2).numpy()).all()


def test_a_factor_with_a_zero_on_its_diagonal_has_no_inverse():
    """Of a factor the diagonal alone tells."""
    factor = Tensor(np.array([[1.0, 0.0], [5.0, 2.0]]))
    np.testing.assert_allclose(
        get_operator("cholesky_inverse")(factor).numpy(), np.linalg.inv(factor.numpy() @ factor.numpy().T)
    )
    with pytest.raises(OperatorError, match=r"cholesky_inverse\(\): .* is not invertible"):
        get_operator("cholesky_inverse")(Tensor(np.array([[0.0, 0.0], [5.0, 2.0]])))


def test_captured_matrices_are_not_looked_at():
    """A program gives infinities or NaN."""
    with Tracer("f") as tracer:
        x = tracer.input(TensorType((2, 2), "float32"), "x")
        program = tracer.finish([get_operator("inv")(x)]).program
    run = get_compiler("reference").compile(program, device("cpu"))
    assert not np.isfinite(run.run([Tensor(SINGULAR).payload], [])[0].array()).all()


def test_the_first_zero_pivot_is_told():
    """``lu(get_infos=True)`` counts from 1; 0 says that there is none."""
    x = np.stack([GOOD, SINGULAR, np.zeros((2, 2), np.float32)])
    infos = Tensor(x).lu(True, True)[2]
    assert infos.numpy().tolist() == [0, 2, 1]


@pytest.mark.parametrize("calls", [1, 2000])
def test_exchanged_bounds_are_refused_however_often_clip_was_called(calls):
    """Numbers and tensors alike, also when native code does the calls that are right."""
    clip, x = get_operator("clip"), Tensor(np.array([1.0, 2.0, 3.0], np.float32))
    low, high = Tensor(np.array(1.5, np.float32)), Tensor(np.array(2.5, np.float32))
    for _ in range(calls):
        assert clip(x, 1.5, 2.5).numpy().tolist() == clip(x, low, high).numpy().tolist() == [1.5, 2.0, 2.5]
    for bounds in ((2.5, 1.5), (high, low), (high, 1.5), (float("nan"), 1.0), (None, float("nan"))):
        with pytest.raises(OperatorError, match=r"clip\(\): argument 'min' should be at most 'max', got min="):
            clip(x, *bounds)
    assert clip(x, 2.0, 2.0).numpy().tolist() == [2.0, 2.0, 2.0]


def test_hardtanh_with_exchanged_bounds_gives_the_upper_one():
    """As Paddle's: the lower bound is taken first."""
    x = Tensor(np.array([0.0, 2.0, 9.0], np.float32))
    assert get_operator("hardtanh")(x, 5.0, 1.0).numpy().tolist() == [1.0, 1.0, 1.0]
