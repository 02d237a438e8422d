"""The example of the package's README runs."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.skipif(not README.exists(), reason="the tests run without the source tree")
def test_readme_example_runs(capsys):
    """What the README shows is a program, and it prints something."""
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, str(README), "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out
