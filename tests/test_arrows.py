"""Arrows point down: packages import what the table of the architecture allows, and declare what they import."""

import ast
import re
import sys

import pytest
from workspace import ALLOWED, MODULES, ROOT, project

_DISTRIBUTIONS = {
    "mpi4py": "mpi4py",
    "llvmlite": "llvmlite",
    "cffi": "cffi",
    "_cffi_backend": "cffi",
    "numpy": "numpy",
    "ml_dtypes": "ml-dtypes",
}


def imports(package: str) -> dict[str, list[str]]:
    """Top-level names imported anywhere in the sources, each with the places."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "packages" / package / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                found.setdefault(name.partition(".")[0], []).append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def declared(package: str) -> set[str]:
    """Distribution names in dependencies and extras."""
    table = project(package)
    requirements = list(table["dependencies"])
    for lines in table.get("optional-dependencies", {}).values():
        requirements += lines
    return {re.match(r"[A-Za-z0-9._-]+", line).group().lower().replace("_", "-") for line in requirements}


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_of_siblings_follow_the_table(package):
    allowed = {MODULES[name] for name in ALLOWED[package]} | {MODULES[package]}
    for name, places in imports(package).items():
        if name in MODULES.values():
            assert name in allowed, f"{package} must not import {name}: {places}"


@pytest.mark.parametrize("package", ALLOWED)
def test_every_import_is_declared(package):
    names = {MODULES[p]: project(p)["name"].lower() for p in ALLOWED}
    known = declared(package)
    for name, places in imports(package).items():
        if name in sys.stdlib_module_names or name == MODULES[package]:
            continue
        distribution = names.get(name) or _DISTRIBUTIONS.get(name, name).lower()
        assert distribution in known, f"{package} imports {name} without declaring {distribution}: {places}"


@pytest.mark.parametrize("package", ALLOWED)
def test_declared_siblings_are_compatible_ranges_within_the_table(package):
    names = {project(p)["name"]: p for p in ALLOWED}
    for line in project(package)["dependencies"]:
        name, _, rest = line.partition(" ")
        if name in names:
            assert names[name] in ALLOWED[package]
            assert rest.startswith("~="), f"{package}: {line} must be a compatible range"


def test_pir_uses_the_standard_library_only():
    outside = imports("pir").keys() - sys.stdlib_module_names - {"argosy_pir"}
    assert not outside


def test_only_cinn_knows_llvmlite_and_only_hwadapt_mpi4py():
    for package in ALLOWED:
        found = imports(package)
        assert package == "cinn" or "llvmlite" not in found
        assert package == "hwadapt" or "mpi4py" not in found
