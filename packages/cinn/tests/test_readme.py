"""The README's example runs as printed."""

import re
from pathlib import Path


def test_the_example_runs():
    """What a reader copies works."""
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
