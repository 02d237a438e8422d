"""The commands that the READMEs and the workspace name: installing from a clone, and the quickstart."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from workspace import ALLOWED, MODULES, ROOT, closure

PAGES = {name: ROOT / "packages" / name / "README.md" for name in ALLOWED}
"""The first page's lines are run by tests/test_install.py."""


def _install(page: Path) -> list[str]:
    """The arguments of the one command of a page that installs from a clone."""
    found = re.findall(r"^python -m pip install (\./packages/.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) == 1, f"{page} names {len(found)} commands that install from a clone, expected one"
    return shlex.split(found[0])


@pytest.mark.parametrize("package", PAGES)
def test_the_command_of_a_readme_names_a_package_and_its_siblings(package: str) -> None:
    """No sibling would be looked for anywhere else."""
    assert sorted(_install(PAGES[package])) == sorted(f"./packages/{name}" for name in closure(package))


def test_the_command_of_a_readme_installs(tmp_path: Path) -> None:
    """Run as written, with an installer that is here: the package and its siblings are importable."""
    environment = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
    python = tmp_path / "home" / ("Scripts" if os.name == "nt" else "bin") / "python"
    install = ["pip", "install", "--quiet", "--python", str(python), *_install(PAGES["phi-ops"])]
    for command in (["venv", "--quiet", "--python", sys.executable, str(tmp_path / "home")], install):
        subprocess.run([sys.executable, "-m", "uv", *command], check=True, cwd=ROOT, env=environment)
    imports = ", ".join(MODULES[name] for name in closure("phi-ops"))
    subprocess.run([str(python), "-c", f"import {imports}"], check=True, cwd=tmp_path, env=environment)


def test_scripts_of_the_workspace_do_not_look_for_hatch() -> None:
    """hatch may have been called by a path: what it runs is in its environment, and it need not be."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        scripts = tomllib.load(file)["tool"]["hatch"]["envs"]["default"]["scripts"]
    lines = [line for script in scripts.values() for line in ([script] if isinstance(script, str) else script)]
    assert [line for line in lines if line.split()[0] == "hatch"] == []


def test_what_the_quickstart_writes_is_not_tracked() -> None:
    """Its folder is ignored by git."""
    assert "out/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
