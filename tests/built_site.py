"""The site, built once for all tests of a run: of a copy of what git knows, as a clone has it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from once import made_once
from workspace import ROOT


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of its pages."""
    folder = made_once(tmp_path_factory, "site", _build)
    log = (folder / "log").read_text(encoding="utf-8")
    assert log.startswith("exit code 0\n"), log[-6000:]
    assert "WARNING" not in log, log[-6000:]
    return folder / "html"


def _build(folder: Path) -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        target = folder / "clone" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, target)
    build = [sys.executable, "docs/site/build.py", "--out", str(folder / "html")]
    done = subprocess.run(build, cwd=folder / "clone", capture_output=True, text=True, check=False)
    log = f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    (folder / "log").write_text(log, encoding="utf-8")
