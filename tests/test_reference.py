"""The reference: every public name has an example, which is run; what it prints is what the site shows."""

from __future__ import annotations

import inspect
import sys
from enum import Enum

import pytest
from workspace import ROOT

sys.path.insert(0, str(ROOT / "docs" / "site"))
import catalogue
import examples
import glossary
import observed_calls


@pytest.fixture(scope="module")
def sessions() -> dict[str, tuple[str, str]]:
    """All examples, run in two processes."""
    return examples.sessions()


def test_every_example_runs(sessions: dict[str, tuple[str, str]]) -> None:
    """None fails, and each prints something."""
    assert [text for text, _ in sessions.values() if text.startswith("FAILED")] == []


def test_every_name_has_an_example(sessions: dict[str, tuple[str, str]]) -> None:
    """A written one, or, of operators, the first sample."""
    entries = catalogue.entries()
    assert len(entries) > 1800
    assert [entry.path for entry in entries if not sessions[entry.path][0]] == []


def test_every_operator_says_shapes_and_dtypes(sessions: dict[str, tuple[str, str]]) -> None:
    """Of operands and results, as the calls of its example show them; with other dtypes where it has an operand."""
    said = {entry.path: sessions[entry.path][1] for entry in catalogue.entries() if entry.kind == "operator"}
    assert len(said) > 450
    assert [path for path, text in said.items() if not text.startswith("In the example")] == []
    assert [path for path, text in said.items() if ("`" in text) != ("other dtypes: " in text)] == []


def test_calls_are_observed_as_they_are() -> None:
    """Shapes and dtypes of what was given and what came back, whether called as a function or as a method."""
    import argosy as paddle

    for call in ("paddle.median(x, 1, mode='min')", "x.median(axis=1, mode='min')"):
        observer = observed_calls.CallObserver(paddle.median)
        examples.run(f"x = paddle.ones([2, 3])\n{call}\n", "a test", observer)
        shapes, dtypes = observer.sentences()
        assert shapes == "In the example `x` float32 [2, 3] gives (float32 [2], int64 [2])."
        assert "`int32` `int64` `float16` `bfloat16` `float32` `float64`" in dtypes
        assert "give the same and int64" in dtypes
    observer = observed_calls.CallObserver(paddle.bitwise_not)
    examples.run("paddle.bitwise_not(paddle.to_tensor([1, 2]))\n", "a test", observer)
    assert list(observer.sentences()) == [
        "In the example `x` int64 [2] gives int64 [2].",
        "The same call with other dtypes: `bool` `int32` `int64` give the same; `float16` `bfloat16` `float32` "
        "`float64` `complex64` are refused.",
    ]


def test_every_function_says_what_it_returns() -> None:
    """By its annotation, or, where types differ from call to call, by a sentence."""
    silent = [
        entry.path
        for entry in catalogue.entries()
        if entry.kind in ("operator", "function")
        and inspect.isroutine(getattr(entry.value, "body", entry.value))
        and catalogue.returns(entry.value) in ("", "Any")
        and "Returns " not in catalogue.documentation(entry.value)
    ]
    assert silent == [], "annotate it, or let its docstring say: Returns ..."


def test_every_parameter_is_explained() -> None:
    """By the docstring, which names it, or by the glossary, every line of which explains some."""
    missing, used = [], set()
    for entry in catalogue.entries():
        if entry.kind in ("constant", "absent") or _is_enum(entry.value):
            continue
        doc = catalogue.documentation(entry.value)
        for name, _, _ in catalogue.parameters(entry.value):
            meant = glossary.meaning(name, entry.path, doc)
            used.add(meant)
            if not meant and not glossary.is_named(name, doc):
                missing.append(f"{entry.path}({name})")
    assert missing == [], "name it in the docstring, or in docs/site/glossary.txt"
    assert {text for texts, _ in glossary.meanings() for text in texts.values()} <= used


def _is_enum(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Enum)


def test_written_examples_are_of_names_that_exist() -> None:
    """A name that was taken away takes its example with it."""
    entries = catalogue.entries()
    paths = {path for entry in entries for path in (entry.path, *entry.others)}
    names = {path.removeprefix("argosy.") for path in paths} | paths
    assert sorted(name for name in examples.written() if name not in names) == []


def test_an_example_that_fails_or_is_silent_is_an_error() -> None:
    """So that no page shows one."""
    with pytest.raises(examples.ExampleError, match="NameError"):
        examples.run("nothing_here\n", "a test")
    with pytest.raises(examples.ExampleError, match="prints nothing"):
        examples.run("x = 1\n", "a test")
    assert examples.run("x = 2\nx + 1\n", "a test") == ">>> x = 2\n>>> x + 1\n3"
    assert examples.run("1 / 0  # raises\n", "a test").endswith("ZeroDivisionError: division by zero")
