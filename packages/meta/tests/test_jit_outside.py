"""Derivatives that users give hold where a captured forward function is trained by a ``backward()`` outside of it."""

import numpy as np
import pytest

import argosy as paddle


class Weighted(paddle.autograd.PyLayer):
    """Three times the value; as gradient the saved value times what arrives, which is not the derivative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensor()[0] * 100


def with_pylayer(x, weight):
    """Between other operations, on a parameter as well."""
    return (Weighted.apply(x * 2) * Weighted.apply(weight)).sum()


def with_hook(x, weight):
    """A gradient that a hook turns round."""
    y = x * weight
    y.register_hook(lambda g: -7 * g)
    return (y * y).sum()


def gradients(run):
    """Those of an input and of a parameter, of two calls."""
    weight = paddle.create_parameter([3], "float32")
    weight.set_value(np.array([1.0, -2.0, 0.5], np.float32))
    found = []
    for scale in (1.0, 3.0):
        x = paddle.to_tensor([scale, 2.0, -1.0], stop_gradient=False)
        run(x, weight).backward()
        found += [x.grad.numpy(), weight.grad.numpy()]
        weight.clear_grad()
    return found


@pytest.mark.parametrize("function", [with_pylayer, with_hook])
@pytest.mark.parametrize("whole", [True, False])
def test_given_derivatives_are_asked(function, whole):
    """The compiled forward's node has the gradients of eager execution."""
    compiled = paddle.jit.to_static(function, full_graph=whole)
    for found, expected in zip(gradients(compiled), gradients(function), strict=True):
        np.testing.assert_array_equal(found, expected)


class Regularised(paddle.nn.Layer):
    """Random numbers are drawn and statistics updated."""

    def __init__(self):
        super().__init__()
        self.first, self.last = paddle.nn.Linear(8, 16, bias_attr=False), paddle.nn.Linear(16, 1)
        self.norm, self.drop = paddle.nn.BatchNorm1D(16), paddle.nn.Dropout(0.5)

    def forward(self, x):
        return self.last(self.drop(paddle.nn.functional.relu(self.norm(self.first(x)))))


def regularised_training(convert):
    """Losses, gradients of inputs, and the state after three steps. Each step's backward belongs to two calls of the
    forward, which drew numbers of their own."""
    paddle.seed(3)
    model = Regularised()
    optimizer = paddle.optimizer.SGD(0.01, parameters=model.parameters())
    run, found = convert(model), []
    for step in range(3):
        rows = np.random.default_rng(step).standard_normal((4, 8)).astype(np.float32)
        x = paddle.to_tensor(rows, stop_gradient=False)
        one, other = run(x), run(x * 2)
        loss = (one * one).mean() + other.mean()
        loss.backward()
        found += [loss.numpy(), x.grad.numpy()]
        optimizer.step()
        optimizer.clear_grad()
    return [*found, *(value.numpy() for value in model.state_dict().values())]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.filterwarnings("error")  # there is a warning where it runs as plain Python
def test_draws_and_statistics_are_those_of_the_forward_call(whole):
    expected = regularised_training(lambda model: model)
    found = regularised_training(lambda model: paddle.jit.to_static(model, full_graph=whole))
    for each, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(each, wanted, rtol=1e-4, atol=1e-5)


def test_a_first_call_runs_python_once():
    """Effects of its code would be there twice if it ran twice."""
    model, shapes = Regularised(), []

    def forward(x):
        shapes.append(list(x.shape))
        return model(x)

    paddle.jit.to_static(forward, full_graph=True)(paddle.ones([4, 8])).sum().backward()
    assert shapes == [[4, 8]]
    assert model.last.weight.grad is not None


def test_gradients_of_an_older_call_use_its_draws():
    paddle.seed(7)
    run = paddle.jit.to_static(lambda x: paddle.nn.functional.dropout(x, 0.5) * x, full_graph=True)
    inputs = [paddle.full([64], 3.0) for _ in range(3)]
    for x in inputs:
        x.stop_gradient = False
    results = [run(x) for x in inputs]
    for x, y in reversed([*zip(inputs, results, strict=True)]):
        y.sum().backward(retain_graph=True)
        np.testing.assert_allclose(x.grad, 2 * y.numpy() / 3, rtol=1e-6)
    assert len({tuple(y.tolist()) for y in results}) == 3


def cubed(x, weight):
    """A derivative that is the user's own is differentiated again, too."""
    return paddle.sin(Cubed.apply(weight * x)).sum()


class Cubed(paddle.autograd.PyLayer):
    """The third power."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensor()
        return 3 * x * x * g


def with_branch(x, weight):
    """A choice and a number, by which it is multiplied."""
    if x.sum() > 0:
        x = paddle.nn.functional.softmax(x * weight)
    return (x * 2.5 * x).sum()


def penalised(run, create=True):
    """First derivatives, second ones, and gradients of a loss that reads both; twice, as calls come again."""
    weight = paddle.create_parameter([3], "float32")
    weight.set_value(np.array([1.0, -2.0, 0.5], np.float32))
    found = []
    for scale in (0.7, 1.1):
        x = paddle.to_tensor([scale, 0.4, -0.3], stop_gradient=False)
        (first,) = paddle.grad(run(x * 1.5, weight), x, create_graph=True)
        (second,) = paddle.grad((first * first).sum(), x, create_graph=True)
        ((first**2).sum() + (second**2).sum()).backward()
        found += [first.numpy(), second.numpy(), x.grad.numpy(), weight.grad.numpy()]
        weight.clear_grad()
    return found


@pytest.mark.parametrize("function", [cubed, with_hook, with_branch])
def test_gradients_outside_are_differentiated_again(function):
    """A captured forward has derivatives of every order, as a penalty on gradients asks for."""
    compiled = paddle.jit.to_static(function, full_graph=True)
    for found, expected in zip(penalised(compiled), penalised(function), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)


def test_second_derivatives_read_the_statistics_and_draws_of_the_call():
    """With dropout and normalisation: the loss and gradients of the same layer, not captured."""
    made = []
    for capture in (False, True):
        paddle.seed(3)
        layer = Regularised()
        run = paddle.jit.to_static(layer, full_graph=True) if capture else layer
        x = paddle.to_tensor(np.linspace(-1, 1, 32).reshape(4, 8).astype("float32"), stop_gradient=False)
        for _ in range(2):
            (g,) = paddle.grad(paddle.tanh(run(x)).sum(), x, create_graph=True)
            (g * g).sum().backward()
        made.append([g.numpy(), *(p.grad.numpy() for p in layer.parameters() if p.grad is not None)])
    assert len(made[0]) == len(made[1])
    terms = max(float(np.abs(expected).max()) for expected in made[0])  # sums of terms as large may cancel
    for expected, found in zip(*made, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6 * max(10.0, terms))


class Mirrored(paddle.autograd.PyLayer):
    """What its backward does is the same again, of a value that the tape does not see."""

    @staticmethod
    def forward(ctx, x):
        return paddle.flip(x.detach(), [0])

    @staticmethod
    def backward(ctx, gradient):
        return Mirrored.apply(gradient)


class WithoutDerivative(Mirrored):
    @staticmethod
    def backward(ctx, gradient):
        raise NotImplementedError("nobody knows it")


def test_a_backward_that_applies_its_own_class_is_captured() -> None:
    """To a high order; one that is refused is an error, and no missing gradient."""

    @paddle.jit.to_static(full_graph=True)
    def step(layer, x):
        (layer.apply(x) * paddle.arange(3.0)).sum().backward()
        return x.grad

    x = paddle.ones([3])
    x.stop_gradient = False
    np.testing.assert_array_equal(step(Mirrored, x).numpy(), [2, 1, 0])
    with pytest.raises(Exception, match=r"WithoutDerivative\.backward is not implemented: nobody knows it"):
        step(WithoutDerivative, x)
