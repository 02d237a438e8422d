"""Arrows point down: packages import what the table of the architecture allows, and declare what they import; within
a package no files import each other in a circle, and imports run down the rows of its README's table of modules.
"""

import ast
import re
import sys
from functools import cache

import pytest
from import_graph import HEADING, Floors, Graph, circles, import_graph, import_statements
from workspace import ALLOWED, MODULES, ROOT, project

_DISTRIBUTIONS = {
    "mpi4py": "mpi4py",
    "google": "protobuf",
    "llvmlite": "llvmlite",
    "cffi": "cffi",
    "_cffi_backend": "cffi",
    "numpy": "numpy",
    "ml_dtypes": "ml-dtypes",
}

#: Libraries of the framework for one domain each: they use its core, which does not know them.
DOMAINS = {
    "audio", "distribution", "geometric", "hapi", "incubate", "inference", "models", "quantization", "science",
    "sparse", "text", "vision",
}  # fmt: skip
CORE = {
    "amp", "api", "autograd", "device", "distributed", "framework", "io", "jit", "metric", "nn", "optimizer", "static",
}  # fmt: skip


@cache
def imports(package: str) -> dict[str, list[str]]:
    """Top-level names imported anywhere in the sources, each with the places."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "packages" / package / "src").rglob("*.py")):
        for node, _ in import_statements(path):
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


@cache
def graph(package: str) -> Graph:
    """The imports between the modules of a package of the workspace."""
    return import_graph(ROOT / "packages" / package / "src" / MODULES[package])


def floors(package: str) -> Floors:
    """The table of modules in the README of a package."""
    return Floors((ROOT / "packages" / package / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("package", ALLOWED)
def test_no_files_import_each_other_in_a_circle(package):
    assert circles(graph(package)) == []


@pytest.mark.parametrize("package", ALLOWED)
def test_a_readme_lists_every_module_once(package):
    found, modules = floors(package), graph(package)
    assert found.repeated == []
    assert [name for name in modules if found.row(name) is None] == [], f"no row under '{HEADING}' names them"
    assert found.rows.keys() - modules.keys() - {"__main__"} == set(), "there are no such modules"


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_run_down_the_rows_of_the_readme(package):
    upward = [f"{u.module}:{u.line} imports {u.imports}" for u in floors(package).upward(graph(package))]
    assert upward == []


SOURCES = {
    "__init__.py": "from boat.hull import Hull",
    "hull/__init__.py": "from boat.hull.keel import Keel as Hull",
    "hull/keel.py": "def ballast():\n    from ..cargo import Cargo",
    "cargo.py": "if TYPE_CHECKING:\n    from boat.mast import Mast\nimport boat.hull.keel",
    "mast.py": "from boat import cargo",
}
"""A package with a circle of two files: an import in a function, and one of a module as a whole."""


@pytest.fixture
def boat(tmp_path):
    for name, text in SOURCES.items():
        path = tmp_path / "boat" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return import_graph(tmp_path / "boat")


def test_a_circle_through_a_function_is_one_and_for_type_checkers_none(boat):
    assert circles(boat) == [["cargo", "hull.keel"]]


def test_floors_find_what_is_upward_missing_or_listed_twice(boat):
    table = Floors(
        f"{HEADING}\n\n| module | is |\n|---|---|\n| `cargo.py` | a |\n| `hull/`, `hull.keel` | b |\n| `cargo` | |\n"
    )
    assert table.repeated == ["cargo"]
    assert table.row("mast") is None
    table = Floors(
        f"{HEADING}\n| `mast` | a |\n| `cargo` | b |\n| `hull`, `hull.keel` | c |\n\n## Else\n| `keel` | d |\n"
    )
    assert [(u.module, u.imports) for u in table.upward(boat)] == [("hull.keel", "cargo")]


def test_the_core_of_the_framework_imports_no_domain_library():
    """What needs one of them for a name, or to read a file, fetches it by name when it does."""
    found = {
        f"{module} imports {target}"
        for module, targets in graph("meta").items()
        for target in targets
        if module.partition(".")[0] in CORE and target.partition(".")[0] in DOMAINS
    }
    assert not found
