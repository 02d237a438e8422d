"""The examples of docs/DISTRIBUTED.md run as they stand, on four ranks."""

import re
from pathlib import Path

import pytest

from argosy.distributed.debug import run_ranks

PAGE = Path(__file__).resolve().parents[3] / "docs" / "DISTRIBUTED.md"


def test_the_page_runs(tmp_path, capsys):
    """All examples are one program; its losses fall."""
    if not PAGE.exists():
        pytest.skip("the page is in the repository, not in the wheel")
    program = "\n\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))

    def main():
        names = {"folder": str(tmp_path / "checkpoint")}
        exec(compile(program, str(PAGE), "exec"), names)
        return float(names["loss"]), names["losses"]

    first, *others = run_ranks(main, 4, timeout=3600)
    assert all(found == first for found in others)
    (before, losses) = first  # of the same batch, an epoch later
    assert losses[-1] < before
    assert "prim.all_gather" in capsys.readouterr().out
