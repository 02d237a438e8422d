"""The examples of the README run as they stand."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_readme_examples_run(code):
    """Each Python block runs, and its assertions hold."""
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
