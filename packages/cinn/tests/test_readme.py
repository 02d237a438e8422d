"""The README's examples run as printed."""

import re
from pathlib import Path


def test_the_examples_run(capsys):
    """What a reader copies works."""
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(found) == 2
    for code in found:
        exec(compile(code, "README.md", "exec"), {})
    assert "epilogue" in capsys.readouterr().out
