"""Installing without hatch: the lines of README are run as they stand, from a clone and from wheels; versions fit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from workspace import ALLOWED, MODULES, ROOT, closure, project

sys.path.insert(0, str(ROOT / "tools"))
import wheels

OUTSIDE = [
    "pip", "hatchling", "numpy", "cffi", "llvmlite", "ml_dtypes", "mpi4py", "mpich", "pillow", "gguf", "matplotlib",
]  # fmt: skip
"""What comes from elsewhere. It is there before the lines are run, which then need no index."""


def _lines() -> list[str]:
    """The commands of README's section on installing, without their comments."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## Install")[2].partition("\n## ")[0]
    found = [line.partition("  #")[0].strip() for line in section.splitlines() if "pip install" in line]
    return [line for line in found if line.startswith("python -m pip install")]


CLONE = [line for line in _lines() if "./packages" in line]
WHEELS = [line for line in _lines() if "dist" in line]


def _shell(command: str, cwd: Path, home: Path, **more: str) -> str:
    """Run one line in a shell whose ``python`` is the one of the environment ``home``; pip makes no bytecode of what is
    not run."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "VIRTUAL_ENV", "PIP_"))}
    given = {"PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}", "PIP_COMPILE": "0"}
    done = subprocess.run(
        command, shell=True, cwd=cwd, env={**kept, **given, **more}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pip and what is not ours."""
    home = tmp_path_factory.mktemp("install") / "home"
    for command in (["venv", "--python", sys.executable, home], ["pip", "install", "--python", home, *OUTSIDE]):
        done = subprocess.run(
            [sys.executable, "-m", "uv", *map(str, command)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    return home


def _installed(home: Path, cwd: Path) -> set[str]:
    """Our packages that the environment has, and which of them Python finds."""
    names = sorted(MODULES.values())
    return set(
        _shell(
            f'python -c "import importlib.util as u;print(*[m for m in {names} if u.find_spec(m)])"', cwd, home
        ).split()
    )


def _remove(home: Path, cwd: Path) -> None:
    _shell("python -m pip uninstall --yes " + " ".join(project(name)["name"] for name in ALLOWED), cwd, home)


def test_readme_has_a_line_for_everything_one_package_and_the_extras() -> None:
    """From a clone and from wheels."""
    assert len(CLONE) == len(WHEELS) == 3
    for lines in (CLONE, WHEELS):
        assert ["[" in line for line in lines] == [False, False, True]


def test_lines_for_a_clone(home: Path, tmp_path: Path) -> None:
    """A copy of the packages as git has them; nothing is looked up anywhere, so what is needed is in the lines."""
    names = subprocess.run(["git", "ls-files", "packages"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        if "/tests/" not in name and (ROOT / name).exists():
            target = tmp_path / "clone" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    # The variable stands for --no-build-isolation, of which it is the opposite.
    quick = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    everything, one, extras = CLONE
    _shell(one, tmp_path / "clone", home, **quick)
    (package,) = re.findall(r"\./packages/(\S+)", one)
    assert _installed(home, tmp_path) == {MODULES[name] for name in closure(package)}
    _shell(everything, tmp_path / "clone", home, **quick)
    assert _installed(home, tmp_path) == set(MODULES.values())
    _shell(extras, tmp_path / "clone", home, PIP_NO_DEPS="1", **quick)
    _remove(home, tmp_path)


def test_lines_for_wheels(home: Path, dist: Path, tmp_path: Path) -> None:
    """``hatch run build`` makes the wheels; what is installed from them alone computes."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        script = tomllib.load(file)["tool"]["hatch"]["envs"]["default"]["scripts"]["build"]
    assert script == "python tools/wheels.py {args}"
    assert len(list(dist.glob("*-py3-none-any.whl"))) == len(list(dist.glob("*.whl"))) == len(ALLOWED)
    assert (dist / "RELEASE_NOTES.md").read_text(encoding="utf-8").count("\n## ") == len(ALLOWED)
    (tmp_path / "dist").symlink_to(dist)
    everything, one, extras = WHEELS
    for line, packages in ((one, closure("pir")), (everything, [*ALLOWED]), (extras, [*ALLOWED])):
        _shell(line, tmp_path, home, PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
        assert _installed(home, tmp_path) == {MODULES[name] for name in packages}
    _shell('python -c "import argosy; assert float(argosy.ones([2, 2]).sum()) == 4"', tmp_path, home)
    _remove(home, tmp_path)


@pytest.mark.parametrize("package", ALLOWED)
def test_siblings_are_required_in_compatible_ranges(package: str) -> None:
    """``~=`` of two releases that holds the sibling's version; never a version alone."""
    table = project(package)
    extras = [line for lines in table.get("optional-dependencies", {}).values() for line in lines]
    for line in [*table["dependencies"], *extras]:
        requirement = Requirement(line)
        if requirement.name.partition("-")[0] == "argosy":
            (range_,) = requirement.specifier
            sibling = "meta" if requirement.name == "argosy" else requirement.name.removeprefix("argosy-")
            assert range_.operator == "~=", line
            assert requirement.specifier.contains(wheels.version(ROOT / "packages" / sibling)), line


def test_changelogs_begin_with_the_version_and_say_something(tmp_path: Path) -> None:
    """Release notes are made of them; a changelog that lags behind its package is an error."""
    notes = {name: wheels.changes(ROOT / "packages" / name) for name in ALLOWED}
    assert {name: text for name, text in notes.items() if len(text.splitlines()) < 4} == {}
    shutil.copytree(ROOT / "packages" / "pir" / "src" / "argosy_pir", tmp_path / "src" / "argosy_pir")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog of argosy-pir\n\n## 0.0.9\n\nOlder.\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"begins with '0\.0\.9'"):
        wheels.changes(tmp_path)
