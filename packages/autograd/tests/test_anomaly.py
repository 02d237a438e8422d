"""Errors of the backward pass that name the line of the application."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import argosy_autograd as ag
from argosy_autograd.errors import DifferentiationError, MissingRule, UnusedInput
from argosy_phi_ops import get_operator
from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.custom_ops.declaration import custom_op
from argosy_tensorcore.tensor import Tensor


def leaf(data):
    return Tensor(np.asarray(data, np.float64), stop_gradient=False)


def line_here() -> int:
    return inspect.currentframe().f_back.f_lineno


def notes_of(error) -> str:
    return "\n".join(error.value.__notes__)


@pytest.mark.parametrize("create_graph", [False, True])
def test_an_error_names_the_line(create_graph):
    x = leaf([1.0, 2.0])
    with ag.detect_anomaly():
        y = x * 1.0
        z, line = get_operator("exp")(y) * y, line_here()
    y.add_(Tensor(np.ones(2)))
    with pytest.raises(DifferentiationError, match="changed in place") as error:
        ag.grad(z.sum(), x, create_graph=create_graph)
    assert f"{__file__}:{line}, in test_an_error_names_the_line" in notes_of(error)
    assert "multiply" in notes_of(error)


def test_without_it_an_error_says_how_to_find_out():
    x = leaf([1.0, 2.0])
    y = x * 1.0
    z = y * y
    y.add_(Tensor(np.ones(2)))
    with pytest.raises(DifferentiationError) as error:
        z.sum().backward()
    assert "detect_anomaly" in notes_of(error)


def test_gradients_that_are_no_numbers_are_errors_in_the_block():
    x = leaf([0.0, 4.0])
    with ag.detect_anomaly():
        y, line = get_operator("sqrt")(x) * 0.0, line_here()
        with pytest.raises(DifferentiationError, match=r"sqrt.*operand 0 has NaN") as error:
            y.sum().backward()
        assert f"{__file__}:{line}," in notes_of(error)
    with ag.detect_anomaly(check_nan=False):
        (get_operator("sqrt")(x) * 0.0).sum().backward()
    assert np.isnan(x.grad.numpy()[0])


def test_it_leaves_nothing_switched_on():
    word, layers = AMBIENT.word, len(context().layers)
    ag.set_detect_anomaly(True)
    ag.set_detect_anomaly(True, check_nan=False)
    assert len(context().layers) == layers + 1
    with ag.set_detect_anomaly(False):
        assert len(context().layers) == layers
    assert len(context().layers) == layers + 1
    ag.set_detect_anomaly(False)
    with pytest.raises(KeyError), ag.detect_anomaly():
        raise KeyError
    assert (AMBIENT.word, len(context().layers)) == (word, layers)
    x = leaf([0.0])
    (get_operator("sqrt")(x) * 0.0).sum().backward()
    assert np.isnan(x.grad.numpy()).all()


def derivatives(y, x, order):
    for _ in range(order):
        (y,) = ag.grad(y.sum(), x, create_graph=True)
    return y


def test_an_unreached_input_is_told_the_order_and_the_line_of_what_is_in_the_way():
    x = leaf([1.0, 2.0])
    with ag.detect_anomaly():
        (g,) = ag.grad((x * x * x).sum(), x, create_graph=True)
        whole, line = get_operator("argsort")(g), line_here()
        with pytest.raises(UnusedInput) as error:
            ag.grad((whole.astype("float64") * 2.0).sum(), x)
    assert f"argsort ({__file__}:{line} in" in str(error.value)
    assert "gives int64" in str(error.value)
    assert "derivative of order 2" in str(error.value)


def test_a_constant_derivative_is_named_by_its_order():
    x = leaf([1.0, 2.0])
    with pytest.raises(UnusedInput, match=r"the derivative of order \d \(.*\) is a constant: see sum, floor"):
        derivatives(get_operator("floor")(x), x, 4)


def test_recorded_derivatives_stay_without_notes():
    x = leaf([1.0, 2.0])
    with ag.detect_anomaly():
        found = derivatives(x * x * x, x, 2)
    np.testing.assert_array_equal(found.numpy(), [6.0, 12.0])
    assert found._gradient_blockers is None


class OneWay(ag.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, g):
        raise ValueError("no way back")


def test_a_custom_function_is_named_with_its_line():
    x = leaf([1.0, 2.0])
    with ag.detect_anomaly():
        y, line = OneWay.apply(x), line_here()
    with pytest.raises(ValueError, match="no way back") as error:
        y.sum().backward()
    assert f"OneWay, which was applied at {__file__}:{line}, in" in notes_of(error)


def test_a_differential_operator_names_what_lets_no_gradient_pass():
    x = leaf([[1.0, 2.0]])
    with ag.detect_anomaly():
        y, line = get_operator("argmax")(x, axis=-1).astype("float64"), line_here()
        with pytest.raises(UnusedInput, match="laplacian") as error:
            ag.laplacian(y, x)
    assert f"argmax ({__file__}:{line} in" in str(error.value)


@custom_op("testanomaly.mirrored")
def mirrored(x: Tensor) -> Tensor:
    return -x


def test_an_operator_without_a_derivative_names_the_order():
    x = leaf([1.0, 2.0])
    for _ in range(20):
        y, line = mirrored(x * x), line_here()
    told = rf"derivative of order 1 \({__file__}:\d+ in .*\) of testanomaly\.mirrored"
    with pytest.raises(MissingRule, match=told) as error:
        ag.grad(y.sum(), x)
    assert f"testanomaly.mirrored, which was applied at {__file__}:{line}, in" in notes_of(error)


class NoWayBack(ag.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x * x


def test_a_custom_function_without_a_way_back_is_named_with_its_line():
    x = leaf([1.0, 2.0])
    y, line = NoWayBack.apply(x), line_here()
    with pytest.raises(NotImplementedError, match="static method backward") as error:
        y.sum().backward()
    assert f"NoWayBack, which was applied at {__file__}:{line}, in" in notes_of(error)
