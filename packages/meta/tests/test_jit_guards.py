"""What a captured function reads of Python may change between calls; the next call then sees the new."""

import numpy as np
import pytest

import argosy as paddle

F = paddle.nn.functional


@pytest.fixture
def x():
    return paddle.to_tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))


def same(static, plain, x):
    np.testing.assert_allclose(static(x).numpy(), plain(x).numpy(), rtol=1e-6)


class Settings:
    scale = 2.0


class Model(paddle.nn.Layer):
    factor = 2
    options = {"a": 1.0}  # noqa: RUF012 (what users write)

    def __init__(self):
        super().__init__()
        self.activation = F.relu
        self.numbers = [1.0, 2.0]
        self.named = {"shift": 3.0}

    def helper(self, x):
        return x * self.numbers[0] + self.named["shift"] * self.options["a"]

    def forward(self, x):
        return self.helper(self.activation(x) * self.factor)


def put(target, name, value):
    return lambda model: setattr(target or model, name, value)


@pytest.mark.parametrize(
    "change",
    [
        put(None, "activation", F.tanh),
        put(Model, "factor", 5),
        put(Model, "helper", lambda self, x: x - 100),
        lambda model: model.numbers.__setitem__(0, 9.0),
        lambda model: model.numbers.insert(0, 4.0),
        lambda model: model.named.update(shift=7.0),
        lambda model: model.options.update(a=6.0),
        lambda model: setattr(model, "forward", lambda x: x * 3),
    ],
)
def test_what_a_layer_reads_is_seen_when_it_changes(x, change, monkeypatch):
    for name in ("factor", "helper"):
        monkeypatch.setattr(Model, name, getattr(Model, name))  # put back after the test
    monkeypatch.setattr(Model, "options", {"a": 1.0})
    outer = paddle.nn.Sequential(Model())
    static = paddle.jit.to_static(lambda x: outer(x) + 1)
    for _ in range(3):
        same(static, lambda x: outer(x) + 1, x)
    change(outer[0])
    for _ in range(3):
        same(static, lambda x: outer(x) + 1, x)


def test_attributes_of_classes_are_seen_when_they_change(x, monkeypatch):
    def scaled(x):
        return x * Settings.scale

    static = paddle.jit.to_static(scaled)
    same(static, scaled, x)
    monkeypatch.setattr(Settings, "scale", 7.0)
    same(static, scaled, x)


@pytest.mark.parametrize("kind", ["pre", "post"])
def test_hooks_that_come_and_go_are_seen(x, kind):
    model = paddle.nn.Sequential(paddle.nn.Linear(3, 3), paddle.nn.ReLU())
    static = paddle.jit.to_static(model.forward)
    double = {"pre": lambda layer, inputs: inputs[0] * 2, "post": lambda layer, inputs, outputs: outputs * 2}[kind]
    same(static, model, x)
    handle = getattr(model[0], f"register_forward_{kind}_hook")(double)
    for _ in range(3):
        same(static, model, x)
    handle.remove()
    for _ in range(3):
        same(static, model, x)


def test_hooks_of_other_layers_capture_nothing_anew(x):
    static = paddle.jit.to_static(paddle.nn.Linear(3, 3).forward)
    other = paddle.nn.Linear(3, 3)
    for _ in range(3):
        static(x)
        other.register_forward_post_hook(lambda layer, inputs, outputs: None).remove()
    assert len(static.compiled) == 1


factor = 0.0  # called as an attribute of Model


def test_a_global_called_as_an_attribute_that_is_read_captures_nothing_anew(x, monkeypatch):
    static = paddle.jit.to_static(Model().forward)
    for value in range(3):
        monkeypatch.setitem(globals(), "factor", float(value))
        static(x)
    assert len(static.compiled) == 1


def test_layers_added_to_a_container_are_seen(x):
    model = paddle.nn.Sequential(paddle.nn.Linear(3, 3))
    static = paddle.jit.to_static(model.forward)
    same(static, model, x)
    model.add_sublayer("1", paddle.nn.Sigmoid())
    same(static, model, x)


def test_numbers_in_a_list_that_the_function_counts_in_go_on(x):
    count = [0]

    def counting(x):
        count[0] += 1
        return x * count[0]

    static = paddle.jit.to_static(counting)
    with pytest.warns(UserWarning, match="changes a number that it reads with each call"):
        made = [static(x) for _ in range(5)]
    for i, result in enumerate(made):
        np.testing.assert_allclose(result.numpy(), (i + 1) * x.numpy(), rtol=1e-6)
    assert count == [5]


def test_tensors_kept_in_a_list_by_a_hook_are_those_of_each_call(x):
    kept = []
    layer = paddle.nn.Linear(3, 3)
    layer.register_forward_post_hook(lambda layer, inputs, outputs: kept.append(outputs))
    static = paddle.jit.to_static(lambda x: layer(x) * 2)
    for k in range(3):
        kept.clear()
        result = static(x * k)
        assert len(kept) == 1
        np.testing.assert_allclose(kept[0].numpy() * 2, result.numpy(), rtol=1e-6)


def raised_and_caught(x):
    try:
        if x.sum() > 0:
            raise ValueError("positive")
        y = x * 2
    except ValueError:
        y = x * 5
    return y


def raised_and_caught_within(x):
    if x.max() > -100:
        try:
            if x.sum() > 0:
                raise ValueError("positive")
            y = x * 2
        except ValueError:
            y = x * 5
    else:
        y = x
    return y


def three_kinds_of_results(x):
    if x.mean() > 0:
        return x + 1
    if x.max() > 1.5:
        return None
    return x - 1, x


@pytest.mark.parametrize("function", [raised_and_caught, raised_and_caught_within])
def test_an_exception_of_one_branch_that_is_caught_is_no_choice_for_both(x, function):
    static = paddle.jit.to_static(function)
    for shift in (-1, 1, -1, 1):
        same(static, function, x + shift)
    with pytest.raises(NotImplementedError, match=r"ValueError\(positive\) was raised in a branch"):
        paddle.jit.to_static(function, full_graph=True)(x - 1)


def test_results_of_different_kinds_are_left_to_python(x):
    static = paddle.jit.to_static(three_kinds_of_results)
    for value, kind in ((x + 1, paddle.Tensor), (x - 1, tuple), (x * 3 - 0.5, type(None)), (x + 1, paddle.Tensor)):
        assert isinstance(static(value), kind)
