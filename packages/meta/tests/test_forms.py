"""Other ways to write calls (eager, repeated, captured), other names of parameters, devices and counts to be called."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import argosy as paddle

nn = paddle.nn
X = paddle.to_tensor(np.arange(24.0, dtype="float32").reshape(2, 3, 4))
M = paddle.to_tensor(np.arange(6.0, dtype="float32").reshape(2, 3))
INDEX = paddle.to_tensor([[0, 1, 0], [1, 0, 1]])

FORMS = {
    "reshape": (lambda x, m: x.reshape(6, -1), lambda x, m: x.reshape([6, -1])),
    "view": (lambda x, m: x.view(4, 6), lambda x, m: x.view([4, 6])),
    "transpose": (lambda x, m: x.transpose(0, -1), lambda x, m: x.transpose([2, 1, 0])),
    "expand": (lambda x, m: m.unsqueeze(0).expand(4, -1, 3), lambda x, m: m.unsqueeze(0).expand([4, 2, 3])),
    "sum": (lambda x, m: x.sum(1, True), lambda x, m: x.sum(axis=1, keepdim=True)),
    "index_select": (lambda x, m: x.index_select(1, INDEX[0]), lambda x, m: x.index_select(INDEX[0], 1)),
    "gather": (lambda x, m: m.gather(0, INDEX), lambda x, m: m.take_along_axis(INDEX, 0)),
    "scatter": (
        lambda x, m: m.scatter(0, INDEX, 2 * m, reduce="add"),
        lambda x, m: m.put_along_axis(INDEX, 2 * m, 0, "add"),
    ),
    "median": (lambda x, m: x.median(dim=2)[0], lambda x, m: x.median(2, mode="min")[0]),
    "zeros": (lambda x, m: paddle.zeros(2, 3) + m, lambda x, m: paddle.zeros([2, 3]) + m),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_the_call_that_it_means(name):
    """A call in another form gives what the declared one gives, as often as it is made, and within a program."""
    form, declared = FORMS[name]
    expected = declared(X, M).numpy()
    captured = paddle.jit.to_static(form, full_graph=True)
    for result in (*[form(X, M) for _ in range(4)], captured(X, M), captured(X, M)):
        np.testing.assert_array_equal(result.numpy(), expected)


def test_forms_differ_from_call_to_call():
    """What was learned of one call is not used for another: other sizes, axes and the declared form."""
    for _ in range(3):
        assert X.reshape(6, 4).shape == [6, 4]
        assert X.reshape(4, 6).shape == [4, 6]
        assert X.reshape([3, 8]).shape == [3, 8]
        assert X.transpose(0, 1).shape == [3, 2, 4]
        assert X.transpose(0, 2).shape == [4, 3, 2]
        assert X.transpose([1, 0, 2]).shape == [3, 2, 4]
        assert X.sum(1, True).shape == [2, 1, 4]
        assert X.sum(1, False).shape == [2, 4]
        assert M.gather(INDEX[0], 1).shape == [2, 3]
        assert M.gather(1, INDEX[:, :2]).shape == [2, 2]


def test_random_numbers_take_sizes_one_by_one():
    """As zeros and ones do."""
    for make in (paddle.rand, paddle.randn, paddle.empty):
        assert make(2, 3).shape == [2, 3]
        assert make(size=[2, 3]).shape == [2, 3]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: M.gather(1), "'index'"),
        (lambda: M.scatter(1, INDEX), "'src'"),
        (lambda: M.scatter(1, INDEX, M, value=M), "'src'"),
        (lambda: X.transpose(0, 3), "axis 3"),
        (lambda: X.reshape(5, 5), "[2, 3, 4]"),
        (lambda: nn.functional.dropout(M, x=M), "'x'"),
        (lambda: nn.LayerNorm(3, epsilon=1e-3, eps=1e-3), "other name"),
    ],
    ids=["gather", "scatter", "scatter_twice", "transpose", "reshape", "dropout", "LayerNorm"],
)
def test_a_wrong_form_is_refused(call, told):
    """The error names what is missing or wrong."""
    with pytest.raises((ValueError, TypeError, IndexError)) as caught:
        call()
    assert told in str(caught.value)


LAYERS = {
    "LayerNorm": (lambda: nn.LayerNorm(4, eps=0.1), lambda: nn.LayerNorm(4, epsilon=0.1), [3, 4]),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4, eps=0.1), lambda: nn.GroupNorm(2, 4, epsilon=0.1), [3, 4]),
    "GLU": (lambda: nn.GLU(dim=0), lambda: nn.GLU(axis=0), [4, 3]),
    "Hardshrink": (lambda: nn.Hardshrink(lambd=0.3), lambda: nn.Hardshrink(threshold=0.3), [4]),
    "Softshrink": (lambda: nn.Softshrink(lambd=0.3), lambda: nn.Softshrink(threshold=0.3), [4]),
    "Fold": (
        lambda: nn.Fold(output_size=[4, 4], kernel_size=2, stride=2, padding=0, dilation=1),
        lambda: nn.Fold([4, 4], 2, 1, 0, 2),
        [1, 4, 4],
    ),
    "LayerList": (lambda: nn.LayerList(modules=[nn.ReLU()])[0], lambda: nn.ReLU(), [3]),
    "LayerDict": (lambda: nn.LayerDict(modules={"a": nn.ReLU()})["a"], lambda: nn.ReLU(), [3]),
    "AdaptiveMaxPool1D": (
        lambda: nn.AdaptiveMaxPool1D(2, return_indices=True),
        lambda: nn.AdaptiveMaxPool1D(2, return_mask=True),
        [1, 2, 6],
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_take_other_names(name):
    """The layer is the one that Paddle's own names make."""
    other, own, shape = LAYERS[name]
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal(shape).astype("float32"))
    found, expected = other()(x), own()(x)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for a, b in pairs:
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_layers_of_two_inputs_take_other_names():
    """``dim`` of the cosine and ``eps`` of the distance."""
    np.testing.assert_array_equal(nn.CosineSimilarity(dim=0)(M, M + 1), nn.CosineSimilarity(axis=0)(M, M + 1))
    found, expected = nn.PairwiseDistance(eps=0.5)(M, M + 1), nn.PairwiseDistance(epsilon=0.5)(M, M + 1)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_size_is_a_number_that_can_be_called():
    """``x.size`` computes and is stored as an integer; ``x.size(0)`` is the size of an axis, ``x.size()`` the shape."""
    assert X.size == 24
    assert (X.size(0), X.size(-1), X.size(dim=1), X.size()) == (2, 4, 3, [2, 3, 4])
    with pytest.raises(IndexError, match="no axis 3"):
        X.size(3)
    np.testing.assert_array_equal((M / M.size).numpy(), M.numpy() / 6)
    np.testing.assert_array_equal((M.size * M).numpy(), M.numpy() * 6)
    np.testing.assert_array_equal(paddle.add(M, M.size).numpy(), M.numpy() + 6)
    assert paddle.full([1], M.size).item() == 6
    assert X.reshape([X.size]).shape == [24]
    assert json.dumps(X.size) == "24"
    assert type(pickle.loads(pickle.dumps(X.size))) is int


def test_a_device_is_described_by_a_string():
    """``paddle.device(...)`` is a name with kind and number, as functions take it; only the cpu can be entered."""
    cpu, second = paddle.device("cpu"), paddle.device("cuda", 1)
    assert (cpu, cpu.type, cpu.index) == ("cpu", "cpu", None)
    assert (second, second.type, second.index) == ("cuda:1", "cuda", 1)
    assert paddle.device("xpu:2").index == 2
    assert paddle.device(paddle.CPUPlace()) == cpu
    assert paddle.ones([1], device=cpu).to(cpu).place.is_cpu_place()
    with paddle.device("cpu"), paddle.device.device("cpu"):
        assert paddle.device.get_device() == "cpu"
    with pytest.raises(ValueError, match="'tpu'"):
        paddle.device("tpu")
    with pytest.raises(ValueError, match="index 1"):
        paddle.device(index=1)


def test_initial_seed_is_the_one_that_was_set():
    """Draws do not change it."""
    paddle.seed(1234)
    paddle.rand([3])
    assert paddle.random.initial_seed() == 1234
