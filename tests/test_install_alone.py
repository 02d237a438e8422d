"""Every package installs alone from its wheel (siblings it declares by path) and its own tests pass there."""

import os
import shutil
import subprocess
import sys

import pytest
from workspace import ALLOWED, MODULES, ROOT, TESTED_ALONE, closure, project


def run(*command, cwd, **environment):
    """Run a command; its output is the failure message."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "VIRTUAL_ENV", "COV"))}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env={**env, **environment})
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-6000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.mark.parametrize("package", [*reversed(ALLOWED)])
def test_package_alone_passes_its_tests(package, tmp_path, request, record_property):
    wheels = tmp_path / "wheels"
    for name in closure(package):
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", wheels, cwd=ROOT / "packages" / name)
    assert all(path.name.endswith("py3-none-any.whl") for path in wheels.iterdir())
    home = tmp_path / "home"
    run(sys.executable, "-m", "uv", "venv", "--python", sys.executable, home, cwd=tmp_path)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    requirement = f"{project(package)['name']}[test]"
    run(
        sys.executable,
        "-m",
        "uv",
        "pip",
        "install",
        "--python",
        python,
        "--find-links",
        wheels,
        requirement,
        cwd=tmp_path,
    )
    installed = run(python, "-c", _SIBLINGS, cwd=tmp_path).split()
    assert set(installed) == {MODULES[name] for name in closure(package)}
    shutil.copytree(ROOT / "packages" / package / "tests", tmp_path / "tests")
    shutil.copy(ROOT / "packages" / package / "README.md", tmp_path)  # its examples are tested
    (tmp_path / "pytest.ini").write_text(_PYTEST)
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    run(python, "-m", "pytest", "tests", cwd=tmp_path)
    passed = set((tmp_path / "passed").read_text(encoding="utf-8").splitlines())
    assert request.config.stash[TESTED_ALONE][package] <= passed
    record_property("passed alone", len(passed))


_SIBLINGS = f"import importlib.util as u;print(*[m for m in {sorted(MODULES.values())!r} if u.find_spec(m)])"

_PYTEST = """[pytest]
addopts = --import-mode=importlib -q -p no:cacheprovider -m 'not soak'
filterwarnings = error
markers =
    soak: long runs, started by name
"""

_CONFTEST = """
import gc
from pathlib import Path

import pytest

PASSED = Path(__file__).with_name("passed")  # some tests change the folder


@pytest.hookimpl(wrapper=True)
def pytest_collection():  # what is collected stays: the collector need not look at it again and again
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_runtest_logreport(report):
    if report.when == "call" and report.passed:
        with PASSED.open("a", encoding="utf-8") as file:
            print(report.nodeid, file=file)
"""
