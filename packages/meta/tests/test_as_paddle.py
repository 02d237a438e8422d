"""argosy under Paddle's name: modules, versions, scripts that are not touched, and another paddle in the way."""

import subprocess
import sys

import pytest

import argosy

SCRIPT = """
import sys
import paddle
import paddle.nn.functional as F
from paddle.nn import Layer
from paddle.nn.layer.transformer import TransformerEncoder

import argosy

assert Layer is argosy.nn.Layer and F is argosy.nn.functional and TransformerEncoder is argosy.nn.TransformerEncoder
assert argosy.nn.__spec__.name == "argosy.nn"
from paddle.amp.auto_cast import amp_state
with paddle.amp.auto_cast():
    assert amp_state()
assert paddle.__git_commit__ == argosy.version.commit
paddle.marked = 3
print(sys.argv, paddle.__version__, argosy.marked, F.relu(paddle.to_tensor([-1.0, 2.0])).tolist())
"""


def _ran(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "argosy.as_paddle", *arguments], capture_output=True, text=True, **options
    )


def test_a_script_that_is_not_touched(tmp_path):
    """Its modules are argosy's own, under both names, and it sees the version of Paddle and its arguments."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    found = _ran(str(script), "--epochs", "3")
    assert found.stdout.strip() == f"{[str(script), '--epochs', '3']} {argosy.version.full_version} 3 [0.0, 2.0]"
    module = _ran("-m", "train", "--epochs", "4", cwd=tmp_path)
    assert "'--epochs', '4'] 3.3.1 3" in module.stdout, module.stderr
    assert "usage: python -m argosy.as_paddle" in _ran().stderr


def test_what_argosy_lacks_is_no_module(tmp_path):
    """A module that is not there is a ModuleNotFoundError by Paddle's name, as libraries catch it."""
    script = tmp_path / "old.py"
    script.write_text(
        "from importlib.util import find_spec\nassert find_spec('paddle.fluid') is None\nimport paddle.fluid\n"
    )
    assert "ModuleNotFoundError: No module named 'paddle.fluid'" in _ran(str(script)).stderr


def test_another_paddle_is_not_replaced():
    """Where a paddle was imported before, its users hold it: an error says so."""
    from argosy import as_paddle

    as_paddle.uninstall()
    sys.modules["paddle"] = type(sys)("paddle")
    with pytest.raises(ImportError, match=r"paddle was imported already, from .*: import argosy.as_paddle before it"):
        as_paddle.install()
    del sys.modules["paddle"]
    as_paddle.install()
    import paddle

    assert paddle.nn is argosy.nn
    assert "matmul" in dir(paddle)
    as_paddle.uninstall()
    assert "paddle" not in sys.modules
