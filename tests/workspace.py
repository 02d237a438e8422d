"""The packages of the workspace and what each may import: the table of docs/ARCHITECTURE.md as data."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]

ALLOWED: dict[str, set[str]] = {
    "hwadapt": set(),
    "tensorcore": {"hwadapt"},
    "pir": set(),
    "phi-ops": {"pir", "tensorcore", "hwadapt"},
    "autograd": {"phi-ops", "pir", "tensorcore"},
    "cinn": {"phi-ops", "pir", "tensorcore", "hwadapt"},
    "autoparallel": {"phi-ops", "pir", "tensorcore", "hwadapt"},
    "infer": {"phi-ops", "pir", "tensorcore", "hwadapt"},
    "meta": {"hwadapt", "tensorcore", "pir", "phi-ops", "autograd", "cinn", "autoparallel", "infer"},
}
"""Sibling packages that each may import directly. ``infer[fast]`` finds cinn through its entry point, never by
import.
"""

MODULES = {name: "argosy" if name == "meta" else "argosy_" + name.replace("-", "_") for name in ALLOWED}


def project(package: str) -> dict[str, Any]:
    """The ``[project]`` table of a package."""
    with (ROOT / "packages" / package / "pyproject.toml").open("rb") as file:
        table: dict[str, Any] = tomllib.load(file)["project"]
    return table


def closure(package: str) -> list[str]:
    """``package`` and every sibling it needs, itself last."""
    found: list[str] = []
    for name in ALLOWED:
        if name in ALLOWED[package]:
            found += [n for n in closure(name) if n not in found]
    return [*dict.fromkeys(found), package]


TESTED_ALONE = pytest.StashKey[dict[str, set[str]]]()
"""The tests of each package that this session leaves to the package installed alone, by their names there."""


PLUGGED_INTO: dict[str, tuple[str, ...]] = {
    "pir": (
        "tests/test_dims.py", "tests/test_passes.py::test_clones", "tests/test_passes.py::test_passes_keep_unknown",
        "tests/test_serialization.py::test_damage", "tests/test_serialization.py::test_round_trip",
        "tests/test_kit.py::test_any_program", "tests/test_attributes.py::test_programs_pickle",
        "tests/test_attributes.py::test_attributes_hash", "tests/test_text.py::test_programs_round_trip",
        "tests/test_text.py::test_attributes_round_trip",
    ),
    "phi-ops": ("tests/reference/test_elementwise.py", "tests/reference/test_structure.py"),
    "autograd": (
        "tests/rules/", "tests/test_stacks.py", "tests/test_operators.py::test_operator_differentiates",
        "tests/test_operators.py::test_the_gradient_differentiates", "tests/test_operators.py::test_complex_operands",
    ),
    "autoparallel": (
        "tests/test_pipeline_schedules.py", "tests/test_schedule.py", "tests/test_partial_safety.py",
        "tests/test_steps.py::test_steps_of_some_operators", "tests/test_layouts_spmd.py::test_all_pairs_of_layouts",
        "tests/test_layouts_spmd.py::test_indices_are_held", "tests/test_layouts_spmd.py::test_addresses_are_held",
    ),
    "infer": (),
}  # fmt: skip
"""Packages that run otherwise beside siblings that they do not need: with more dialects and passes, their operators
compiled and recorded. And how the names of those of their tests begin that do not: they interpret programs, and come
nowhere where a sibling plugs in, which ``alone_conftest.py`` holds them to."""


def registered_beside(package: str) -> set[str]:
    """The names of the entry points of the siblings that a package does not need."""
    others = [project(name).get("entry-points", {}) for name in ALLOWED if name not in closure(package)]
    return {name for groups in others for names in groups.values() for name in names}


def runs_alike_alone(package: str, item: pytest.Function) -> bool:
    """Whether a test of a package runs the same code where the package is installed alone: nothing there could be
    plugged in that is missing, and nothing is missing there, but not here, that it would be skipped for."""
    name = item.nodeid.removeprefix(f"packages/{package}/")
    if package in PLUGGED_INTO and not name.startswith(PLUGGED_INTO[package]):
        return False
    if any(MISSING.search(mark.kwargs["reason"]) for mark in item.iter_markers("skipif")):
        return False
    shared = ROOT / "packages" / package / "tests" / "conftest.py"
    skipping = _functions_that_skip(item.path) | (_functions_that_skip(shared) if shared.exists() else set())
    return not {"", item.originalname, *item.fixturenames} & skipping


MISSING = re.compile("import|mpi|installed|repository|readme|source tree|part of the package", re.IGNORECASE)
"""What reasons for skipping tests say of what may not be there where a package is installed alone, though it is here.
Any other reason is the machine."""


@cache
def _functions_that_skip(path: Path) -> set[str]:
    """The functions of a module that may skip for what is missing, or use one that does; an empty name where the module
    as a whole may."""
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    texts = [(getattr(node, "name", ""), ast.unparse(node)) for node in nodes]
    found = {name for name, text in texts if re.search(r"\b(importorskip|find_spec)\(", text)}
    found |= {name for name, text in texts if any(map(MISSING.search, re.findall(r"\bskip\((.*)", text)))}
    new = found - {""}
    while new:
        used = re.compile(r"\b(" + "|".join(new) + r")\b")
        new = {name for name, text in texts if used.search(text)} - found
        found |= new
    return found
