"""What editors and type checkers know: methods of tensors, arguments of layers; scripts pass mypy's strict mode."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import argosy as paddle
from argosy.api.tensor_stub import PLACE, tensor_stub

EXAMPLES = Path(__file__).parents[3] / "examples"
CHECKED = {
    "quickstart": "data distributed generate progress train",
    "science": "allen_cahn beam burgers cavity fourier_operator heat helmholtz kdv lorenz neural_ode pinn schrodinger"
    " spectral wave",
    "scripts": "diffusion digits gan gpt graph images reinforcement speech text_lstm vae vit",
}
"""Examples that type checkers find nothing in, by folder."""

SCRIPT = """\
import argosy as paddle

x = paddle.ones([2, 3])
y: paddle.Tensor = x.mean(axis=0).sqrt().reshape([3, 1]).matmul(x) + 1
parts: paddle.Tensor = paddle.matmul(x, y, transpose_y=True)
x.mena()
paddle.nn.Conv2D(3, 4, kernel_size=3, padding=1)
paddle.nn.Conv2D(3, 4, kernle_size=3)
loader = paddle.io.DataLoader([1, 2, 3], batch_size=2)
paddle.nn.functional.relu(x, axes=1)
x.sum(keepdim="yes")


@paddle.jit.to_static(full_graph=True)
def step(a: paddle.Tensor) -> paddle.Tensor:
    return a * 2


step("text")
gradient: paddle.Tensor = paddle.grad([x.sum()], [x])[0]
"""
ERRORS = {6: "mena", 8: "kernle_size", 10: "axes", 11: "keepdim", 19: "step"}


def test_the_stub_of_methods_is_up_to_date() -> None:
    """It is what ``python -m argosy.api.stubs`` writes."""
    assert PLACE.read_text(encoding="utf-8") == tensor_stub()


@pytest.fixture(scope="module")
def mypy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path, Sequence[str]], str]:
    """What mypy says of scripts in a folder, as a user runs it: strictly, with no file of settings."""
    pytest.importorskip("mypy")
    cache = tmp_path_factory.mktemp("mypy")

    def run(folder: Path, names: Sequence[str]) -> str:
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={cache}"]
        done = subprocess.run(
            [*command, "--ignore-missing-imports", *names], cwd=folder, capture_output=True, text=True, check=False
        )
        assert not done.stderr
        return done.stdout

    return run


def test_mypy_tells_what_is_wrong(tmp_path: Path, mypy: Callable[[Path, Sequence[str]], str]) -> None:
    """In a user's script, by line; what is right passes."""
    (tmp_path / "script.py").write_text(SCRIPT)
    said = mypy(tmp_path, ["script.py"])
    found = {}
    for line in said.splitlines():
        if ": error: " in line:
            found[int(line.split(":")[1])] = line
    assert set(found) == set(ERRORS), said
    for line, word in ERRORS.items():
        assert word in found[line]


@pytest.mark.skipif(not EXAMPLES.exists(), reason="the examples are not part of the package")
@pytest.mark.parametrize("folder", sorted(CHECKED))
def test_examples_pass_mypys_strict_mode(folder: str, mypy: Callable[[Path, Sequence[str]], str]) -> None:
    """More than twenty of them."""
    said = mypy(EXAMPLES / folder, [f"{name}.py" for name in CHECKED[folder].split()])
    assert said.startswith("Success"), said


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
