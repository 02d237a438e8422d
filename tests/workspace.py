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
        "tests/test_main.py", "tests/test_passes.py::test_registering",
        "tests/test_passes.py::test_wrong_pipelines_are_explained", "tests/test_serialization.py::test_every",
        "tests/test_serialization.py::test_newer_versions",
    ),
    "phi-ops": (
        "tests/test_calls.py", "tests/test_capture.py", "tests/test_devices.py", "tests/test_operator",
        "tests/test_passes.py", "tests/test_refusals.py", "tests/test_routes.py", "tests/test_vendor_operators.py",
        "tests/reference/test_interpreter.py::test_operators_and_gradient_requests",
        "tests/reference/test_interpreter.py::test_the_reference_compiler",
    ),
    "autograd": ("tests/test_dependence.py::test_high_derivatives", "tests/test_passes.py::test_every_pass"),
    "autoparallel": ("tests/test_layouts_spmd.py::test_random_numbers", "tests/test_passes.py"),
    "infer": (
        "tests/test_importers.py", "tests/test_incremental.py::test_the_program_refuses_numbers", "tests/test_onnx",
        "tests/test_incremental.py::test_scans_along", "tests/test_passes.py", "tests/test_refusals.py",
    ),
}  # fmt: skip
"""Packages into which siblings plug that they do not need: more dialects and passes, a compiler and a recorder of
operators. And how the names of those of their tests begin that come to such a place, and are repeated beside siblings
for that; ``alone_conftest.py`` holds all others to coming to none."""


def registered_beside(package: str) -> set[str]:
    """The names of the entry points of the siblings that a package does not need."""
    others = [project(name).get("entry-points", {}) for name in ALLOWED if name not in closure(package)]
    return {name for groups in others for names in groups.values() for name in names}


def runs_alike_alone(package: str, item: pytest.Function) -> bool:
    """Whether a test of a package runs the same code where the package is installed alone: nothing there could be
    plugged in that is missing, and nothing is missing there, but not here, that it would be skipped for."""
    name = item.nodeid.removeprefix(f"packages/{package}/")
    if name.startswith(PLUGGED_INTO.get(package, ())):
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
    source = path.read_text(encoding="utf-8")
    if not re.search(r"skip\(|find_spec\(", source):
        return set()
    texts = [(getattr(node, "name", ""), ast.unparse(node)) for node in ast.parse(source).body]
    found = {name for name, text in texts if re.search(r"\b(importorskip|find_spec)\(", text)}
    found |= {name for name, text in texts if any(map(MISSING.search, re.findall(r"\bskip\((.*)", text)))}
    new = found - {""}
    while new:
        used = re.compile(r"\b(" + "|".join(new) + r")\b")
        new = {name for name, text in texts if used.search(text)} - found
        found |= new
    return found
