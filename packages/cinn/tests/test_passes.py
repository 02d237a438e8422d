"""Each file in golden/ is a pass's golden file, see :mod:`argosy_pir.testing`; the list of passes."""

import os
import re
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest
from programs import build

from argosy_cinn import CinnCompiler
from argosy_cinn.pipeline import lowering_passes
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_pir import Program
from argosy_pir.__main__ import main
from argosy_pir.passes import parse_pipeline, print_pipeline
from argosy_pir.testing import check_golden, check_passes

FILES = sorted((Path(__file__).parent / "golden").glob("*.pir"))
PASSES = lowering_passes(Target.from_name("haswell"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_pass_gives_the_golden_text(path):
    """The pipeline turns the first program of the file into the second, and then has nothing left to do."""
    check_golden(path, update="ARGOSY_UPDATE_GOLDEN" in os.environ)


def test_every_pass_has_a_golden_text_a_docstring_and_an_entry_point():
    """Of this package's, which are those of the lists."""
    check_passes("argosy_cinn", FILES)
    every = (*PASSES, *lowering_passes(Target.from_name("haswell"), "work-groups"))
    ours = {type(step) for step in every if type(step).__module__.startswith("argosy_cinn.")}
    declared = (point for point in entry_points(group="argosy.passes") if point.module.startswith("argosy_cinn."))
    assert {point.load() for point in declared} == ours


def test_the_list_prints_as_text_that_parses_back():
    """With the options that say what passes know of a machine."""
    text = print_pipeline(PASSES)
    assert "expand-transforms,split-complex,widen-narrow" in text
    assert tuple(parse_pipeline(text)) == PASSES
    assert "expand-transforms{vector-bits=512}" in print_pipeline(lowering_passes(Target.from_name("znver4")))


def test_a_dump_and_the_compiler_show_the_same_list(tmp_path, monkeypatch):
    """Each pass leaves its result in the dump, under its number and name; the last one's is what is planned."""
    monkeypatch.setenv("ARGOSY_DUMP", str(tmp_path))
    x = np.ones((2, 3), np.float32)
    CinnCompiler().compile(build(lambda x: prim.neg(prim.neg(prim.tanh(x))), [x]), device("cpu"))
    (folder,) = tmp_path.glob("*.cinn")
    files = sorted((folder / "passes").iterdir())
    listed = [step.name for step in parse_pipeline(CinnCompiler().passes())]
    assert [re.sub(r"^\d+-", "", path.stem) for path in files] == ["input", *listed]
    assert Program.parse(files[-1].read_text("utf-8")).block.first.name == "prim.tanh"
    assert str(Program.parse(files[-1].read_text("utf-8"))) == (folder / "simplified.pir").read_text("utf-8")


def test_any_pass_runs_on_a_file_from_the_command_line(tmp_path, capsys):
    """As the head of each dumped file says."""
    path = tmp_path / "program.pir"
    path.write_text(str(build(lambda x: prim.neg(prim.neg(x)), [np.ones(3, np.float32)])), "utf-8")
    assert main(["opt", str(path), "-p", "simplify,dce"]) == 0
    assert "prim.neg" not in capsys.readouterr().out
