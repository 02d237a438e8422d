"""Repeated calls of captured functions: what takes the short way, and that guards hold on it."""

import numpy as np
import pytest

import argosy as paddle
from argosy.jit.fast_path import MISS

FACTOR = 2.0


def called(function, *args, times=3):
    """The result of the last of several calls: the first captures, the second opens the route."""
    return [function(*args).numpy() for _ in range(times)][-1]


@pytest.fixture
def x():
    return paddle.to_tensor(np.arange(6, dtype=np.float32).reshape(2, 3))


def taken(function, *args):
    """Whether one of the open routes serves the call."""
    return any(route(args) is not MISS for route in function._routes)


def test_repeated_calls_take_the_short_way_and_agree(x):
    static = paddle.jit.to_static(lambda a, b: a * b + a)
    np.testing.assert_allclose(called(static, x, x), x.numpy() ** 2 + x.numpy())
    assert taken(static, x, x)


def test_other_types_flags_values_and_numbers_of_arguments_do_not(x):
    static = paddle.jit.to_static(lambda a, k=1: a * k)
    called(static, x, 3)
    assert taken(static, x, 3)
    assert not taken(static, x)
    assert not taken(static, x, 4)
    assert not taken(static, x.astype("float64"), 3)
    assert not taken(static, x[:1], 3)
    wanted = paddle.to_tensor(x.numpy(), stop_gradient=False)
    assert not taken(static, wanted, 3)
    np.testing.assert_allclose(static(x, 4).numpy(), x.numpy() * 4)
    np.testing.assert_allclose(static(x[:1], 3).numpy(), x.numpy()[:1] * 3)


def test_a_changed_global_and_cell_are_noticed(x, monkeypatch):
    offset = 1.0

    def function(a):
        return a * FACTOR + offset

    static = paddle.jit.to_static(function)
    np.testing.assert_allclose(called(static, x), x.numpy() * 2 + 1)
    assert taken(static, x)
    offset = 5.0
    np.testing.assert_allclose(called(static, x), x.numpy() * 2 + 5)
    monkeypatch.setattr(__import__("sys").modules[__name__], "FACTOR", 3.0)
    np.testing.assert_allclose(called(static, x), x.numpy() * 3 + 5)


def test_states_are_read_where_they_are(x):
    layer = paddle.nn.Linear(3, 2)
    layer.eval()
    static = paddle.jit.to_static(layer.forward)
    with paddle.no_grad():
        called(static, x)
        layer.weight.set_value(np.ones((3, 2), np.float32))
        layer.weight = paddle.create_parameter([3, 2], "float32", default_initializer=paddle.nn.initializer.Constant(2))
        np.testing.assert_allclose(static(x).numpy(), layer(x).numpy())


def test_a_view_with_gaps_is_served_and_right(x):
    static = paddle.jit.to_static(lambda a: a + 1.0)
    turned = paddle.to_tensor(np.arange(6, dtype=np.float32).reshape(3, 2)).t()
    assert turned.shape == x.shape
    called(static, x)
    np.testing.assert_allclose(static(turned).numpy(), turned.numpy() + 1)


def test_results_keep_their_structure(x):
    static = paddle.jit.to_static(lambda a: {"double": a * 2, "list": [a + 1, 7]})
    for _ in range(3):
        made = static(x)
    assert taken(static, x)
    np.testing.assert_allclose(made["double"].numpy(), x.numpy() * 2)
    np.testing.assert_allclose(made["list"][0].numpy(), x.numpy() + 1)
    assert made["list"][1] == 7


def test_with_and_without_gradients_are_two_ways(x):
    layer = paddle.nn.Linear(3, 2)
    static = paddle.jit.to_static(layer.forward)
    with paddle.no_grad():
        expected = called(static, x)
        assert static._quiet_routes[0]((x,)) is not MISS
        np.testing.assert_allclose(expected, layer(x).numpy(), rtol=1e-6)
        with paddle.amp.auto_cast(dtype="bfloat16"):
            assert static(x).dtype is paddle.bfloat16
    made = static(x)  # wants gradients of the layer's parameters
    assert not made.stop_gradient
    assert not static._routes
    with paddle.no_grad():
        assert static(x).stop_gradient


def test_switching_capture_off_is_noticed(x):
    calls = []

    def function(a):
        calls.append(1)
        return a + 1

    static = paddle.jit.to_static(function, full_graph=True)
    called(static, x)
    before = len(calls)
    paddle.jit.enable_to_static(False)
    try:
        static(x)
    finally:
        paddle.jit.enable_to_static(True)
    assert len(calls) == before + 1


@pytest.mark.parametrize("quiet", [False, True])
def test_distributed_tensors_about_leave_the_short_way_open(x, quiet, monkeypatch):
    """Their layer is none of the business of a function of ordinary tensors."""
    mesh = paddle.distributed.ProcessMesh([0], dim_names=["d"])
    about = paddle.distributed.shard_tensor(paddle.ones([2]), mesh, [paddle.distributed.Replicate()])
    f = paddle.jit.to_static(lambda v: v * 2.0 + 1.0)
    with paddle.no_grad() if quiet else paddle.enable_grad():
        for _ in range(3):
            expected = f(x)
        monkeypatch.setattr(type(f), "_call", None)
        np.testing.assert_array_equal(f(x).numpy(), expected.numpy())
        del about
        if not quiet:
            np.testing.assert_array_equal(f(x).numpy(), expected.numpy())
