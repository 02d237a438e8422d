"""What branches and loops on tensors do beside computing: gradients that they leave, random numbers that they draw."""

import numpy as np
import pytest

import argosy as paddle

pytestmark = pytest.mark.usefixtures("verified_passes")

F = paddle.nn.functional
BACKENDS = pytest.mark.parametrize("backend", ["reference", "CINN"])


def _t(*values):
    return paddle.to_tensor(np.array(values, np.float32))


def _model():
    """A regression and its optimizer, the same every time."""
    paddle.seed(7)
    model = paddle.nn.Linear(2, 1)
    return model, paddle.optimizer.Adam(0.1, parameters=model.parameters())


def _states(model):
    return [p.numpy() for p in model.parameters()], [
        None if p.grad is None else p.grad.numpy() for p in model.parameters()
    ]


def _trains_alike(make_step, calls, backend):
    """A step captured whole leaves parameters and gradients as the eager step does, call after call."""
    found = []
    for captured in (False, True):
        model, optimizer = _model()
        step = make_step(model, optimizer)
        step = paddle.jit.to_static(step, full_graph=True, backend=backend) if captured else step
        trace = []
        for x in calls:
            out = step(x)
            trace.append((out.numpy(), *_states(model)))
        found.append(trace)
    for eager, traced in zip(*found, strict=True):
        np.testing.assert_allclose(traced[0], eager[0], rtol=2e-5, atol=1e-6)
        for a, b in zip(traced[1], eager[1], strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
        for a, b in zip(traced[2], eager[2], strict=True):
            np.testing.assert_allclose(0 if a is None else a, 0 if b is None else b, rtol=2e-4, atol=1e-6)


X = [_t([1, 2], [3, 4]), _t([-1, -2], [-3, 0]), _t([2, -1], [1, 1])]


@BACKENDS
def test_backward_within_a_branch(backend):
    """Either branch leaves its own gradients in the slots, and what the loss was computed from may lie outside."""

    def make(model, optimizer):
        def step(x):
            loss = (model(x) ** 2).mean()
            if x.sum() > 0:
                loss.backward()
            else:
                (loss * 3 + model.weight.sum()).backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return step

    _trains_alike(make, X, backend)


@BACKENDS
def test_a_training_step_within_a_branch(backend):
    """backward(), the optimizer's step and clear_grad() run where the condition holds, and nowhere else."""

    def make(model, optimizer):
        def step(x):
            loss = (model(x) ** 2).mean()
            if x.sum() > 0:
                loss.backward()
                optimizer.step()
                optimizer.clear_grad()
            return loss

        return step

    _trains_alike(make, X, backend)


def test_gradients_that_one_branch_adds_stay():
    """Gradients add up over calls; the branch that asks for none leaves what there was."""

    def make(model, optimizer):
        def step(x):
            if x.sum() > 0:
                (model(x) ** 2).mean().backward()
            return x.sum()

        return step

    _trains_alike(make, [X[0], X[1], X[2], X[0]], "reference")


@BACKENDS
def test_training_until_the_loss_is_small(backend):
    """A loop that trains until values tell it to stop is one program."""

    def make(model, optimizer):
        def step(x):
            loss = paddle.to_tensor(1.0)
            steps = paddle.to_tensor(0)
            while loss > 0.05 and steps < 40:
                loss = ((model(x) - 1) ** 2).mean()
                loss.backward()
                optimizer.step()
                optimizer.clear_grad()
                steps = steps + 1
            return steps

        return step

    _trains_alike(make, X[:2], backend)


def test_gradients_add_up_over_a_loop():
    """backward() in every step of a loop leaves the sum in the slot."""

    def make(model, optimizer):
        def step(x):
            i = paddle.to_tensor(0)
            while i < 3:
                (model(x * i) ** 2).mean().backward()
                i = i + 1
            return i

        return step

    _trains_alike(make, X[:2], "reference")


def test_arguments_get_gradients_from_a_branch():
    """The gradient of an argument that a branch asks for reaches the caller's tensor."""

    def f(x):
        if x.sum() > 0:
            (x * x).sum().backward()
        else:
            (x * 5).sum().backward()

    captured = paddle.jit.to_static(f, full_graph=True, backend="reference")
    for values in ((1.0, 2.0), (-1.0, -2.0)):
        x, y = _t(*values), _t(*values)
        x.stop_gradient = y.stop_gradient = False
        captured(x)
        f(y)
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy())


@BACKENDS
def test_random_numbers_of_loops_and_branches_are_those_of_eager_execution(backend):
    """Each step draws anew, a branch not taken draws nothing, and later draws go on from there."""

    def f(x):
        y = paddle.rand([2]) + x
        i = paddle.to_tensor(0)
        while y.sum() < 4:
            y = y + paddle.rand([2])
            if y[0] > y[1]:
                y = y + F.dropout(paddle.ones([2]), 0.5) + paddle.rand([2])
            i = i + 1
        if x.sum() > 0:
            y = y + paddle.rand([2])
        return y, i, paddle.rand([3])

    captured = paddle.jit.to_static(f, full_graph=True, backend=backend)
    for x in (_t(1, 1), _t(-3, 2), _t(9, 9), _t(-1, 0)):
        paddle.seed(11)
        expected = [f(x), f(x)]
        paddle.seed(11)
        for wanted in expected:
            for a, b in zip(captured(x), wanted, strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)
