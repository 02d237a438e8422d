"""``custom_vjp`` and ``custom_jvp``: values, first and higher derivatives, eager and captured."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import argosy_autograd as ag
from argosy_autograd.errors import DifferentiationError, UnusedInput
from argosy_phi_ops import get_operator
from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.reference.interpreter import prepare
from argosy_pir import TensorType
from argosy_pir.passes import PassManager
from argosy_tensorcore.tensor import Tensor

exp, log1p, tanh = (get_operator(name) for name in ("exp", "log1p", "tanh"))
POINTS = np.array([0.3, 0.7, -0.4])


def leaf():
    return Tensor(POINTS, stop_gradient=False)


def nth(function, order):
    def derivative(x):
        y = function(x)
        for _ in range(order):
            (y,) = ag.grad(y.sum(), x, create_graph=True)
        return y

    return derivative


def softplus():
    """log(1 + e^x) with a backward that reads e^x."""

    @ag.custom_vjp
    def f(x):
        return log1p(exp(x))

    def forward(x):
        e = exp(x)
        return log1p(e), e

    f.defvjp(forward, lambda e, g: (g * (1 - 1 / (1 + e)),))
    return f


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_custom_vjp_to_third_order(order, both):
    """Higher orders differentiate the residuals, too: the derivatives of softplus are those of the logistic."""
    s = 1 / (1 + np.exp(-POINTS))
    expected = [np.log1p(np.exp(POINTS)), s, s * (1 - s), s * (1 - s) * (1 - 2 * s)][order]
    np.testing.assert_allclose(both(nth(softplus(), order), POINTS), expected, rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_custom_jvp_that_calls_itself(order, both):
    """The usual rule of an exponential reuses the function; every order is the same."""

    @ag.custom_jvp
    def f(x):
        return exp(x)

    @f.defjvp
    def _(primals, tangents):
        y = f(primals[0])
        return y, y * tangents[0]

    np.testing.assert_allclose(both(nth(f, order), POINTS), np.exp(POINTS), rtol=1e-12)


def test_the_rule_is_what_is_used():
    """A rule that is wrong on purpose shows in the gradient, of each argument its own."""

    @ag.custom_jvp
    def f(x, y, scale):
        return x * y * scale, x

    f.defjvp(lambda p, t: (f(*p), (t[0] * 10 + t[1] * 100, t[0] * 0)))
    x, y = leaf(), leaf()
    gx, gy = ag.grad(f(x, y, 2.0)[0].sum(), [x, y])
    assert (gx.numpy() == 10).all()
    assert (gy.numpy() == 100).all()


def test_results_saved_by_a_pylayer_carry_its_derivative_in_captures(both):
    """tanh by a PyLayer that keeps its result: the second derivative goes through its own backward."""

    class Tanh(ag.PyLayer):
        @staticmethod
        def forward(ctx, x):
            y = tanh(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensor()
            return 2 * g * (1 - y * y)  # twice the truth, so that it can be told apart

    t = np.tanh(POINTS)
    np.testing.assert_allclose(both(nth(Tanh.apply, 2), POINTS), 2 * -2 * t * 2 * (1 - t * t), rtol=1e-12)


def test_errors():
    """A function without its rule, and a backward that gives the wrong number of gradients."""
    with pytest.raises(DifferentiationError, match="call defvjp before"):
        ag.custom_vjp(exp)(leaf())
    with pytest.raises(DifferentiationError, match="call defjvp before"):
        ag.custom_jvp(exp)(leaf())
    f = ag.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (x * y, None), lambda r, g: (g,))
    with pytest.raises(DifferentiationError, match="1 gradients for 2 arguments"):
        f(leaf(), leaf()).sum().backward()


def test_derivatives_of_another_shape_are_refused():
    """With the function's name and both shapes; they were taken for gradients."""
    x = Tensor(np.ones((4, 3)), stop_gradient=False)

    @ag.custom_vjp
    def backwards(x):
        return x * 2

    @ag.custom_jvp
    def forwards(x):
        return x * 2

    backwards.defvjp(lambda x: (x * 2, None), lambda _, g: (get_operator("sum")(g, axis=0),))
    with pytest.raises(DifferentiationError, match=r"backwards: the gradient of argument 0 .*\[3\], expected \[4, 3\]"):
        ag.grad(get_operator("sum")(backwards(x)), x)
    forwards.defjvp(lambda primals, tangents: (primals[0] * 2, get_operator("sum")(tangents[0], axis=0)))
    with pytest.raises(DifferentiationError, match=r"forwards: the tangent of result 0 .*\[3\], expected \[4, 3\]"):
        ag.grad(get_operator("sum")(forwards(x)), x)
    forwards.defjvp(lambda primals, tangents: (primals[0] * 2, (tangents[0], tangents[0])))
    with pytest.raises(DifferentiationError, match="gave 2 tangents for 1 results"):
        ag.grad(get_operator("sum")(forwards(x)), x)


@pytest.mark.parametrize("capturing", [False, True])
@pytest.mark.parametrize(
    ("forward", "backward", "message"),
    [
        (lambda x: x * 2.0, lambda kept, g: (g,), r"forward should return \(results, residuals\), got a Tensor \[3\]"),
        (lambda x: (x, x, x), lambda kept, g: (g,), "got a tuple of 3"),
        (lambda x: (x * 2.0, ()), lambda kept, g: (2.0,), "the gradient of argument 0 should be a Tensor, got float"),
    ],
)
def test_parts_of_a_rule_that_are_no_tensors_are_named(forward, backward, message, capturing):
    @ag.custom_vjp
    def twice(x):
        return x * 2.0

    twice.defvjp(forward, backward)
    with Tracer() if capturing else nullcontext() as tracer:
        x = tracer.input(TensorType((3,), "float64"), stop_gradient=False) if capturing else leaf()
        with pytest.raises(DifferentiationError, match=f"custom_vjp function twice: .*{message}"):
            nth(twice, 1)(x)


def test_a_tangent_that_is_none_is_named():
    same = ag.custom_jvp(lambda x: x * 1.0)
    same.defjvp(lambda primals, tangents: (primals[0], None))
    with pytest.raises(DifferentiationError, match="the tangent of result 0 is None; return zeros_like"):
        nth(same, 1)(leaf())


class _Cube(ag.PyLayer):
    """x^3; its backward cuts the gradient off that it takes."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensor()
        return g.detach() * (x * x * 3.0)


class _CubeWithoutRecord(_Cube):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensor()
        with ag.no_grad():
            return g * (x * x * 3.0)


class _Flat(_Cube):
    @staticmethod
    def backward(ctx, g):
        return g.detach() * 0.0


class _Constant(_Cube):
    """The derivative moves with the gradient, not with the input."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensor()
        return g * (x.detach() * x.detach() * 3.0)


def _both(function, x):
    """What ``function`` gives eagerly, and while capturing: an array, or the type of its error."""

    def tried(run):
        try:
            return run()
        except DifferentiationError as error:
            return type(error)

    def captured():
        with Tracer("t") as tracer:
            given = tracer.input(TensorType(tuple(x.shape), "float64"), stop_gradient=False)
            program = tracer.finish([function(given)]).program
        PassManager("decompose,taylor-mode,expand-gradients,cse,dce").run(program)
        return prepare(program)([x.numpy()])[0]

    return tried(lambda: function(x).numpy()), tried(captured)


@pytest.mark.parametrize("cls", [_Cube, _CubeWithoutRecord])
def test_forward_mode_refuses_gradients_cut_off_from_their_seed(cls):
    """Zero was what jvp and jet made of them, in silence."""
    x = Tensor(np.array([1.0, 2.0]), stop_gradient=False)
    found = _both(lambda x: ag.jvp(cls.apply, x)[1], x)
    assert found == (DifferentiationError, DifferentiationError)
    with pytest.raises(DifferentiationError, match=rf"{cls.__name__} gives a gradient that does not depend"):
        ag.jet(lambda x: cls.apply(x) + x, (x,), ((1.0, 0.0),))


def test_forward_mode_through_gradients_that_are_constant_in_the_input():
    x = Tensor(np.array([1.0, 2.0]), stop_gradient=False)
    for found in _both(lambda x: ag.jvp(_Constant.apply, x)[1], x):
        np.testing.assert_array_equal(found, [3.0, 12.0])
    np.testing.assert_array_equal(ag.jvp(_Flat.apply, x)[1].numpy(), [0.0, 0.0])  # cut off, and zero


def test_what_backward_computes_without_recording_is_a_constant():
    """While capturing, too: the second derivative is refused as it is eagerly."""

    def second(x):
        (g,) = ag.grad(_CubeWithoutRecord.apply(x * 1.0).sum(), x, create_graph=True)
        return ag.grad(g.sum(), x)[0]

    x = Tensor(np.array([1.0, 2.0]), stop_gradient=False)
    assert _both(second, x) == (UnusedInput, UnusedInput)
