"""Compiled derivatives that native code runs itself on the way back: their numbers are those of the first calls, which
numpy computes, whatever is in the graph. Where there is no native build, the same tests run on the plain one."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest
from eager_helpers import is_native, tensor

import argosy as paddle
from argosy_autograd.sweep import Sweep
from argosy_autograd.tape import OperatorNode

pytestmark = pytest.mark.usefixtures("quick_code")
CALLS = 9
"""After these an application and its derivative are compiled, with ``hot_at_once``."""
SHAPES = ((3, 4), (4,), (1, 4), (3, 1), (), (2, 3, 4), (0, 4))
UNARY = {
    "tanh": paddle.tanh,
    "exp": lambda x: paddle.exp(x * 0.25),
    "sigmoid": paddle.nn.functional.sigmoid,
    "relu": paddle.nn.functional.relu,
    "square": paddle.square,
    "log": lambda x: paddle.log(x * x + 1.0),
    "negative": lambda x: -x,
    "clip": lambda x: paddle.clip(x, -0.5, 0.5),
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(axis=-1, keepdim=True) if x.ndim and x.size else x * 2.0,
    "softmax": lambda x: paddle.nn.functional.softmax(x, -1) if x.ndim else x,
    "transposed": lambda x: x.t().exp().t() if x.ndim == 2 else x,
    "reshaped": lambda x: x.reshape([-1]).tanh().reshape(x.shape) if x.size else x,
    "part": lambda x: x[..., 1:] * x[..., :-1] if x.ndim else x,
    "every second": lambda x: x[..., ::2].sigmoid() if x.ndim else x,
    "chunks": lambda x: _joined(*paddle.chunk(x, 2, axis=-1)) if x.ndim and x.shape[-1] % 2 == 0 else x,
    "written": lambda x: (x * 1.0).add_(x),
    "powers": lambda x: (x * x + 0.5) ** 1.5,
}
BINARY = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / (y * y + 1.0),
    "maximum": paddle.maximum,
    "where": lambda x, y: paddle.where(x > y, x, y * 2.0),
    "twice": lambda x, y: (x * y) * (x + x) + y,
}


def _joined(first, second):
    return paddle.concat([second * first, second], axis=-1)


def program(rng):
    """A random expression of three leaves, as what it does to a list of tensors."""
    steps = []
    for _ in range(rng.integers(2, 6)):
        if rng.random() < 0.5:
            steps.append((UNARY[str(rng.choice(list(UNARY)))], 1, rng.integers(0, 1 << 30, 1)))
        else:
            steps.append((BINARY[str(rng.choice(list(BINARY)))], 2, rng.integers(0, 1 << 30, 2)))

    def run(leaves):
        values = list(leaves)
        for f, count, picks in steps:
            chosen = [values[pick % len(values)] for pick in picks]
            if count == 2 and not _fit(*chosen):
                chosen[1] = chosen[0]
            values.append(f(*chosen))
        total = values[-1].sum()
        for each in values[len(leaves) : -1]:
            total = total + each.sum() * 0.5
        return total

    return run


def _fit(x, y):
    try:
        np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
    except ValueError:
        return False
    return True


def gradients(run, arrays, wants, ways):
    """The value and the gradients, or the error that backward() raises."""
    leaves = [paddle.to_tensor(a, stop_gradient=not w) for a, w in zip(arrays, wants, strict=True)]
    seen = []
    if ways["hook"]:
        for x in leaves:
            if not x.stop_gradient:
                x.register_hook(lambda g: seen.append(g.numpy()))
    value = run(leaves)
    value.backward(retain_graph=ways["retain"])
    if ways["retain"]:
        value.backward()
    return [value.numpy(), *[None if x.grad is None else x.grad.numpy() for x in leaves], *seen]


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("part", range(6))
def test_random_expressions(part, hot_at_once):
    """Twenty-five in each part: native against what numpy makes of the first call."""
    rng = np.random.default_rng([20, part])
    for case in range(25):
        run = program(rng)
        dtype = "float32" if rng.random() < 0.7 else "float64"
        shapes = [SHAPES[i] for i in rng.integers(0, len(SHAPES), 3)]
        arrays = [np.asarray(rng.standard_normal(shape), dtype) for shape in shapes]
        wants = [True, bool(rng.random() < 0.7), bool(rng.random() < 0.5)]
        ways = {"hook": rng.random() < 0.3, "retain": rng.random() < 0.3}
        first = gradients(run, arrays, wants, ways)
        for call in range(CALLS):
            again = gradients(run, arrays, wants, ways)
            tolerance = 2e-5 if dtype == "float32" else 1e-12
            for a, b in zip(first, again, strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    assert (a.dtype, a.shape) == (b.dtype, b.shape), (part, case, call)
                    scale = max(1.0, float(np.abs(a).max(initial=0.0)))
                    np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance * scale, err_msg=f"{part} {case}")


def chain(x, y):
    """Compiled derivatives alone, once they are hot."""
    return paddle.tanh(x * y) * paddle.nn.functional.sigmoid(y)


@pytest.fixture
def hot_chain(hot_at_once):
    for _ in range(CALLS):
        x, y = leaves()
        chain(x, y).backward(paddle.ones([2, 3]))


def leaves():
    return tensor(np.arange(6).reshape(2, 3) / 4, True), tensor(np.arange(6)[::-1].reshape(2, 3) / 8, True)


def expected(x, y):
    """Gradients of the chain."""
    a, b = x.numpy(), y.numpy()
    t, s = np.tanh(a * b), 1 / (1 + np.exp(-b))
    return (1 - t * t) * b * s, (1 - t * t) * a * s + t * s * (1 - s)


def check(x, y, times=1):
    for g, found in zip(expected(x, y), (x.grad, y.grad), strict=True):
        np.testing.assert_allclose(found.numpy(), times * g, rtol=1e-5, atol=1e-6)


def test_they_run_without_python(hot_chain, monkeypatch):
    pulled = []
    pull = OperatorNode.pull_arrays
    monkeypatch.setattr(OperatorNode, "pull_arrays", lambda self, grads: pulled.append(self.name) or pull(self, grads))
    x, y = leaves()
    chain(x, y).backward(paddle.ones([2, 3]))
    check(x, y)
    assert not is_native() or not pulled


def test_what_changed_since_is_noticed(hot_chain):
    x, y = leaves()
    u = x * 1.0
    z = chain(u, y)
    u.add_(y)
    with pytest.raises(RuntimeError, match="changed in place"):
        z.backward(paddle.ones([2, 3]))
    u = x * 1.0
    u.add_(y)  # before: version 1 is what is kept
    chain(u, y).backward(paddle.ones([2, 3]))
    u = tensor(x.numpy() + y.numpy(), True)
    np.testing.assert_allclose(x.grad.numpy(), expected(u, y)[0], rtol=1e-5, atol=1e-6)


def test_packed_and_strided_and_freed(hot_chain):
    x, y = leaves()
    packed = []
    with paddle.autograd.saved_tensors_hooks(lambda t: packed.append(t) or t.numpy(), paddle.to_tensor):
        z = chain(x, y)
    assert packed
    z.backward(paddle.ones([2, 3]))
    check(x, y)
    x.clear_gradient()
    y.clear_gradient()
    chain(x.t().contiguous().t(), y.t().t()).backward(paddle.ones([2, 3]))
    check(x, y)
    x, y = leaves()
    z = chain(x, y)
    z.backward(paddle.ones([3, 2]).t(), retain_graph=True)  # a gradient that is not contiguous
    z.backward()
    check(x, y, 2)
    with pytest.raises(RuntimeError, match="a second time"):
        z.backward()


def test_anomalies_are_looked_for(hot_chain):
    x, y = leaves()
    with paddle.autograd.set_detect_anomaly(True), np.errstate(invalid="ignore"):
        z = chain(x, y)
        with pytest.raises(RuntimeError, match=r"(?i)nan"):
            z.backward(tensor(np.full((2, 3), np.nan)))


def test_nothing_is_leaked(hot_chain):
    def work():
        for _ in range(200):
            x, y = leaves()
            z = chain(x, y)
            z.backward(paddle.ones([2, 3]), retain_graph=True)
            z.backward()

    work()
    gc.collect()
    before = sys.getallocatedblocks()
    work()
    gc.collect()
    assert sys.getallocatedblocks() < before + 150


MOVED = {
    "sum": lambda x: (x * x).sum(),
    "mean": lambda x: (x * x).mean(),
    "views": lambda x: ((x * x).reshape([4, 3])[1:3].transpose([1, 0])).sum(),
    "columns": lambda x: (x * x)[:, 1].sum(axis=-1),
}


@pytest.mark.parametrize("name", MOVED)
def test_gradients_that_only_move_go_back_natively(name, hot_at_once, monkeypatch):
    """What spreads or places a small gradient is compiled like any other derivative: Python is asked for nothing."""
    f, a, asked = MOVED[name], np.arange(12).reshape(3, 4), []
    pull = Sweep._pull
    monkeypatch.setattr(Sweep, "_pull", lambda self, node, g: asked.append(node.name) or pull(self, node, g))
    found = []
    for _ in range(CALLS + 2):
        x = tensor(a, True)
        asked.clear()
        f(x).backward()
        found.append(x.grad.numpy())
    np.testing.assert_allclose(found[-1], found[0], rtol=1e-6)
    assert asked == [] or not is_native()
