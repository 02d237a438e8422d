"""The packages of the workspace and what each may import: the table of docs/ARCHITECTURE.md as data."""

from __future__ import annotations

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


PLUGGED_INTO = {"pir", "phi-ops", "autograd", "autoparallel", "infer"}
"""Packages that run otherwise beside siblings that they do not need: with more dialects and passes, their operators
compiled and recorded."""


def runs_alike_alone(package: str, item: pytest.Item) -> bool:
    """Whether a test of a package runs the same code where the package is installed alone: nothing there could be
    plugged in that is missing, and neither it nor its file may skip."""
    if package in PLUGGED_INTO:
        return False
    marked = any(item.get_closest_marker(name) for name in ("skipif", "soak"))
    return not marked and not _may_skip(item.path)


@cache
def _may_skip(path: Path) -> bool:
    return bool(re.search(r"importorskip|skip\(|find_spec", path.read_text(encoding="utf-8")))
