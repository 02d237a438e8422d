"""Every package installs alone from its wheel (siblings it declares by path) and its own tests pass there."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from workspace import ALLOWED, MISSING, MODULES, PLUGGED_INTO, ROOT, TESTED_ALONE, closure, project, registered_beside


def run(*command, cwd, **environment):
    """Run a command; its output is the failure message."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "VIRTUAL_ENV", "COV"))}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env={**env, **environment})
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-6000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture
def bare(tmp_path_factory):
    """The interpreter of an environment that has nothing, and the variable that says where bytecode is kept. Each time
    the same two folders: what the packages need from elsewhere is then compiled once."""
    base = tmp_path_factory.getbasetemp()
    uv = [sys.executable, "-m", "uv", "venv", "--quiet", "--clear", "--python", sys.executable]
    run(*uv, base / "home", cwd=base)
    python = base / "home" / ("Scripts" if os.name == "nt" else "bin") / "python"
    return python, {"PYTHONPYCACHEPREFIX": str(base / "bytecode")}


LONGEST_FIRST = sorted(ALLOWED, key=lambda package: -len([*(ROOT / "packages" / package / "tests").rglob("test_*.py")]))


@pytest.mark.parametrize("package", LONGEST_FIRST)
def test_package_alone_passes_its_tests(package, bare, dist, tmp_path, request, record_property):
    python, bytecode = bare
    wanted = f"{project(package)['name']}[test]"
    uv = [sys.executable, "-m", "uv", "pip", "install", "--python", python]
    run(*uv, "--find-links", dist, wanted, cwd=tmp_path)
    installed = run(python, "-c", _SIBLINGS, cwd=tmp_path, **bytecode).split()
    assert set(installed) == {MODULES[name] for name in closure(package)}
    shutil.copytree(ROOT / "packages" / package / "tests", tmp_path / "tests")
    shutil.copy(ROOT / "packages" / package / "README.md", tmp_path)  # its examples are tested
    (tmp_path / "pytest.ini").write_text(_PYTEST)
    shutil.copy(ROOT / "tests" / "case_selection.py", tmp_path)
    shutil.copy(ROOT / "tests" / "alone_conftest.py", tmp_path / "conftest.py")
    plugged = {"tests": PLUGGED_INTO.get(package, [""]), "registered": sorted(registered_beside(package))}
    (tmp_path / "plugged.json").write_text(json.dumps(plugged))
    code = "ARGOSY_CODEGEN_LEVEL"
    level = {code: os.environ.get(code, "0")} if package != "cinn" else {}  # whose tests choose it
    run(python, "-m", "pytest", "tests", cwd=tmp_path, **bytecode, **level)
    outcomes = [line.split("\t") for line in (tmp_path / "outcomes").read_text(encoding="utf-8").splitlines()]
    passed = {name for name, reason in outcomes if not reason}
    skipped_for_the_machine = {name for name, reason in outcomes if reason and not MISSING.search(reason)}
    assert request.config.stash[TESTED_ALONE][package] <= passed | skipped_for_the_machine
    assert [begin for begin in plugged["tests"] if not any(name.startswith(begin) for name in passed)] == []
    record_property("passed alone", len(passed))


_SIBLINGS = f"import importlib.util as u;print(*[m for m in {sorted(MODULES.values())!r} if u.find_spec(m)])"

_PYTEST = """[pytest]
pythonpath = .
addopts = --import-mode=importlib -q -p no:cacheprovider -p case_selection -m 'not soak and not exhaustive'
filterwarnings = error
markers =
    exhaustive: left to a run beside siblings
    soak: long runs, started by name
"""
