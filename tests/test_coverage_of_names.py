"""The tool that says which public names the suite executes tells what ran from what did not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from coverage_of_names import LATER, counted, missing, page, renewed

WATCHED = """
import sys
from coverage_of_names import Watch, executed
import argosy as paddle

watch = Watch()
sys.setprofile(watch)
x = paddle.ones([2, 3])
paddle.tanh(x)
x.reshape([3, 2])
x.add_(x)
paddle.hstack([x, x])
paddle.nn.ReLU6()(x)
sys.setprofile(None)
print(*[name for name in sys.argv[1:] if executed(watch, name)])
"""


def test_calls_are_told_from_names_that_were_not_called() -> None:
    """Operators, methods, in-place forms, composed functions and layers count when they ran, and only then; in a
    process of its own, as native code, which runs what was called often, tells no profile function."""
    ran = ["ones", "tanh", "Tensor.reshape", "Tensor.add_", "hstack", "nn.ReLU6", "nn.ReLU6.forward", "pi"]
    ran += ["amp.debugging.DebugMode"]
    others = ["cosh", "Tensor.multiply_", "vstack", "nn.Softplus", "nn.Softplus.forward", "nn.functional.unfold"]
    environment = {**os.environ, "ARGOSY_EAGER": "plain", "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", WATCHED, *ran, *others]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.stdout.split() == ran, ended.stderr


def test_the_page_counts_by_area_and_lists_the_rest() -> None:
    """A name that ran raises its area's count; others are listed."""
    text = page({"io.DataLoader"})
    assert "| io | 20 | 1 | 5.0% |" in text
    assert "- io: `io.BatchSampler`" in text
    assert "`io.DataLoader`" not in text


def test_what_is_missing_is_told_from_what_was_not_run() -> None:
    """Absent names and functions that only refuse are marked, and no call of another makes them executed."""
    assert [missing(name) for name in ("io.DataLoader", "device.cuda.synchronize", "distributed.no_such_name")] == [
        "", "refuses", "absent",
    ]  # fmt: skip
    assert "- device: `device.cuda.synchronize` (refuses)" in page({"io.DataLoader"})


def test_a_page_tells_what_it_counts() -> None:
    """Parts of the suite add up: what a page counts can be read from it."""
    text = page({"io.DataLoader", "abs", "device.get_device"})
    assert counted(text) == {"io.DataLoader", "abs", "device.get_device"}
    without = "\n".join(line for line in text.splitlines() if not line.startswith(("| device |", "- device: ")))
    assert counted(without) == {"io.DataLoader", "abs"}


def test_what_others_wrote_on_the_page_stays() -> None:
    """The figures of examples and libraries are not this tool's."""
    others = LATER + "\n\n| x |\n\n## Libraries\n\nsuites\n"
    assert renewed(page(set()) + others, {"abs"}) == page({"abs"}) + others
