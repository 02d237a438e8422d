"""The site, built once for all tests of a run: of a copy of what git knows, as a clone has it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from workspace import ROOT


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of its pages. The first process of a run that asks builds it, others wait."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with (folder / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "site.log").exists():
            (folder / "site.log").write_text(_build(folder), encoding="utf-8")
    log = (folder / "site.log").read_text(encoding="utf-8")
    assert log.startswith("exit code 0\n"), log[-6000:]
    assert "WARNING" not in log, log[-6000:]
    return folder / "site" / "html"


def _build(folder: Path) -> str:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        target = folder / "site" / "clone" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, target)
    build = [sys.executable, "docs/site/build.py", "--out", str(folder / "site" / "html")]
    done = subprocess.run(build, cwd=folder / "site" / "clone", capture_output=True, text=True, check=False)
    return f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
