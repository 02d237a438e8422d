"""The reference: every public name has an example, which is run; what it prints is what the site shows."""

from __future__ import annotations

import sys
from enum import Enum

import pytest
from workspace import ROOT

sys.path.insert(0, str(ROOT / "docs" / "site"))
import catalogue
import examples
import glossary


@pytest.fixture(scope="module")
def sessions() -> dict[str, str]:
    """All examples, run in two processes."""
    return examples.sessions()


def test_every_example_runs(sessions: dict[str, str]) -> None:
    """None fails, and each prints something."""
    assert [text for text in sessions.values() if text.startswith("FAILED")] == []


def test_every_name_has_an_example(sessions: dict[str, str]) -> None:
    """A written one, or, of operators, the first sample."""
    entries = catalogue.entries()
    assert len(entries) > 1800
    assert [entry.path for entry in entries if not sessions[entry.path]] == []


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
