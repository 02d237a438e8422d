"""In-place methods, natively where nobody has to be told: they compute what the plain ones do, count as writes, and
leave everything out of the ordinary to them. Where there is no native build, the same tests run on the plain one.
"""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest
from eager_helpers import is_native, tensor

import argosy as paddle
from argosy_phi_ops.eager import calls

A = np.random.default_rng(1).uniform(0.5, 2, (4, 5)).astype("f4")
B = np.random.default_rng(2).uniform(0.5, 2, (4, 5)).astype("f4")
CASES = {
    "add_": (lambda x, y: x.add_(y), lambda a, b: a + b),
    "add_keyword": (lambda x, y: x.add_(y=y), lambda a, b: a + b),
    "add_number": (lambda x, y: x.add_(1.5), lambda a, b: a + np.float32(1.5)),
    "multiply_number": (lambda x, y: x.multiply_(0.5), lambda a, b: a * np.float32(0.5)),
    "add_row": (lambda x, y: x.add_(y[0]), lambda a, b: a + b[0]),
    "divide_": (lambda x, y: x.divide_(y), lambda a, b: a / b),
    "subtract_itself": (lambda x, y: x.subtract_(x), lambda a, b: a - a),
    "maximum_of_itself_turned": (lambda x, y: x.multiply_(x.flip([0])), lambda a, b: a * a[::-1]),
    "clip_": (lambda x, y: x.clip_(0.7, 1.5), lambda a, b: np.clip(a, np.float32(0.7), np.float32(1.5))),
    "clip_keywords": (lambda x, y: x.clip_(max=1.0), lambda a, b: np.minimum(a, 1)),
    "exp_": (lambda x, y: x.exp_(), lambda a, b: np.exp(a)),
    "cumsum_": (lambda x, y: x.cumsum_(0), lambda a, b: np.cumsum(a, 0)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("silent", [False, True])
def test_they_write_over_their_target(name, silent, hot_at_once):
    f, expected = CASES[name]
    for _ in range(12):
        base = tensor(np.stack([A, A]))
        other = tensor(B)
        for x in (base[1], tensor(A), tensor(A) + 0.0):
            memory, version, shown = x.data_ptr(), x.inplace_version, x.detach()
            if silent:
                with paddle.no_grad():
                    assert f(x, other) is x
            else:
                assert f(x, other) is x
            np.testing.assert_allclose(x.numpy(), expected(A, B), rtol=2e-6)
            np.testing.assert_array_equal(shown.numpy(), x.numpy())
            assert (x.data_ptr(), x.inplace_version, x.stop_gradient) == (memory, version + 1, True)
        np.testing.assert_array_equal(base.numpy()[0], A)
        np.testing.assert_array_equal(other.numpy(), B)


def test_operands_may_be_views_of_the_target(hot_at_once):
    square = A[:, :4]
    for _ in range(12):
        x = tensor(square)
        x.add_(x.t())
        np.testing.assert_array_equal(x.numpy(), square + square.T)
        x = tensor(square)
        x.multiply_(x[0])
        np.testing.assert_array_equal(x.numpy(), square * square[0])
        x = tensor(square)
        x.t().add_(x)  # the target is not contiguous
        np.testing.assert_array_equal(x.numpy(), square + square.T)


def test_what_gradients_need_is_watched(hot_at_once):
    for _ in range(12):
        leaf, other = tensor(A, True), tensor(B)
        with pytest.raises(ValueError, match="leaf"):
            leaf.add_(other)
        y = leaf * 1.0
        squared = y * y
        y.add_(other)
        with pytest.raises(RuntimeError, match="changed in place"):
            squared.sum().backward()
        z = leaf * 1.0
        z.multiply_(other)
        z.sum().backward()
        np.testing.assert_allclose(leaf.grad.numpy(), B, rtol=1e-6)
        plain = tensor(A)
        plain.add_(leaf)
        assert not plain.stop_gradient
        plain.sum().backward()
        np.testing.assert_allclose(leaf.grad.numpy(), B + 1, rtol=1e-6)
        with paddle.no_grad():
            leaf.add_(other)
        assert (leaf.stop_gradient, leaf.is_leaf, leaf.inplace_version) == (False, True, 1)
        np.testing.assert_array_equal(leaf.numpy(), A + B)


def test_types_stay_and_refusals_do_nothing(hot_at_once):
    for _ in range(12):
        whole = tensor([1, 2, 3], dtype="int64")
        whole.add_(1)
        assert (whole.dtype, whole.tolist()) == (paddle.int64, [2, 3, 4])
        x = tensor(A)
        with pytest.raises(ValueError, match="shape"):
            x.add_(tensor(np.ones((2, 4, 5))))
        with pytest.raises(ValueError, match="min"):
            x.clip_(1.0, 0.5)
        with pytest.raises(TypeError):
            x.exp_(1, 2, 3)
        with pytest.raises(TypeError):
            paddle.Tensor.exp_()
        assert x.inplace_version == 0
        np.testing.assert_array_equal(x.numpy(), A)


def test_captured_ones_are_seen(hot_at_once):
    def f(x):
        y = x * 1.0
        y.add_(x)
        return y.exp_()

    for _ in range(6):
        f(tensor(A))
    compiled = paddle.jit.to_static(f, full_graph=True)
    np.testing.assert_allclose(compiled(tensor(A)).numpy(), np.exp(A + A), rtol=1e-5)


def test_reference_counts_balance(hot_at_once):
    x, y = tensor(A), tensor(B)

    def work():
        for _ in range(400):
            x.add_(y)
            x.multiply_(0.25)
            x.clip_(-1.0, 1.0)

    for _ in range(3):
        work()
    kind = x.payload.array_type
    watched = (kind, x, y, x.payload, x.payload.storage, None, True, kind.dtype, 0, 1)
    gc.collect()
    before = [sys.getrefcount(w) for w in watched]
    for _ in range(5):
        work()
    gc.collect()
    after = [sys.getrefcount(w) for w in watched]
    assert all(abs(b - a) < 200 for a, b in zip(before, after, strict=True)), (before, after)
    assert x.inplace_version == 8 * 3 * 400


def test_they_are_native_where_that_is(hot_at_once, monkeypatch):
    """The function that was there before is not called any more."""
    if not is_native():
        pytest.skip("plain here")
    x, y = tensor(A), tensor(B)
    for _ in range(8):
        x.add_(y)
        x.multiply_(0.5)
        x.exp_()
    called = []
    monkeypatch.setattr(calls, "call", lambda *_: called.append(1))
    writing = sys.modules["argosy_phi_ops.methods"]
    monkeypatch.setattr(writing, "write", lambda *_: called.append(2))
    x.add_(y)
    x.multiply_(0.5)
    x.exp_()
    assert not called
