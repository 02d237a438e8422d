"""Gradients while capturing: a whole training step as one program equals eager execution."""

from __future__ import annotations

import numpy as np
import pytest

import argosy_autograd as ag
from argosy_autograd.errors import MissingRule, UnusedInput
from argosy_autograd.passes.expand import ExpandGradients
from argosy_phi_ops import get_operator
from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.custom_ops.declaration import custom_op
from argosy_phi_ops.passes.decompose import Decompose
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import SymExpr, TensorType
from argosy_pir.passes import PassManager
from argosy_tensorcore.tensor import Tensor

relu, linear = get_operator("relu"), get_operator("linear")


def mlp(seed=0):
    rng = np.random.default_rng(seed)
    shapes = [(3, 8), (8,), (8, 2), (2,)]
    return [Tensor(rng.standard_normal(s), stop_gradient=False) for s in shapes]


def step(parameters, x, y, rate=0.1):
    w1, b1, w2, b2 = parameters
    loss = ((linear(relu(linear(x, w1, b1)), w2, b2) - y) ** 2.0).mean()
    loss.backward()
    with ag.no_grad():
        for p in parameters:
            p.subtract_(p.grad * rate)
            p.clear_gradient(set_to_zero=False)
    return loss


def capture(function, types):
    with Tracer() as tracer:
        inputs = [tracer.input(t) for t in types]
        outputs = function(*inputs)
        captured = tracer.finish(outputs if isinstance(outputs, (list, tuple)) else [outputs])
    captured.program.verify()
    Decompose().run(captured.program)
    ExpandGradients().run(captured.program)
    captured.program.verify()
    return captured


def run(captured, arrays):
    """Execute and write the states back, as a compiler does."""
    states = [t.payload.ndarray for t in captured.states]
    outputs, new = interpret(captured.program, arrays, states)
    for i in captured.written:
        captured.states[i].payload.ndarray[...] = new[i]
    return outputs


def data(rows, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, 3)), rng.standard_normal((rows, 2))


def test_a_captured_training_step_equals_eager():
    """Forward, backward and the update through in-place writes, over a symbolic batch, for several steps."""
    eager, traced = mlp(), mlp()
    n = SymExpr.symbol("n")
    types = [TensorType((n, 3), "float64"), TensorType((n, 2), "float64")]
    captured = capture(lambda x, y: step(traced, x, y), types)
    assert len(captured.written) == 4
    for i, rows in enumerate((4, 7, 1)):
        x, y = data(rows, i)
        expected = step(eager, Tensor(x), Tensor(y))
        (loss,) = run(captured, [x, y])[:1]
        np.testing.assert_allclose(loss, expected.numpy(), rtol=1e-12)
        for p, q in zip(eager, traced, strict=True):
            np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-12)


def test_two_steps_in_one_capture_equal_two_eager_ones():
    """The second backward differentiates with respect to the updated parameters."""
    eager, traced = mlp(), mlp()
    x, y = data(4, 0)

    def twice(a, b):
        step(traced, a, b)
        return step(traced, a, b)

    captured = capture(twice, [TensorType(x.shape, "float64"), TensorType(y.shape, "float64")])
    step(eager, Tensor(x), Tensor(y))
    expected = step(eager, Tensor(x), Tensor(y))
    np.testing.assert_allclose(run(captured, [x, y])[0], expected.numpy(), rtol=1e-12)
    for p, q in zip(eager, traced, strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-12)


def test_gradients_are_outputs_and_slots_are_restored():
    """After the capture each leaf has its old gradient; the program returns the new ones."""
    w = Tensor(np.array([2.0]), stop_gradient=False)
    w.grad = Tensor(np.array([10.0]))
    old = w.grad

    def f(x):
        (w * x).sum().backward()
        return w.grad * 2.0

    captured = capture(f, [TensorType((1,), "float64")])
    assert w.grad is old
    ((leaf, position, _),) = captured.grads
    outputs = run(captured, [np.array([3.0])])
    assert leaf is w
    assert outputs[position].tolist() == [13.0]
    assert outputs[0].tolist() == [26.0]


def test_cleared_gradients_stay_symbolic():
    """clear_grad in captured code leaves a zero without a buffer, and the next backward starts from it."""
    w = Tensor(np.array([2.0]), stop_gradient=False)

    def f(x):
        (w * x).sum().backward()
        w.clear_grad()
        assert ag.is_symbolic_zero(w.grad)
        (w * x * x).sum().backward()
        g = w.grad
        w.clear_grad()
        return g

    captured = capture(f, [TensorType((1,), "float64")])
    assert w.grad is None
    ((_, position, final),) = captured.grads
    assert position is None
    assert ag.is_symbolic_zero(final)
    assert run(captured, [np.array([3.0])])[0].tolist() == [9.0]


def test_nested_gradients_are_captured():
    """A gradient penalty: the gradient with respect to an input, differentiated with respect to a parameter."""
    w = Tensor(np.array([2.0, 3.0]), stop_gradient=False)
    x0 = np.array([0.5, -1.0])

    def penalty(x):
        (g,) = ag.grad((w * x * x * x).sum(), x, create_graph=True)
        loss = (g * g).sum()
        (gw,) = ag.grad(loss, w)
        return loss, gw

    with Tracer() as tracer:
        x = tracer.input(TensorType((2,), "float64"), stop_gradient=False)
        captured = tracer.finish(penalty(x))
    Decompose().run(captured.program)
    ExpandGradients().run(captured.program)
    loss, gw = run(captured, [x0])
    xe = Tensor(x0, stop_gradient=False)
    expected = penalty(xe)
    np.testing.assert_allclose(loss, expected[0].numpy())
    np.testing.assert_allclose(gw, expected[1].numpy())


def test_without_create_graph_a_gradient_is_a_constant():
    """What eager execution would not differentiate through, the program does not either."""
    w = Tensor(np.array([2.0]), stop_gradient=False)

    def f(x):
        (g,) = ag.grad((w * w * x).sum(), w)
        (h,) = ag.grad((g * w).sum(), w)
        return h

    captured = capture(f, [TensorType((1,), "float64")])
    assert run(captured, [np.array([3.0])])[0].tolist() == f(Tensor(np.array([3.0]))).numpy().tolist() == [12.0]


def test_no_grad_and_detach_are_walls():
    """Values made without recording are constants."""
    w = Tensor(np.array([2.0]), stop_gradient=False)

    def f(x):
        with ag.no_grad():
            a = w * x
        b = (w * x).detach()
        (g,) = ag.grad((a * w + b * w).sum(), w)
        return g

    captured = capture(f, [TensorType((1,), "float64")])
    assert run(captured, [np.array([3.0])])[0].tolist() == [12.0]


def test_unused_inputs_are_errors_while_capturing_and_constants_give_no_gradients():
    """As in eager execution, and at once."""
    w, v = (Tensor(np.array([2.0]), stop_gradient=False) for _ in range(2))

    def f(x):
        assert ag.grad((w * x).sum(), [v], allow_unused=True) == [None]
        with pytest.raises(UnusedInput):
            ag.grad((w * x).sum(), [v])
        (x * x).sum().backward()
        assert x.grad is None
        return x

    capture(f, [TensorType((1,), "float64")])


class Scaled(ag.PyLayer):
    """x times a weight that is no argument, so that the derivative that is given has no place for it."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.weight = weight
        return x * weight[0]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.weight[0]


@pytest.mark.parametrize("capturing", [False, True])
def test_what_a_custom_rule_reads_beside_its_arguments_has_no_first_derivative_but_a_second(capturing):
    """The first would be zeros without a word; the derivative of g w by w is what backward says."""
    w = Tensor(np.array([2.0]), stop_gradient=False)

    def first(x):
        y = Scaled.apply(x, [w]).sum()
        assert ag.grad(y, [w], allow_unused=True, retain_graph=True) == [None]
        with pytest.raises(UnusedInput):
            ag.grad(y, w)
        (g,) = ag.grad(Scaled.apply(x, [w]).sum(), x, create_graph=True)
        return ag.grad((g * g).sum(), w)[0]

    if capturing:
        with Tracer() as tracer:
            x = tracer.input(TensorType((1,), "float64"), stop_gradient=False)
            captured = tracer.finish([first(x)])
        Decompose().run(captured.program)
        ExpandGradients().run(captured.program)
        assert run(captured, [np.array([3.0])])[0].tolist() == [4.0]
    else:
        assert first(Tensor(np.array([3.0]), stop_gradient=False)).numpy().tolist() == [4.0]


def test_hooks_on_leaves_run_while_capturing():
    """They get the traced gradient."""
    w = Tensor(np.array([2.0]), stop_gradient=False)
    handle = w.register_hook(lambda g: g * 10.0)

    def f(x):
        (w * x).sum().backward()
        return w.grad

    assert run(capture(f, [TensorType((1,), "float64")]), [np.array([3.0])])[0].tolist() == [30.0]
    handle.remove()


class Cube(ag.PyLayer):
    """x^3 times a weight, and x itself; backward doubles the gradient of x so that it can be told apart."""

    @staticmethod
    def forward(ctx, x, w):
        y = x * x * x
        ctx.save_for_backward(x, w)
        return y * w, x

    @staticmethod
    def backward(ctx, g, h):
        x, w = ctx.saved_tensor()
        return g * x * x * w * 6.0 + h, (g * x * x * x).sum()


def cube(x, w):
    y, same = Cube.apply(x, w)
    loss = (y * y).sum() + same.sum()
    (gx,) = ag.grad(loss, x, create_graph=True)
    return gx, *ag.grad((gx * gx).sum(), [x, w])


def test_pylayers_are_captured_with_their_backward():
    """backward is traced into the program: first and second order equal eager execution."""
    w = Tensor(np.array(2.0), stop_gradient=False)
    x0 = np.array([0.5, -1.5])
    with Tracer() as tracer:
        x = tracer.input(TensorType((2,), "float64"), stop_gradient=False)
        captured = tracer.finish(cube(x, w))
    captured.program.verify()
    Decompose().run(captured.program)
    ExpandGradients().run(captured.program)
    captured.program.verify()
    assert "ad." not in str(captured.program)
    expected = [t.numpy() for t in cube(Tensor(x0, stop_gradient=False), w)]
    for got, want in zip(run(captured, [x0]), expected, strict=True):
        np.testing.assert_allclose(got, want)


def test_a_pylayer_without_a_gradient_request_leaves_no_trace():
    """The pass removes what was never asked."""
    w = Tensor(np.array([2.0]), stop_gradient=False)
    captured = capture(lambda x: Cube.apply(x, w)[0], [TensorType((1,), "float64")])
    assert "ad." not in str(captured.program)
    assert run(captured, [np.array([3.0])])[0].tolist() == [54.0]


def test_hooks_on_traced_tensors_become_part_of_the_program():
    """They get the gradient and may replace it; after the first use it is too late."""
    w = Tensor(np.array([2.0]), stop_gradient=False)

    def f(x):
        y = w * x
        y.register_hook(lambda g: g * 10.0)
        z = y * y
        with pytest.raises(NotImplementedError, match="right after"):
            y.register_hook(lambda g: g)
        z.sum().backward()
        return w.grad

    assert run(capture(f, [TensorType((1,), "float64")]), [np.array([3.0])])[0].tolist() == [360.0]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: get_operator("cast")(get_operator("argmax")(x), "float64"), r"on the way, argmax \(.*test_capture"),
        (lambda x: x.detach() * 3, r"on the way, stop_gradient \(.*test_capture.*constant for differentiation"),
    ],
)
def test_a_wall_on_the_way_is_named(function, message):
    """The operation that has no derivative, and its line."""
    with Tracer() as tracer:
        x = tracer.input(TensorType((3,), "float64"), stop_gradient=False)
        with pytest.raises(UnusedInput, match=message):
            ag.grad(function(x).sum(), x)


def test_integer_inputs_are_told_to_be_cast():
    """Eager and while capturing."""
    x = Tensor(np.arange(3))
    with pytest.raises(UnusedInput, match=r"int64.*cast it before"):
        ag.grad((x * 2).sum(), x)
    with Tracer() as tracer:
        x = tracer.input(TensorType((3,), "int64"))
        with pytest.raises(UnusedInput, match=r"int64.*cast it before"):
            ag.grad((x * 2).sum(), x)


def test_captured_gradients_do_not_go_through_constants(both):
    """no_grad_vars are blockers for one request only, of first and of second order."""

    def f(x):
        y = x * x
        (g,) = ag.grad((y * x).sum(), x, no_grad_vars=y, create_graph=True)  # y, not 3 x^2
        (h,) = ag.grad((g * x).sum(), x, create_graph=True)  # 3 x^2, through y again
        (unused,) = ag.grad(y.sum(), x, no_grad_vars=[y], allow_unused=True)
        assert unused is None
        return g + h

    x = np.array([3.0, -2.0])
    np.testing.assert_allclose(both(f, x), 4 * x * x)


@custom_op("testcapture.third_power")
def third_power(x: Tensor) -> Tensor:
    return x**3


@custom_op("testcapture.slope")
def slope(x: Tensor) -> Tensor:
    return 3 * x**2


@third_power.gradient
def _(g, result, x):
    return (g * slope(x),)


@pytest.mark.parametrize("order", [2, 3])
def test_a_derivative_that_does_not_exist_is_named_with_its_order_and_line(order):
    """The custom operator's gradient has none itself, whatever further orders were asked for."""
    with Tracer("t") as tracer:
        x = tracer.input(TensorType((2,), "float64"), stop_gradient=False)
        y = third_power(x)
        for _ in range(order):
            (y,) = ag.grad(y.sum(), x, create_graph=True)
        made = tracer.finish([y])
    expected = r"testcapture.slope.*a derivative of order 2, was asked for at .*test_capture"
    with pytest.raises(MissingRule, match=expected):
        PassManager("decompose,taylor-mode,expand-gradients").run(made.program)
