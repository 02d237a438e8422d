"""Layers, functions, optimizers and schedules given wrong arguments in calls that work otherwise: errors are for users.

The calls are the parity cases'; each keyword and each input in turn is replaced by something no argument can be.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from parity.case import Case
from parity.cases import FAMILIES, cases_of
from parity.runner import _built, _Run, attribute

import argosy as paddle

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


@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG)
def test_layers_name_the_input_that_is_no_tensor(value):
    """What is no tensor where a layer takes one is refused with the layer's or an operator's name."""
    failed = []
    for shown, case in cases("layer").items():
        if not runs(case):
            continue
        layer = made(case)
        for at in range(len(case.inputs)):
            inputs = list(_Run(paddle).build(case.inputs))
            inputs[at] = value
            try:
                layer(*inputs)
            except Exception as error:  # noqa: BLE001 (which is the question)
                wrong = complaint(error, "(): ", "argument", "tensor", case.target.rpartition(".")[2])
                if wrong:
                    failed.append(f"{shown} input {at}: {wrong}")
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
