"""What type checkers and editors know of argosy where it is installed from its wheels."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import pytest
from workspace import ROOT

from argosy.api.addresses import ADDRESSES
from argosy.api.stubs import MODULES, path

CHECKED = {
    "quickstart": "data distributed generate progress train",
    "science": "allen_cahn beam burgers cavity fourier_operator heat helmholtz kdv lorenz neural_ode pinn schrodinger"
    " spectral wave",
    "scripts": "diffusion digits gan gpt graph images reinforcement speech text_lstm vae vit",
}
"""Examples that type checkers find nothing in, by folder."""

SCRIPT = """\
import argosy as paddle
import argosy.linalg
from argosy.nn.layer.conv import Conv2D

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
layer: paddle.nn.Layer = Conv2D(3, 4, kernel_size=paddle.linalg.norm(x).shape[0])
Conv2D(3, 4, 3, padd=1)
"""
ERRORS = {8: "mena", 10: "kernle_size", 12: "axes", 13: "keepdim", 21: "step", 24: "padd"}


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the wheels; what is not ours comes from the environment of the tests."""
    home = tmp_path_factory.mktemp("editors") / "home"
    wheels = sorted(map(str, dist.glob("*.whl")))
    for command in (
        ["venv", "--python", sys.executable, home],
        ["pip", "install", "--python", home, "--no-deps", "--no-index", *wheels],
    ):
        subprocess.run([sys.executable, "-m", "uv", *map(str, command)], capture_output=True, check=True)
    (site,) = home.glob("[Ll]ib/**/site-packages")
    # A file of paths is not read in a folder that such a file names: the packages of this clone stay out of sight.
    (site / "rest.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return home / "bin" / "python"


def test_the_wheel_has_one_package_with_all_stubs(dist: Path) -> None:
    """A second one, ``argosy-stubs``, would stand before the first for tools that do not merge the two: each name
    without a stub would be an error."""
    (wheel,) = dist.glob("argosy-0*.whl")
    names = {Path(name) for name in ZipFile(wheel).namelist()}
    assert {name.parts[0] for name in names if "dist-info" not in name.parts[0]} == {"argosy"}
    assert Path("argosy/py.typed") in names
    package = ROOT / "packages" / "meta" / "src"
    assert {path(module).relative_to(package) for module in MODULES} <= names
    for module in ADDRESSES:
        parts = Path(*module.split("."))
        assert {parts.with_suffix(".pyi"), parts / "__init__.pyi"} & names, module


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_tell_what_is_wrong(checker: str, installed: Path, tmp_path: Path) -> None:
    """Names of all kinds are known: of the package, of a module without a file, of a module within it."""
    (tmp_path / "script.py").write_text(SCRIPT)
    said = _check(checker, installed, tmp_path, ["script.py"])
    found = {int(line.split("script.py:")[1].split(":")[0]): line for line in said.splitlines() if "error:" in line}
    assert set(found) == set(ERRORS), said
    for line, word in ERRORS.items():
        assert word in found[line]


@pytest.mark.exhaustive
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_examples_pass_type_checkers(checker: str, installed: Path) -> None:
    """More than twenty: mypy's strict mode and pyright's basic one, which is that of editors."""
    for folder, names in CHECKED.items():  # names in several folders are the same
        said = _check(checker, installed, ROOT / "examples" / folder, [f"{name}.py" for name in names.split()])
        assert "Success" in said or "0 errors" in said, said


def _check(checker: str, python: Path, folder: Path, names: list[str]) -> str:
    if checker == "mypy":
        pytest.importorskip("mypy")
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-executable", str(python)]
        command += [f"--cache-dir={python.parents[1] / 'mypy'}", "--ignore-missing-imports"]
    else:
        program = shutil.which("pyright")
        if program is None:
            pytest.skip("pyright is not installed")
        command = [program, "--pythonpath", str(python)]
    return subprocess.run([*command, *names], cwd=folder, capture_output=True, text=True, check=False).stdout


def test_completion_knows_modules_with_and_without_a_file(installed: Path) -> None:
    """By jedi, as editors ask it."""
    jedi = pytest.importorskip("jedi")
    place = jedi.create_environment(str(installed.parents[1]), safe=False)
    for module, wanted in (
        ("argosy", {"matmul", "nn", "Tensor"}),
        ("argosy.linalg", {"norm", "svd"}),
        ("argosy.nn.layer.conv", {"Conv2D"}),
    ):
        code = f"import {module}\n{module}."
        assert wanted <= {each.name for each in jedi.Script(code, environment=place).complete(2, len(module) + 1)}
