"""Derivatives that cannot be: errors name the operation, the order it came to, or the input, and the user's line."""

import re

import numpy as np
import pytest

import argosy as paddle
from argosy import science
from argosy_autograd.errors import DifferentiationError


def points(*values):
    return paddle.to_tensor(np.array(values or (0.5, 1.0)), stop_gradient=False)


def captured(function):
    return lambda x: paddle.jit.to_static(function, full_graph=True)(x)


def twice(function):
    def second(x):
        (slope,) = paddle.grad(function(x).sum(), x, create_graph=True)
        return paddle.grad(slope.sum(), x)[0]

    return second


class Square(paddle.autograd.PyLayer):
    """Its derivative is one of arrays: it has none of its own."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.detach() * x.detach()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensor()
        return (g * 2 * x).detach()


class OneWay(paddle.autograd.PyLayer):
    """It has no derivative."""

    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, g):
        raise NotImplementedError("nobody knows")


class OnArrays(Square):
    """Its derivative is computed from numbers."""

    @staticmethod
    def backward(ctx, g):
        return paddle.to_tensor(Square.backward(ctx, g).numpy())


def hooked_on_arrays(x):
    y = x * x
    y.register_hook(lambda g: paddle.to_tensor(g.numpy() * 3))
    return y


def hooked_after_use(x):
    y = x * x
    z = y + 1
    y.register_hook(lambda g: g * 3)
    return z * y


@pytest.mark.parametrize("full_graph", [False, True])
def test_a_custom_operator_without_derivative_can_be_captured(full_graph):
    """Its result is there; who asks for a derivative is told the operator, the order and the lines."""
    x = points()
    value = paddle.jit.to_static(lambda x: OneWay.apply(x) + 1, full_graph=full_graph)(x)
    np.testing.assert_array_equal(value.numpy(), x.numpy() ** 2 + 1)
    with pytest.raises(NotImplementedError, match="nobody knows") as error:
        paddle.jit.to_static(lambda x: paddle.grad(OneWay.apply(x).sum(), x)[0], full_graph=full_graph)(x)
    if full_graph:
        assert re.search(rf"OneWay.*{__file__}:\d+ .*order 1.*{__file__}:\d+", str(error.value))


def test_a_jet_through_an_operator_without_derivative():
    """The operator and the order, eager and captured; captured, the lines of both operator and request, too."""

    @paddle.library.custom_op("tests.underived", axes="... -> ...")
    def underived(x: paddle.Tensor) -> paddle.Tensor:
        return np.sin(x)

    def series(x):
        return paddle.autograd.jet(underived, (x,), ((1.0, 0.0),))[1][1]

    with pytest.raises(NotImplementedError, match=r"tests\.underived has none.*order 1"):
        series(points())
    with pytest.raises(NotImplementedError, match=r"tests\.underived has none") as error:
        captured(series)(points())
    assert re.search(rf"host_call at {__file__}:\d+ .*order 2, was asked for at {__file__}:\d+", str(error.value))


@pytest.mark.parametrize("function", [OnArrays.apply, hooked_on_arrays, hooked_after_use])
def test_a_custom_derivative_that_reads_values_breaks_the_graph_before_it(function):
    """What was computed before is compiled or replayed; in the backward pass numbers are there."""

    def step(x, y):
        loss = (function(x * y) * y).sum()
        loss.backward()
        return loss

    def run(step):
        x, y = points(), points(2.0, -1.0)
        losses = [step(x, y).numpy() for _ in range(3)]
        return [*losses, x.grad.numpy(), y.grad.numpy()]

    for found, wanted in zip(run(paddle.jit.to_static(step)), run(step), strict=True):
        np.testing.assert_allclose(found, wanted)


def test_a_custom_derivative_that_reads_values_is_refused_as_part_of_one_program():
    """With the line, and the way out."""
    with pytest.raises(NotImplementedError, match=r"numpy\(\) needs the value.*in backward"):
        paddle.jit.to_static(OnArrays.apply, full_graph=True)(points())


def test_an_integer_input_is_told_to_be_cast():
    """With its dtype, shape and number."""
    x = paddle.to_tensor(np.array([1, 2]))
    with pytest.raises(DifferentiationError, match=r"input 0 .*int64 \[2\].* cast it"):
        paddle.grad((x * x).sum(), x)
    with pytest.raises(DifferentiationError, match="primal 0 is a int64 tensor"):
        paddle.autograd.jet(lambda x: x, (x,), ((1.0,),))


@pytest.mark.parametrize("wrap", [lambda f: f, captured])
def test_an_output_that_does_not_depend_on_the_input(wrap):
    """Named by number, dtype and shape; ``allow_unused`` is the way out."""
    other = points(2.0)
    with pytest.raises(DifferentiationError, match=r"do not depend on input 0 .*float64 \[2\].*allow_unused"):
        wrap(lambda x: paddle.grad((other * 2).sum(), x)[0])(points())


def test_a_second_derivative_of_a_first_one_that_is_constant():
    """Of a linear function, and of a custom operator whose own derivative has none."""
    for function in (lambda x: 3 * x, Square.apply):
        with pytest.raises(DifferentiationError, match="do not depend on input 0"):
            twice(function)(points())


def test_the_results_of_unique_are_constants():
    """As in Paddle."""
    x = points()
    with pytest.raises(DifferentiationError, match="do not depend on input 0"):
        paddle.grad(paddle.unique(x).sum(), x)


def test_the_first_nan_in_program_order_is_named():
    """Whatever the sum reads first; in a gradient, the operation and its phase."""

    def root_first(x):
        b = paddle.sqrt(x - 2.0)
        a = paddle.log(x - 1.0)
        return a.sum() + b.sum()

    def log_first(x):
        a = paddle.log(x - 1.0)
        b = paddle.sqrt(x - 2.0)
        return b.sum() + a.sum()

    assert science.first_nan(root_first, points()).operation == "sqrt"
    found = science.first_nan(log_first, points())
    assert (found.operation, found.elements) == ("log", 2)
    assert "in log_first" in found.where
    assert "test_bad_derivatives.py" in found.where
    slope = science.first_nan(lambda x: paddle.grad(paddle.sqrt(x - x).sum(), x)[0], points())
    assert (slope.operation, slope.phase) == ("div", "input-gradient")
