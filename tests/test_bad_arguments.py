"""Layers, functions, optimizers and schedules given wrong arguments in calls that work otherwise: errors are for users.

The calls are the parity cases'; each keyword and each input in turn is replaced by something no argument can be.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from parity.case import Case
from parity.cases import FAMILIES, cases_of
from parity.runner import _built, _Run, attribute

import argosy as paddle

pytestmark = pytest.mark.usefixtures("eager_by_numpy")

CLASSES = (ValueError, TypeError, NotImplementedError, RuntimeError)
INSIDES = ("object has no attribute", "unsupported operand", "object is not", "out of range", "broadcast together",
           "not supported between", "invalid literal", "string formatting")  # fmt: skip


class Foreign:
    """An object of a class that argosy does not know."""

    def __repr__(self) -> str:
        return "<foreign>"


WRONG = {"text": "text", "a mapping": {}, "an object": Foreign(), "a list of text": ["a"]}


@cache
def cases(kind: str) -> dict[str, Case]:
    """The first case of that kind of each target with each set of keywords."""
    found: dict[str, Case] = {}
    for family in FAMILIES:
        for case in cases_of(family):
            if case.kind == kind:
                found.setdefault(f"{case.target}({', '.join(case.kwargs)})", case)
    return found


def made(case: Case, **spoiled: Any) -> Any:
    """What ``case`` builds, with some keywords replaced."""
    run = _Run(paddle)
    kwargs = {name: _built(paddle, run.build(value)) for name, value in case.kwargs.items()} | spoiled
    if case.kind == "optimizer":
        kwargs["parameters"] = [paddle.create_parameter([2], "float32")]
    return attribute(paddle, case.target)(*(_built(paddle, a) for a in case.args), **kwargs)


def runs(case: Case) -> bool:
    """Whether argosy computes the case (some are of what both frameworks refuse)."""
    try:
        made(case)(*_Run(paddle).build(case.inputs))
    except (ValueError, TypeError, NotImplementedError):
        return False
    return True


def complaint(error: Exception, *names: str) -> str:
    """What is wrong with ``error``, which should speak of one of ``names``; empty where nothing is."""
    text, kind = str(error).lower(), type(error)
    if not isinstance(error, CLASSES) or kind in (IndexError, KeyError, AttributeError):
        return f"{kind.__name__}: {text}"
    if kind.__module__ == builtins.__name__ and any(part in text for part in INSIDES):
        return f"from inside: {text}"
    return "" if any(name.lower() in text for name in names) else f"names none of {names}: {text}"


def refusals(kind: str, value: Any) -> Iterator[str]:
    """The bad errors of all constructors of that kind for each keyword replaced by ``value``."""
    for shown, case in cases(kind).items():
        last = case.target.rpartition(".")[2]
        for name in case.kwargs:
            try:
                made(case, **{name: value})
            except Exception as error:  # noqa: BLE001 (which is the question)
                wrong = complaint(error, last, name, name.replace("_", " "), "parameter attribute")
                if wrong:
                    yield f"{shown} {name}: {wrong}"


@pytest.mark.parametrize("kind", ["layer", "optimizer", "schedule"])
@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG)
def test_constructors_name_the_argument_that_is_wrong(kind, value):
    """No error of a constructor is one of Python's insides, and each names the class or the argument."""
    assert list(refusals(kind, value)) == []


def test_layers_name_the_input_that_is_no_tensor():
    """What is no tensor where a layer takes one is refused with the layer's or an operator's name."""
    failed = []
    for shown, case in cases("layer").items():
        if not runs(case):
            continue
        layer = made(case)
        for at, (what, value) in product(range(len(case.inputs)), WRONG.items()):
            inputs = list(_Run(paddle).build(case.inputs))
            inputs[at] = value
            try:
                layer(*inputs)
            except Exception as error:  # noqa: BLE001 (which is the question)
                wrong = complaint(error, "(): ", "argument", "tensor", case.target.rpartition(".")[2])
                if wrong:
                    failed.append(f"{shown} input {at} is {what}: {wrong}")
    assert failed == []


FUNCTIONS = ("loss", "embedding", "pool", "fold", "local_response_norm", "upsample", "temporal_shift", "zeropad2d")


@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG)
def test_functions_name_the_argument_that_is_no_tensor(value):
    """The same of the first argument of functions of ``nn.functional`` that are written in Python."""
    failed = []
    for shown, case in cases("call").items():
        if not case.target.startswith("nn.functional.") or not any(part in case.target for part in FUNCTIONS):
            continue
        run = _Run(paddle)
        args = [value, *run.build(case.args[1:])]
        try:
            attribute(paddle, case.target)(*args, **{name: run.build(v) for name, v in case.kwargs.items()})
        except Exception as error:  # noqa: BLE001 (which is the question)
            wrong = complaint(error, "argument", "tensor", case.target.rpartition(".")[2])
            if wrong:
                failed.append(f"{shown}: {wrong}")
    assert failed == []


class Numbers(paddle.io.Dataset):
    """Four samples."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return np.ones(2, "float32"), np.ones(1, "int64")


def linear():
    """A layer to put wrong things into."""
    return paddle.nn.Linear(2, 2)


def sgd(*args, **kwargs):
    """An optimizer of its parameters."""
    return paddle.optimizer.SGD(*args, **{"parameters": linear().parameters(), **kwargs})


MACHINERY = {
    "DataLoader(dataset)": lambda: paddle.io.DataLoader(3),
    "DataLoader(num_workers)": lambda: paddle.io.DataLoader(Numbers(), num_workers="a"),
    "DataLoader(collate_fn)": lambda: paddle.io.DataLoader(Numbers(), collate_fn=3),
    "DataLoader(batch_sampler)": lambda: paddle.io.DataLoader(Numbers(), batch_sampler=3),
    "DataLoader(batch_size)": lambda: paddle.io.DataLoader(Numbers(), batch_size="a"),
    "TensorDataset(tensors)": lambda: paddle.io.TensorDataset([1, 2]),
    "ConcatDataset(datasets)": lambda: paddle.io.ConcatDataset(3),
    "random_split(lengths)": lambda: paddle.io.random_split(Numbers(), "a"),
    "SequenceSampler(data_source)": lambda: paddle.io.SequenceSampler(3),
    "WeightedRandomSampler(weights)": lambda: paddle.io.WeightedRandomSampler("a", 3),
    "auto_cast(white)": lambda: paddle.amp.auto_cast(custom_white_list=3).__enter__(),
    "GradScaler(init_loss_scaling)": lambda: paddle.amp.GradScaler(init_loss_scaling="a"),
    "GradScaler.step(optimizer)": lambda: paddle.amp.GradScaler().step(3),
    "summary(net)": lambda: paddle.summary(3, (2, 2)),
    "summary(input_size)": lambda: paddle.summary(linear(), "a"),
    "flops(input_size)": lambda: paddle.flops(linear(), "a"),
    "fit(callbacks)": lambda: paddle.Model(linear()).predict(Numbers(), callbacks=3),
    "Accuracy.update(correct)": lambda: paddle.metric.Accuracy().update("a"),
    "Precision.update(preds)": lambda: paddle.metric.Precision().update("a", 3),
    "accuracy(label)": lambda: paddle.metric.accuracy("a", 3),
    "SGD(learning_rate)": lambda: sgd("fast"),
    "SGD(parameters)": lambda: paddle.optimizer.SGD(0.1, parameters=[{"weights": []}]),
    "SGD(weight_decay)": lambda: sgd(0.1, weight_decay="much"),
    "set_lr(value)": lambda: sgd(0.1).set_lr("a"),
    "set_state_dict(optimizer)": lambda: sgd(0.1).set_state_dict(3),
    "set_state_dict(layer)": lambda: linear().set_state_dict(3),
    "step(epoch)": lambda: paddle.optimizer.lr.StepDecay(0.1, 2).step("a"),
    "step(metrics)": lambda: paddle.optimizer.lr.ReduceOnPlateau(0.1).step("a"),
    "NoamDecay(warmup_steps)": lambda: paddle.optimizer.lr.NoamDecay(64, -3),
    "jit.save(layer)": lambda: paddle.jit.save(3, "nowhere"),
    "jit.save(input_spec)": lambda: paddle.jit.save(linear(), "nowhere", input_spec=3),
    "jit.load(path)": lambda: paddle.jit.load("nowhere"),
    "grad(outputs)": lambda: paddle.grad(3, 4),
    "jacobian(ys)": lambda: paddle.autograd.jacobian(3, 4),
    "create_parameter(shape)": lambda: paddle.create_parameter("a", "float32"),
    "ClipGradByNorm(clip_norm)": lambda: paddle.nn.ClipGradByNorm("a"),
    "zeros(dtype)": lambda: paddle.zeros([2], dtype="unknown"),
    "sum(keepdim)": lambda: paddle.sum(paddle.ones([2]), keepdim="yes"),
}


@pytest.mark.parametrize("call", MACHINERY)
def test_what_is_around_tensors_names_what_is_wrong(call):
    """Data loading, mixed precision, models, metrics, optimizers, schedules and files: no error of Python's insides
    without the function and its arguments."""
    with pytest.raises(CLASSES) as info:
        MACHINERY[call]()
    text = str(info.value)
    assert type(info.value) not in (IndexError, KeyError, AttributeError)
    assert not any(part in text for part in INSIDES) or "(): " in text, text
