"""Threads that use the framework at once: a capture, autocast and hooks are those of the thread that began them."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import argosy as paddle


@pytest.fixture
def x():
    return paddle.to_tensor(np.arange(6, dtype=np.float32).reshape(2, 3))


def beside(start, work):
    """What ``work`` gives on another thread while this one is where ``start`` calls what it is given."""
    with ThreadPoolExecutor(1) as pool:
        results = []
        start(lambda: results.append(pool.submit(work).result(timeout=3600)))
    return results[0]


def test_others_compute_eagerly_while_one_captures(x):
    def capture(meet):
        @paddle.jit.to_static(full_graph=True)
        def doubled(a):
            b = a * 2
            meet()
            return b + 1

        np.testing.assert_array_equal(doubled(x).numpy(), x.numpy() * 2 + 1)
        assert len(doubled.compiled[0].program.states) == 0

    layer = paddle.nn.Linear(3, 2)
    expected = layer(x).numpy()

    def work():
        y = layer(x)
        y.sum().backward()
        return y.numpy(), layer.bias.grad.numpy()

    made, gradient = beside(capture, work)
    np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(gradient, [2, 2])


def test_autocast_is_that_of_one_thread(x):
    def cast(meet):
        with paddle.amp.auto_cast(dtype="bfloat16"):
            assert paddle.matmul(x, x.t()).dtype is paddle.bfloat16
            meet()

    static = paddle.jit.to_static(lambda a: paddle.matmul(a, a.t()))
    assert beside(cast, lambda: (paddle.matmul(x, x.t()).dtype, static(x).dtype)) == (paddle.float32, paddle.float32)


def test_hooks_of_saved_tensors_are_those_of_one_thread(x):
    packed = []

    def hooked(meet):
        with paddle.autograd.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
            meet()

    def work():
        w = paddle.ones([3, 3])
        w.stop_gradient = False
        return paddle.matmul(x, w).exp().sum().backward()

    beside(hooked, work)
    assert not packed


@pytest.mark.usefixtures("own_programs")
def test_a_profiler_sees_all_threads(x):
    profiler = paddle.profiler.Profiler(targets=[paddle.profiler.ProfilerTarget.CPU])
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: x + 1).result()
        profiler.start()
        pool.submit(lambda: paddle.exp(x)).result()
        profiler.stop()
        profiler.start()
        profiler.stop()
    assert paddle.exp(x).dtype is paddle.float32


def test_a_model_is_served_from_threads_from_its_first_call_on(x):
    model = paddle.nn.Sequential(paddle.nn.Linear(3, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 2))
    model.eval()
    inputs = [paddle.to_tensor(np.full((1 + i % 3, 3), i, np.float32)) for i in range(6)]
    expected = [model(a).numpy() for a in inputs]
    static, gate = paddle.jit.to_static(model.forward), threading.Barrier(len(inputs))

    def serve(i):
        gate.wait()
        for k in range(10):
            with paddle.set_grad_enabled(bool(i % 2)):
                made = static(inputs[i])
            assert made.stop_gradient is not bool(i % 2), k
            np.testing.assert_allclose(made.numpy(), expected[i], rtol=1e-5, atol=1e-6)

    with ThreadPoolExecutor(len(inputs)) as pool:
        list(pool.map(serve, range(len(inputs))))
