"""``argosy explain script.py:function``."""

import subprocess
import sys

import pytest

from argosy.cli.main import main

pytest.importorskip("argosy_cinn")

SCRIPT = """
import argosy as paddle

net = paddle.nn.Linear(16, 4)


def step(x, classes):
    loss = paddle.nn.functional.cross_entropy(net(x), classes)
    loss.backward()
    return loss


if __name__ == "__main__":
    raise SystemExit("a script that is explained is not run")
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", ["", *sys.path])
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return str(path)


def test_a_function_is_shown_and_saved(script, tmp_path, capsys):
    page = tmp_path / "page.html"
    given = ["explain", f"{script}:step", "--input", "float32[8,16]", "--input", "int64[8]", "--save", str(page)]
    assert main(given) == 0
    shown = capsys.readouterr().out
    assert "step: one program" in shown
    assert "train.py:8" in shown
    assert "<table>" in page.read_text()


def test_the_package_runs_as_the_command(script):
    command = [sys.executable, "-m", "argosy", "explain", f"{script}:nothing"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "has no 'nothing'" in ended.stderr


def test_a_method_is_shown_without_running_it(script, capsys):
    assert main(["explain", f"{script}:net.forward", "--input", "float32[2,16]", "--no-measure"]) == 0
    assert "kernel calls" in capsys.readouterr().out


@pytest.mark.parametrize(("function", "tensor", "message"), [
    ("{}:train", "8", "has no 'train'; it has net, step"),
    ("{}", "8", "names no function"),
    ("{}:step", "float32[8", "--input float32[8: expected a dtype and sizes"),
    ("nowhere.at.all:step", "int64[8]", "No module named"),
    ("{}x.py:step", "int64[8]", "No such file"),
])  # fmt: skip
def test_what_is_not_there_is_named(script, function, tensor, message, capsys):
    assert main(["explain", function.format(script), "--input", tensor]) == 2
    assert message in capsys.readouterr().err
