"""Errors show the user's lines, in scripts, threads, pytest and IPython, and end with the one that went wrong."""

import os
import re
import subprocess
import sys
import traceback
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import argosy as paddle
from argosy.tracebacks import fold_tracebacks

SCRIPT = """\
import argosy as paddle

class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.inner = paddle.nn.Linear(4, 2)

    def forward(self, x):
        return self.inner(x)

def call():
    return Net()(paddle.ones([2, 3]))
"""
LAST = "net.py:9: return self.inner(x)"


def _run(folder: Path, *lines: str, full: bool = False, command: tuple[str, ...] = ()) -> str:
    (folder / "net.py").write_text(SCRIPT + "\n".join(lines) + "\n")
    environment = os.environ | ({"ARGOSY_TRACEBACK": "full"} if full else {"ARGOSY_TRACEBACK": ""})
    given = command or ("net.py",)
    done = subprocess.run(
        [sys.executable, *given], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.stderr + done.stdout


def _files(text: str) -> set[str]:
    return {Path(found).name for found in re.findall(r'File "([^"]+)"', text)}


def test_a_script_shows_its_own_lines(tmp_path: Path) -> None:
    """And ends with the one that went wrong; nothing of argosy's is between."""
    shown = _run(tmp_path, "call()")
    assert _files(shown) == {"net.py"}
    assert "in forward" in shown
    assert "linear: the last axis of x has 3 elements, weight expects 4" in shown
    assert re.search(r"\[\d+ frames inside of argosy are left out: ARGOSY_TRACEBACK=full shows them\]", shown)
    assert shown.strip().splitlines()[-1] == LAST


def test_everything_is_shown_on_request(tmp_path: Path) -> None:
    """By the setting."""
    shown = _run(tmp_path, "call()", full=True)
    assert "layers.py" in _files(shown)
    assert "left out" not in shown


def test_threads_show_their_own_lines(tmp_path: Path) -> None:
    """As the main thread."""
    shown = _run(tmp_path, "import threading", "t = threading.Thread(target=call)", "t.start()", "t.join()")
    assert _files(shown) == {"net.py", "threading.py"}
    assert shown.strip().splitlines()[-1] == LAST


def test_chained_errors_stay_readable(tmp_path: Path) -> None:
    """Both with the user's lines."""
    shown = _run(tmp_path, "try:", "    call()", "except ValueError as e:", "    raise RuntimeError('mine') from e")
    assert _files(shown) == {"net.py"}
    assert "weight expects 4" in shown
    assert "direct cause" in shown
    assert "RuntimeError: mine" in shown


def test_errors_of_the_users_own_are_left_alone(tmp_path: Path) -> None:
    """Those that argosy has not touched."""
    shown = _run(tmp_path, "1 / 0")
    assert shown.strip().splitlines()[-1] == "ZeroDivisionError: division by zero"


def test_pytest_shows_the_line(tmp_path: Path) -> None:
    """By the plug-in, which environments made before it do not list."""
    listed = any(point.name == "argosy" for point in entry_points(group="pytest11"))
    chosen = () if listed else ("-p", "argosy.tracebacks.pytest_plugin")
    shown = _run(
        tmp_path,
        "def test_net():",
        "    call()",
        command=("-m", "pytest", "-q", *chosen, "-p", "no:cacheprovider", "net.py"),
    )
    assert "layers.py" not in shown
    assert "weight expects 4" in shown
    assert LAST in shown


def test_a_cell_of_ipython_shows_the_line(tmp_path: Path) -> None:
    """With IPython's own colours and context."""
    pytest.importorskip("IPython")
    shown = _run(
        tmp_path,
        "from IPython.core.interactiveshell import InteractiveShell",
        "import argosy.tracebacks",
        "shell = InteractiveShell.instance()",
        "argosy.tracebacks._installed.clear()",
        "argosy.tracebacks.install()",
        "shell.user_ns['call'] = call",
        "shell.run_cell('call()')",
    )
    assert "layers.py" not in shown
    assert "weight expects 4" in shown
    assert LAST in shown


def test_errors_are_as_before_when_they_have_been_shown() -> None:
    """For debuggers, and for whoever catches them."""
    with pytest.raises(ValueError, match="which it is multiplied with, has 2") as caught:
        paddle.matmul(paddle.ones([2, 3]), paddle.ones([2, 3]))
    error = caught.value
    before = traceback.format_exception(error)
    with fold_tracebacks(error):
        assert len(traceback.format_exception(error)) < len(before)
    assert traceback.format_exception(error) == before
    assert not hasattr(error, "__notes__")
