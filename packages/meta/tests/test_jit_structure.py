"""Nests of containers that captured functions take, change and return, and their saved programs."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import argosy as paddle

InputSpec = paddle.static.InputSpec


def _t(*values):
    return paddle.to_tensor(np.array(values, np.float32))


def _static(function, **options):
    return paddle.jit.to_static(function, backend="reference", **options)


@dataclass
class Output:
    logits: object
    hidden: object = None
    name: str = "out"


class Pair(NamedTuple):
    a: Any
    b: Any


class ModelOutput(OrderedDict):
    """A dictionary whose items are attributes, too, as model libraries have them."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(name)


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize(
    "make",
    [lambda a, b: Output(a, (b,)), lambda a, b: ModelOutput(logits=a, hidden=[b]), lambda a, b: [Output(a, [b])]],
)
def test_results_in_containers_of_classes_of_their_own(make, full_graph):
    """Data classes and dictionaries of a class hold the tensors of each call, and are those of this call only."""
    step = _static(lambda x: make(x * 2, x + 1), full_graph=full_graph)
    results = [step(_t(1, 2)), step(_t(3, 4))]
    found = [x[0] if isinstance(x, list) else x for x in results]
    assert [x.logits.tolist() for x in found] == [[2, 4], [6, 8]]
    assert [x.hidden[0].tolist() for x in found] == [[2, 3], [4, 5]]
    assert found[0] is not found[1]
    assert type(found[0]) in (Output, ModelOutput)


def test_an_object_without_tensors_comes_back_itself():
    """A data class that holds no tensor of the capture is not copied."""
    config = Output("none")
    step = _static(lambda x: (x + 1, config), full_graph=True)
    assert step(_t(1))[1] is config
    assert step(_t(2))[1] is config


def test_branches_agree_on_named_tuples():
    """A named tuple that both sides of a condition on a tensor set is one of merged tensors."""

    def f(x):
        found = x.max()
        pair = Pair(x, found)
        if x.sum() > 0:
            pair = Pair(-x, found + 1)
        return pair

    step = _static(f, full_graph=True)
    x = paddle.ones([1, 1, 2])
    assert type(step(x)) is Pair
    assert [part.flatten().tolist() for part in step(x)] == [[-1, -1], [2]]
    assert [part.flatten().tolist() for part in step(-x)] == [[-1, -1], [-1]]


def test_changed_arguments_reach_the_caller():
    """Items that a function puts into a dictionary or list it was given are there after every call, once each."""

    def f(given, history):
        given["z"] = given["y"] * 2
        history.append(given["z"].sum())
        given["inner"]["k"] = given["y"]
        return given["z"] + 1

    step = _static(f)
    y, history = _t(1, 2), []
    for calls in (1, 2, 3):
        given = {"y": y, "inner": {}}
        assert step(given, history).tolist() == [3, 5]
        assert given["z"].tolist() == [2, 4]
        assert given["inner"]["k"] is y
        assert [float(x) for x in history] == [6] * calls


def test_removed_items_reach_the_caller():
    """What a function takes out of a dictionary is gone."""

    def f(given):
        mask = given.pop("mask")
        return given["x"] * mask

    given = {"x": _t(1, 2), "mask": _t(0, 1)}
    assert _static(f)(given).tolist() == [0, 2]
    assert list(given) == ["x"]


class Nested(paddle.nn.Layer):
    def forward(self, given, scale):
        product = given["b"] * scale
        return {"y": (product, None), "sum": given["a"] + product, "count": 3}


def test_saved_programs_of_nested_inputs_and_outputs(tmp_path):
    """Inputs and outputs of a saved program are the tensors in order, those of dictionaries by their keys."""
    spec = InputSpec([None, 2], "float32")
    path = str(tmp_path / "nested")
    paddle.jit.save(Nested(), path, input_spec=[{"b": spec, "a": spec}, spec])
    a, b, scale = _t([1, 2]), _t([3, 4]), _t([10, 100])
    results = paddle.jit.load(path)(a, b, scale)
    assert [x.tolist() for x in results] == [[[31, 402]], [[30, 400]]]
