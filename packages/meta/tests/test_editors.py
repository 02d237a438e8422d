"""What editors know: methods of tensors, arguments of layers. The tests of the workspace run type checkers."""

import subprocess
import sys

import pytest

import argosy as paddle
from argosy.api.tensor_stub import PLACE, tensor_stub


def test_the_stub_of_methods_is_up_to_date() -> None:
    """It is what ``python -m argosy.api.stubs`` writes."""
    assert PLACE.read_text(encoding="utf-8") == tensor_stub()


def test_completion_offers_all_methods_with_signatures() -> None:
    """Of tensors that functions give, in an editor, where nothing runs."""
    jedi = pytest.importorskip("jedi")
    code = "import argosy as paddle\nx = paddle.ones([2, 3])\nx."
    offered = {each.name: each for each in jedi.Script(code).complete(3, 2)}
    command = "import argosy as paddle; print(*dir(paddle.Tensor))"  # tests of libraries here add methods of their own
    names = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout.split()
    listed = {name for name in names if not name.startswith("_")}
    assert listed <= set(offered), sorted(listed - set(offered))
    (shown,) = jedi.Script(code + "reshape(").get_signatures(3, 10)
    assert shown.params[0].name == "shape"


def test_completion_shows_the_arguments_of_layers() -> None:
    """And of optimizers, in an editor and at the prompt."""
    jedi = pytest.importorskip("jedi")
    for name, first in (
        ("nn.Conv2D", "in_channels"),
        ("nn.Linear", "in_features"),
        ("optimizer.Adam", "learning_rate"),
    ):
        code = f"import argosy as paddle\npaddle.{name}("
        for script in (jedi.Script(code), jedi.Interpreter(code, [{"paddle": paddle}])):
            (shown,) = script.get_signatures(2, len(name) + 8)
            assert shown.params[0].name == first
