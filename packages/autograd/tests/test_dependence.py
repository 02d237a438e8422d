"""Eager and captured code agree on what depends on what: an input that a derivative does not move with is an error."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import argosy_autograd as ag
from argosy_autograd.dependence import Dependence
from argosy_autograd.errors import UnusedInput
from argosy_autograd.monomials import CONSTANT, Still, atom, plus, power, still, substitute, times
from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir import TensorType
from argosy_tensorcore.tensor import Tensor

WEIGHT = np.arange(6.0).reshape(2, 3) + 1
SHAPE = (4, 2)


def op(name, *args, **kwargs):
    return get_operator(name)(*args, **kwargs)


def slope(y, *xs):
    """The gradients of a sum; None where there is none."""
    found = ag.grad(y.sum(), list(xs), create_graph=True, allow_unused=True)
    return found[0] if len(xs) == 1 else found


class Scaled(ag.PyLayer):
    """x y, whose gradient by y nobody gives."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensor()
        return g * y, None


class Exponential(ag.PyLayer):
    """exp(x), whose gradient reads the result."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensor()
        return g * y


NOT = {
    "a linear function": lambda x, w: slope(x * 3.0, x),
    "relu": lambda x, w: slope(op("relu", x), x),
    "abs": lambda x, w: slope(x.abs(), x),
    "maximum": lambda x, w: slope(op("maximum", x, x * 2.0), x),
    "sort": lambda x, w: slope(op("sort", x), x),
    "cumsum": lambda x, w: slope(op("cumsum", x), x),
    "a product with a constant": lambda x, w: slope(x * w.detach().sum(), x),
    "a product with a weight": lambda x, w: slope(op("matmul", x, w), x),
    "both gradients of a product, the one by the input": lambda x, w: slope(op("matmul", x, w), x, w)[0],
    "relu of a layer": lambda x, w: slope(op("relu", op("matmul", x, w)), x),
    "a floor": lambda x, w: slope(x.floor(), x),
    "what a rule does not read": lambda x, w: slope(Scaled.apply(x, w.sum()), x),
}
DOES = {
    "a square": lambda x, w: slope(x * x, x),
    "the third derivative of a square": lambda x, w: slope(slope(x * x, x), x),
    "the fourth derivative of a cube": lambda x, w: slope(slope(slope(x * x * x, x), x), x),
    "tanh to the fourth order": lambda x, w: slope(slope(slope(x.tanh(), x), x), x),
    "a product with a function of itself": lambda x, w: slope(op("relu", x) * x, x),
    "both gradients of a product, the one by the weight": lambda x, w: slope(op("matmul", x, w), x, w)[1],
    "a seed": lambda x, w: ag.grad(x * 2.0, x, grad_outputs=x * x, create_graph=True)[0],
    "a floor beside a factor": lambda x, w: slope(x.floor() * x, x),
    "a product linear in the input": lambda x, w: slope(x * w.sum(), x),
    "a product that is linear in the input beside others": lambda x, w: slope(x * (1.0 - w.sum()) + w.sum().tanh(), x),
    "all orders of a product": lambda x, w: slope(slope(slope(slope(x * w.sum(), x), x), x), x),
    "by an intermediate value": lambda x, w: (lambda h: slope(h * h * h, h))(x * 2.0),
    "what a rule reads": lambda x, w: (lambda c: slope(Scaled.apply(c, x), c))(x * 2.0),
    "a rule that reads its result": lambda x, w: slope(slope(Exponential.apply(x), x), x),
    "quotients": lambda x, w: slope(slope(w.sum() / x, x), x),
    "softmax": lambda x, w: slope(op("softmax", x) * x, x),
}


def outcome(make, allow_unused):
    """What the gradient of ``make`` by its input is: ``"error"``, ``"none"`` or ``"value"``."""

    def one(x, w):
        y = make(x, w)
        try:
            (g,) = ag.grad(y.sum(), x, allow_unused=allow_unused)
        except UnusedInput:
            return "error"
        return "none" if g is None else "value"

    rng = np.random.default_rng(3)
    x = Tensor(rng.standard_normal(SHAPE), stop_gradient=False)
    eager = one(x, Tensor(WEIGHT, stop_gradient=False))
    with Tracer("t") as tracer:
        inputs = [tracer.input(TensorType(shape, "float64"), stop_gradient=False) for shape in (SHAPE, WEIGHT.shape)]
        captured = one(*inputs)
    return eager, captured


@pytest.mark.parametrize("name", NOT)
def test_derivatives_that_do_not_move_with_an_input(name):
    """An error, or None if that is allowed, in both modes."""
    assert outcome(NOT[name], False) == ("error", "error")
    assert outcome(NOT[name], True) == ("none", "none")


@pytest.mark.parametrize("name", DOES)
def test_derivatives_that_move_with_an_input(name):
    """A gradient in both modes, be it zero."""
    assert outcome(DOES[name], False) == ("value", "value")


def test_the_slots_of_leaves_stay_empty_where_nothing_arrives():
    """backward() of a derivative gives gradients to what it depends on alone, as Paddle's does."""
    x, w = Tensor(np.ones(SHAPE), stop_gradient=False), Tensor(WEIGHT, stop_gradient=False)
    slope(op("matmul", x, w), x).sum().backward()
    assert x.grad is None
    np.testing.assert_array_equal(w.grad.numpy(), np.full((2, 3), 4.0))
    for function in (op("relu", x), x.abs()):
        slope(function, x).sum().backward()
        assert x.grad is None


def test_captured_slots_do_so_too():
    with Tracer("t") as tracer:
        x, w = (tracer.input(TensorType(shape, "float64"), stop_gradient=False) for shape in (SHAPE, WEIGHT.shape))
        slope(op("matmul", x, w), x).sum().backward()
        assert x.grad is None
        assert w.grad is not None


def test_a_step_that_comes_again_leaves_them_empty_each_time():
    """From the third time on nested requests are compiled: leaves they do not depend on still get nothing."""
    rng = np.random.default_rng(0)
    w, b = (Tensor(rng.standard_normal(s), stop_gradient=False) for s in ((2, 1), (1,)))
    for _ in range(5):
        x = Tensor(rng.standard_normal(SHAPE), stop_gradient=False)
        u = op("matmul", x, w).tanh() + b
        slope(slope(u, x), x).sum().backward()
        assert w.grad is not None
        assert b.grad is None
        w.clear_grad()


def test_the_error_names_operation_order_and_line():
    with Tracer("t") as tracer:
        x = tracer.input(TensorType((3,), "float64"), stop_gradient=False)
        (g,) = ag.grad(op("relu", x).sum(), x, create_graph=True)
        with pytest.raises(
            UnusedInput, match=r"order 1 \(.*test_dependence.*none of order 2.*relu \(.*test_dependence"
        ):
            ag.grad(g.sum(), x)
    x = Tensor(np.ones(3), stop_gradient=False)
    with ag.detect_anomaly():
        (g,) = ag.grad(op("relu", x).sum(), x, create_graph=True)
        with pytest.raises(UnusedInput) as caught:
            ag.grad(g.sum(), x)
    assert "order 2" in str(caught.value)
    assert "relu_grad (" in str(caught.value)


def test_deep_programs_need_no_recursion():
    """Thousands of operations, and derivatives given by users one after the other."""
    with Tracer("t") as tracer:
        x = tracer.input(TensorType((2,), "float64"), stop_gradient=False)
        y = x
        for i in range(sys.getrecursionlimit()):
            y = Scaled.apply(y, x) + y if i % 20 == 0 else y + x
        (g,) = ag.grad(y.sum(), x, create_graph=True)
        (h,) = ag.grad(g.sum(), x, allow_unused=True)
    assert h is not None


def test_monomials():
    x, y, z = atom("x"), atom("y"), atom("z")
    assert times(plus(x, y), z) == plus(times(x, z), times(y, z))
    assert times(x, CONSTANT) == x
    assert plus(x, times(x, y)) == times(x, y)  # x divides x y
    assert power(plus(x, y), float("inf")) == times(atom("x", float("inf")), atom("y", float("inf")))
    assert substitute(times(atom(0, 2), atom(1)), [x, y]) == times(times(x, x), y)
    assert still(times(x, y)) == frozenset([frozenset([(Still("x"), 1), (Still("y"), 1)])])
    many = plus(*(atom(i) for i in range(15)))
    (joined,) = times(many, many)
    assert len(joined) == 15


def test_dependence_of_an_output_on_values():
    with Tracer("t") as tracer:
        x, y = (tracer.input(TensorType((2,), "float64"), stop_gradient=False) for _ in range(2))
        g, h = slope(x / y, x, y)  # 1 / y, -x / y^2
        points = [tracer.value(x), tracer.value(y)]
        assert [Dependence([tracer.value(g)], points).depends(p) for p in points] == [False, True]
        assert [Dependence([tracer.value(h)], points).depends(p) for p in points] == [True, True]
        assert Dependence([tracer.value(h)], points).powers() == {points[1]}


def test_factors_want_gradients():
    """What no gradient is asked for by is a factor, too, where it wants one; a constant is not."""
    with Tracer("t") as tracer:
        x, y = (tracer.input(TensorType((2,), "float64"), stop_gradient=False) for _ in range(2))
        g = tracer.value(slope(x * y, x))
        points = [tracer.value(x)]
        assert Dependence([g], points, [tracer.value(y)]).depends(points[0])
        assert not Dependence([g], points).depends(points[0])


POLYNOMIALS = {
    "x t": lambda x, t: x * t,
    "x^3": lambda x, t: x * x * x,
    "x (1 - x)": lambda x, t: x * (1.0 - x),
    "x^2 t": lambda x, t: op("square", x) * t,
    "a hard constraint": lambda x, t: t * x * (1.0 - x) * x.tanh() + x.sin(),
    "a choice": lambda x, t: op("where", x > 0.5, x * x, x * 1.0),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_high_derivatives_of_products_are_zero_every_time(name):
    """Eager steps that come again are answered by compiled programs from the third time on; scripts that Paddle
    answers with zeros get them each time, to every order."""
    make = POLYNOMIALS[name]

    def derivative(x, t, path):
        u = make(x, t)
        for by in path:
            (u,) = ag.grad(u.sum(), x if by == "x" else t, create_graph=True, allow_unused=True)
            if u is None:
                return None
        return u

    start = np.linspace(0.1, 0.9, 4)
    for path in ("xx", "xxx", "xxxx", "xxxxx", "tt", "xtt", "xxt", "ttt"):
        with Tracer("t") as tracer:
            inputs = [tracer.input(TensorType((4,), "float64"), stop_gradient=False) for _ in range(2)]
            captured = derivative(*inputs, path)
        found = []
        for _ in range(4):
            x, t = (Tensor(start + k, stop_gradient=False) for k in range(2))
            u = derivative(x, t, path)
            found.append(None if u is None else u.numpy())
        assert all((u is None) == (captured is None) for u in found), path
        for u in found[1:] if captured is not None else ():
            np.testing.assert_allclose(u, found[0], rtol=1e-10, atol=1e-10)
        if path == "tt" and "t" in name.split():
            np.testing.assert_array_equal(found[0], np.zeros(4))


def test_slots_get_the_zeros_of_products():
    """Eager and captured alike, as in Paddle."""
    x, t = (Tensor(np.ones(3), stop_gradient=False) for _ in range(2))
    slope(x * t, x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.zeros(3))
    np.testing.assert_array_equal(t.grad.numpy(), np.ones(3))
    with Tracer("t") as tracer:
        x, t = (tracer.input(TensorType((3,), "float64"), stop_gradient=False) for _ in range(2))
        slope(x * t, x).sum().backward()
        assert x.grad is not None
        assert t.grad is not None
