"""Sizes that vary from call to call become open by themselves: one program serves all and answers as eager code."""

import gc

import numpy as np
import pytest

import argosy as paddle
from argosy.nn import functional as F

MANY = range(2, 12)
LIMIT = 4


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setenv("ARGOSY_OPEN_AFTER", str(LIMIT))


def shapes_of(static):
    return [[str(n) for n in value.type.shape] for value in static.compiled[-1].program.inputs]


def scaled(x):
    return (x * 2 + 1).tanh().sum()


def attended(x):
    n = x.shape[0]
    mask = paddle.triu(paddle.full([n, n], -1e4), 1)
    return (paddle.matmul(x, x, transpose_y=True) + mask).softmax(-1)


shifted = lambda x: (x - 1).exp().mean()  # noqa: E731


def paired(x):
    return F.linear(x, paddle.ones([3, 2])) / x.shape[0]


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", [scaled, attended, shifted])
def test_one_program_serves_calls_that_differ_in_sizes(function, full_graph):
    static = paddle.jit.to_static(function, full_graph=full_graph)
    for n in MANY:
        x = paddle.randn([n, 3])
        np.testing.assert_allclose(static(x).numpy(), function(x).numpy(), rtol=1e-5, atol=1e-6)
    assert len(static.compiled) == LIMIT + 1
    assert shapes_of(static) == [["s0", "3"]]


def equals(x):
    return x * 2 if x.shape[0] == 9 else x * 3


def is_among(x):
    return x * 2 if x.shape[0] in {9, 10} else x * 3


def has_shape(x):
    return x * 2 if x.shape == (9, 3) else x * 3


def is_longer(x):
    return x * 2 if x.shape[0] > 8 else x * 3


def adds_rows(x):
    total = x[0]
    for i in range(1, x.shape[0]):
        total = total + x[i]
    return total


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", [equals, is_among, has_shape, is_longer, adds_rows, paired])
def test_python_code_that_needs_the_number_of_a_size_has_it(function, full_graph):
    static = paddle.jit.to_static(function, full_graph=full_graph)
    for n in MANY:
        x = paddle.randn([n, 3])
        np.testing.assert_allclose(static(x).numpy(), function(x).numpy(), rtol=1e-5, atol=1e-6)
    assert all("s0" not in sizes for sizes in shapes_of(static))


def test_sizes_that_are_equal_in_all_calls_are_one_symbol():
    def affine(x, y, z):
        return paddle.matmul(x, y) + z

    static = paddle.jit.to_static(affine, full_graph=True)
    for n in MANY:
        x, y, z = paddle.randn([n, 2 * n]), paddle.randn([2 * n, n]), paddle.randn([n])
        np.testing.assert_allclose(static(x, y, z).numpy(), x.numpy() @ y.numpy() + z.numpy(), rtol=1e-4, atol=1e-5)
    assert shapes_of(static) == [["s0", "s1"], ["s1", "s0"], ["s0"]]
    with pytest.raises(ValueError, match="matmul"):
        static(paddle.randn([3, 5]), paddle.randn([6, 3]), paddle.randn([3]))


def test_sizes_of_none_and_one_have_programs_of_their_own():
    def added(x, y):
        return x + y

    static = paddle.jit.to_static(added, full_graph=True)
    for n in MANY:
        static(paddle.ones([n, 2]), paddle.ones([n, 2]))
    assert shapes_of(static) == [["s0", "2"], ["s0", "2"]]
    assert static(paddle.ones([1, 2]), paddle.ones([8, 2])).shape == [8, 2]
    assert static(paddle.ones([0, 2]), paddle.ones([1, 2])).shape == [0, 2]
    with pytest.raises(ValueError, match="add"):
        static(paddle.ones([3, 2]), paddle.ones([8, 2]))


def test_a_function_that_changes_python_objects_runs_once_a_call():
    seen = []

    def noted(x):
        seen.append(1)
        return x * x.shape[0]

    static = paddle.jit.to_static(noted)
    for n in MANY:
        static(paddle.ones([n]))
    assert len(seen) == len(MANY)


@pytest.mark.parametrize("full_graph", [True, False])
def test_a_training_step_learns_as_eager_steps_do(full_graph):
    def trained(static):
        paddle.seed(3)
        model = paddle.nn.Sequential(paddle.nn.Linear(3, 8), paddle.nn.GELU(), paddle.nn.Linear(8, 1))
        optimizer = paddle.optimizer.AdamW(1e-2, parameters=model.parameters())

        def step(x):
            loss = F.mse_loss(model(x), x.sum(-1, keepdim=True))
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        run = paddle.jit.to_static(step, full_graph=full_graph) if static else step
        draws = np.random.default_rng(0)
        losses = [float(run(paddle.to_tensor(draws.normal(size=[n, 3]).astype("float32")))) for n in MANY]
        return losses, run

    losses, static = trained(True)
    np.testing.assert_allclose(losses, trained(False)[0], rtol=1e-4)
    assert shapes_of(static)[0] == ["s0", "3"]


def test_gradients_from_outside_pass_through_the_program_of_all_sizes():
    layer = paddle.jit.to_static(paddle.nn.Linear(3, 2))
    for n in MANY:
        x = paddle.randn([n, 3])
        layer(x).sum().backward()
        np.testing.assert_allclose(layer.bias.grad.numpy(), [n, n])
        np.testing.assert_allclose(layer.weight.grad.numpy()[:, 0], x.numpy().sum(0), rtol=1e-4, atol=1e-5)
        layer.clear_gradients()
    assert shapes_of(layer.forward)[0] == ["s0", "3"]


def test_zero_turns_it_off(monkeypatch):
    monkeypatch.setenv("ARGOSY_OPEN_AFTER", "0")
    static = paddle.jit.to_static(scaled, full_graph=True)
    for n in MANY:
        static(paddle.ones([n, 3]))
    assert len(static.compiled) == len(MANY)


def test_an_error_of_the_function_is_that_of_eager_execution():
    def picky(x, y):
        return x + y

    static = paddle.jit.to_static(picky, full_graph=True)
    for n in MANY:
        with pytest.raises(ValueError, match="add"):
            static(paddle.ones([n]), paddle.ones([n + 1]))


def test_memory_does_not_grow_with_sizes():
    static = paddle.jit.to_static(scaled, full_graph=True)
    for n in MANY:
        static(paddle.ones([n, 3]))
    gc.collect()
    known = len(static._known)
    for n in range(20, 120):
        static(paddle.ones([n, 3]))
    assert len(static._known) == known == LIMIT + 1


def test_arithmetic_of_sizes_needs_no_number():
    def halves(x):
        n = x.shape[0] * 2 + 1
        return x.reshape([1, -1]).tile([n // 2, 1]) * 1.0

    static = paddle.jit.to_static(halves)
    for n in MANY:
        assert static(paddle.ones([n])).shape == [n, n]
    assert shapes_of(static) == [["s0"]]
