"""Tensors that share memory, in captured code: writes to one are seen in the others, as in eager execution."""

import numpy as np
import pytest

import argosy as paddle


def rows(x):
    y = x * 1
    y[0].add_(paddle.ones([4]))
    y[:, 1].zero_()
    y[1:, ::-2].scale_(3.0)
    return y


def shapes(x):
    y = x * 1
    flat = y.reshape([-1])
    flat[3] = 5.0
    y.unsqueeze(1)[:, 0, 2].add_(paddle.ones([3]))
    return y, flat


def turned(x):
    y = x * 1
    y.t()[1].multiply_(paddle.full([3], 2.0))
    y.transpose([1, 0])[2] = paddle.arange(3, dtype="float32")
    paddle.diagonal(y).zero_()
    return y


def views_of_views(x):
    y = x * 1
    first, second, third = y.unbind(0)
    part = second[1:3]
    part.add_(first[:2])
    third.copy_(second)
    y.exp_()
    return y, first, second, third, part


def older_view(x):
    y = x * 1
    view = y[1]
    y.add_(paddle.ones_like(y))
    return view * 2, y


def branch(x):
    y = x * 1
    view = y[0]
    if x.sum() > 0:
        view.add_(paddle.ones([4]))
    else:
        y.scale_(2.0)
    return y, view


def loop(x):
    y = x * 1
    view = y[1]
    i = paddle.zeros([], "int32")
    while i < 3:
        view.add_(y[0])
        i = i + 1
    return y, view


def of_copies(x):
    y = x * 1
    chosen = y[paddle.to_tensor([0, 2])]
    chosen.zero_()
    return y, chosen


def broken(x):
    y = x * 1
    view = y[1]
    view.scale_(2.0)
    if float(view.sum()) > 1e9:
        return y, view
    view.add_(paddle.ones([4]))
    return y, view


FUNCTIONS = [rows, shapes, turned, views_of_views, older_view, branch, loop, of_copies]


def listed(results):
    return list(results) if isinstance(results, tuple | list) else [results]


def given(sign=1.0):
    values = np.random.default_rng(0).random((3, 4)).astype(np.float32) * sign
    return paddle.to_tensor(values, stop_gradient=False)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_writes_through_views_reach_what_shares_the_memory(function, sign):
    static = paddle.jit.to_static(function, full_graph=True)
    for _ in range(2):
        with paddle.no_grad():
            for a, b in zip(listed(static(given(sign))), listed(function(given(sign))), strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


@pytest.mark.parametrize("function", [rows, shapes, turned, older_view])
def test_gradients_pass_through_views_that_are_written(function):
    """Captured code has the derivative of what it computes, by differences. Eager tapes, as Paddle's, do not see that
    the base of a view was written."""
    static = paddle.jit.to_static(lambda x: sum((y * y).sum() for y in listed(function(x))), full_graph=True)
    x = given()
    static(x).backward()
    rng, step = np.random.default_rng(1), 1e-2
    for _ in range(3):
        way = rng.standard_normal((3, 4)).astype(np.float32)
        with paddle.no_grad():
            ahead, behind = (static(x + sign * step * paddle.to_tensor(way)).item() for sign in (1, -1))
        assert (ahead - behind) / (2 * step) == pytest.approx(float((x.grad.numpy() * way).sum()), rel=1e-2, abs=1e-2)


def test_what_is_written_into_a_view_has_gradients():
    @paddle.jit.to_static(full_graph=True)
    def f(x):
        y = paddle.zeros([3, 4])
        y[1].add_(x[0] * x[0])
        return (y * paddle.arange(4, dtype="float32")).sum()

    x = given()
    f(x).backward()
    expected = np.zeros((3, 4), np.float32)
    expected[0] = 2 * x.numpy()[0] * np.arange(4)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)


def test_views_of_states_write_to_the_state():
    def step(buffer):
        row, other = buffer[0], buffer[2]
        row.add_(paddle.ones([4]))
        other.copy_(row * 3)
        return row + other

    captured, eager = paddle.zeros([4, 4]), paddle.zeros([4, 4])
    static = paddle.jit.to_static(lambda: step(captured), full_graph=True)
    for _ in range(3):
        np.testing.assert_array_equal(static().numpy(), step(eager).numpy())
        np.testing.assert_array_equal(captured.numpy(), eager.numpy())


def test_a_break_after_a_write_through_a_view_keeps_the_memory_shared():
    static = paddle.jit.to_static(broken)
    for _ in range(3):
        with paddle.no_grad():
            for a, b in zip(static(given()), broken(given()), strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_what_may_be_a_copy_is_not_written_while_capturing():
    def f(x):
        y = x * 1
        y.t().reshape([-1]).zero_()
        return y

    with pytest.raises(NotImplementedError, match="may be a copy"):
        paddle.jit.to_static(f, full_graph=True)(given())
    with paddle.no_grad():
        np.testing.assert_array_equal(paddle.jit.to_static(f)(given()).numpy(), f(given()).numpy())
