"""What is told of a derivative that cannot be, whoever asks: the operation, the order and the line, for each cause,
eagerly and captured."""

from __future__ import annotations

import inspect
import re
from itertools import product

import numpy as np
import pytest

import argosy as paddle
from argosy import autograd
from argosy.incubate.autograd import jvp
from argosy_autograd.errors import UnusedInput
from argosy_phi_ops.custom_ops.declaration import custom_op


class Cut(autograd.PyLayer):
    """Its derivative is cut off from the gradient that it takes."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensor()
        return (3 * x * x * g).detach()


class OneWay(autograd.PyLayer):
    """It has no derivative."""

    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, g):
        raise NotImplementedError("nobody knows")


@custom_op("testtold.halved")
def halved(x: paddle.Tensor) -> paddle.Tensor:
    return x / 2


def sorted_places(x):
    return paddle.argsort(x, axis=-1).astype("float64") * 2.0


def others(x):
    return paddle.to_tensor(np.ones((3, 2)), stop_gradient=False) * 2.0


def nested(function, x, order):
    """``function`` of the derivative of order ``order - 1`` of ``exp``: whatever is asked of it is of ``order``."""
    y = paddle.exp(x)
    for _ in range(order - 1):
        (y,) = paddle.grad(y.sum(), x, create_graph=True)
    return function(y)


ASKING = {
    "grad": lambda f, x, order: paddle.grad(nested(f, x, order).sum(), x),
    "backward": lambda f, x, order: nested(f, x, order).sum().backward(),
    "jacobian": lambda f, x, order: autograd.jacobian(nested(f, x, order).sum(), x)[:],
    "hessian": lambda f, x, order: autograd.hessian(nested(f, x, order).sum(), x, strict=True)[:],
    "laplacian": lambda f, x, order: autograd.laplacian(nested(f, x, order), x),
    "jet": lambda f, x, order: autograd.jet(lambda x: nested(f, x, order), (x,), ((1.0,),)),
    "jvp": lambda f, x, order: jvp(lambda x: nested(f, x, order), x),
}
HERE = rf"{re.escape(__file__)}:\d+"


def told(function, asking, order, compiled, x=None):
    x = np.random.default_rng(0).standard_normal((3, 2)) if x is None else x
    x = paddle.to_tensor(x, stop_gradient=False)

    def step(x):
        return ASKING[asking](function, x, order)

    with pytest.raises((RuntimeError, NotImplementedError)) as error:
        (paddle.jit.to_static(step, full_graph=True) if compiled else step)(x)
    return str(error.value)


@pytest.mark.parametrize(("asking", "compiled"), list(product(["grad", "hessian", "laplacian"], [False, True])))
@pytest.mark.parametrize("order", [1, 2, 3])
def test_an_operation_that_is_not_differentiable(asking, compiled, order):
    """Named with its line, and the order counts what lies before it."""
    text = told(sorted_places, asking, order, compiled)
    line = inspect.getsourcelines(sorted_places)[1] + 1
    assert f"argsort ({__file__}:{line} in sorted_places) gives int64" in text
    assert re.search(rf"derivative of order {order} \({HERE} in", text)


@pytest.mark.parametrize(
    ("asking", "compiled"), list(product(["grad", "jacobian", "hessian", "jet", "jvp"], [False, True]))
)
def test_an_integer_input(asking, compiled):
    """Named with its dtype, by all."""
    text = told(lambda x: x, asking, 1, compiled, np.ones((3, 2), np.int64)) if asking in ("jet", "jvp") else ""
    x = paddle.to_tensor(np.ones((3, 2), np.int64), stop_gradient=False)

    def step(x):
        y = (x * x).sum()
        return {"grad": paddle.grad, "jacobian": autograd.jacobian, "hessian": autograd.hessian}[asking](y, x)

    if not text:
        with pytest.raises(RuntimeError) as error:
            (paddle.jit.to_static(step, full_graph=True) if compiled else step)(x)
        text = str(error.value)
    assert "int64" in text
    assert re.search(rf"derivative of order 1 \({HERE} in", text)


@pytest.mark.parametrize(("asking", "compiled"), list(product(["grad", "hessian", "laplacian"], [False, True])))
@pytest.mark.parametrize("order", [1, 2, 3])
def test_an_output_that_does_not_depend_on_the_input(asking, compiled, order):
    """Derivatives go into it, but it is made from others; jacobian, hessian (not strictly), jvp and jet give
    zeros, as Paddle's do."""
    function = {1: others, 2: lambda g: others(g) * others(g), 3: lambda g: others(g) / 3}[order]
    text = told(function, asking, order, compiled)
    made = {1: "multiply", 2: "multiply", 3: "divide"}[order] if asking == "laplacian" else "sum"
    assert re.search(rf"made by {made}.* from other tensors", text)
    assert re.search(rf"derivative of order 1 \({HERE} in", text)


@pytest.mark.parametrize(("asking", "compiled"), list(product(["laplacian", "jet", "jvp"], [False, True])))
@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_custom_derivative_that_is_cut_off(asking, compiled, order):
    """What needs it as a function of the gradient that it takes refuses, instead of giving zero."""
    text = told(Cut.apply, asking, order, compiled)
    assert "does not depend on the one that it takes" in text
    assert "PyLayer" in text if compiled else "Cut gives" in text
    wanted = order + 1 if asking == "laplacian" and not compiled else order
    assert re.search(rf"derivative of order {wanted} \({HERE} in", text)


@pytest.mark.parametrize("asking", [*ASKING])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_custom_operator_without_a_derivative(asking, order):
    """Eagerly, of a class and of a function; captured ones are told by the pass that expands them."""
    for function, name in ((OneWay.apply, "nobody knows"), (halved, r"testtold\.halved")):
        text = told(function, asking, order, False)
        assert re.search(name, text)
        assert re.search(rf"derivative of order \d \({HERE} in", text)


def test_first_derivatives_of_a_cut_off_derivative_are_given():
    """Divergence and gradient need no more than what backward gives."""
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal((3, 2)), stop_gradient=False)
    found = autograd.divergence(Cut.apply(x), x)
    np.testing.assert_allclose(found.numpy(), (3 * x.numpy() ** 2).sum(-1))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_constant_derivative_names_what_it_is_of(compiled):
    """The second derivative of what is linear, and of what cuts its derivative off."""

    def twice(x, function):
        (g,) = paddle.grad(function(x).sum(), x, create_graph=True)
        return paddle.grad(g.sum(), x)

    for function, name in ((lambda x: 3 * x, "multiply"), (Cut.apply, "custom" if compiled else "Cut")):
        x = paddle.to_tensor(np.ones((3, 2)), stop_gradient=False)
        step = paddle.jit.to_static(twice, full_graph=True) if compiled else twice
        with pytest.raises(RuntimeError) as error:
            step(x, function)
        assert re.search(rf"the derivative of order 1 \({HERE} in twice\).* {name}", str(error.value))


@pytest.mark.parametrize(("function", "order"), [(lambda x, z: z * x.detach(), 1), (lambda x, z: z + 3 * x, 2)])
def test_a_captured_hessian_tells_strictly_what_does_not_depend_on_the_input(function, order):
    """By its name, the order and the line; a linear function is refused at the second order."""
    x, z = (paddle.to_tensor(np.ones(3), stop_gradient=False) for _ in range(2))
    asked = paddle.jit.to_static(lambda x, z: autograd.hessian(function(x, z).sum(), x, strict=True)[:])
    with pytest.raises(UnusedInput, match=rf"hessian\(\): output 0 does not depend .*order {order} \({HERE}"):
        asked(x, z)
