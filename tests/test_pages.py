"""Every block of code of the READMEs and the documentation is run, or listed with the reason why it is not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from workspace import ROOT

PAGES = sorted(
    [
        ROOT / "README.md", ROOT / "docs" / "site" / "index.md", *(ROOT / "docs").glob("*.md"),
        *(ROOT / "packages").glob("*/README.md"),
    ]
)  # fmt: skip

ELSEWHERE = {
    "docs/DISTRIBUTED.md": "four ranks run it, one block after the other: packages/meta/tests/test_distributed_page.py",
    "docs/INTERFACES.md": "signatures of what packages give each other, not programs",
    "docs/ARCHITECTURE.md": "the operator silu as the library declares it; a second declaration is refused",
}
"""Pages whose Python blocks are no programs of their own, with the reason."""

NO_PROGRAM = ("python", "{toctree}")
NOT_RUN = {
    "python -m pip install hatch && hatch run quickstart": "minutes; meta/tests/test_quickstart.py has its scripts",
    "hatch run test": "runs this test",
    "python -m pip install ./packages/": "tests/test_install.py and tests/test_commands.py run them",
    "argosy launch --nproc_per_node 2 examples/distributed/train.py": "packages/meta/tests/test_distributed_launch.py",
    "pip install argosy": "needs the package index",
    "pip install 'argosy[mpi]'": "needs the package index",
    "python -m argosy_hwadapt.testing virtual": "packages/hwadapt/tests/test_conformance.py runs the kit",
    "import argosy.as_paddle": "tests/clients runs libraries so",
    "kernel k0_max_sum_3x5 ": "packages/cinn/tests/test_form_text.py compares it",
    "kernel  ": "a table that the page prints, which is compared where it does",
    "packages/<name>/": "a picture of folders",
    '[project.entry-points."argosy.devices"]': "lines of a plug-in's pyproject.toml",
    "paddle.matmul(x, w)": "a picture of what an application does",
    "// comments run to the end of the line": "a program of the IR: packages/pir/tests/test_readme.py",
    "mesh = dist.ProcessMesh([0, 1]": "lines to put into the script above, which two ranks run",
    'dist.save_state_dict({"model"': "lines to put into the script above, which two ranks run",
}
"""How blocks begin that are not run here, with the reason."""


def _blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each block."""
    return re.findall(r"^```([\w{}]*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [p for p in PAGES if _name(p) not in ELSEWHERE], ids=_name)
def test_python_of_a_page_runs_in_order(page: Path, tmp_path: Path) -> None:
    """The blocks of a page are one program, in a process and folder of its own."""
    code = [text for language, text in _blocks(page) if language == "python"]
    if not code:
        return
    program = tmp_path / "page.py"  # a file, so that functions that are captured have a source
    program.write_text("\n".join(code), encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{_name(page)}\n{done.stderr[-3000:]}"
    tables = [text for language, text in _blocks(page) if language == "text" and text.startswith("kernel  ")]
    cells = [cell for text in tables for line in text.splitlines()[2:] for cell in re.split("  +", line)]
    assert [cell for cell in cells if cell not in done.stdout] == []


def test_every_other_block_is_known() -> None:
    """A block that is no Python is on the list of those that are not run, and no line of the list is idle."""
    others = [text for page in PAGES for language, text in _blocks(page) if language not in NO_PROGRAM]
    known = [begins for text in others for begins in NOT_RUN if text.startswith(begins)]
    assert [text for text in others if not text.startswith(tuple(NOT_RUN))] == []
    assert sorted(NOT_RUN.keys() - set(known)) == []
    assert [page for page in ELSEWHERE if not (ROOT / page).exists()] == []
