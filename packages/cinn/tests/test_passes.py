"""Each file in golden/ holds a program, the pipeline to run, and the program that should come out.

Write a new file with only the first part and run with ARGOSY_UPDATE_GOLDEN=1 to add the second; then read it.
"""

import inspect
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
from argosy_pir import Program, print_program
from argosy_pir.__main__ import main
from argosy_pir.passes import PassManager, get_pass, parse_pipeline, print_pipeline

FILES = sorted((Path(__file__).parent / "golden").glob("*.pir"))
SEPARATOR = "// ----- becomes\n"
PASSES = lowering_passes(Target.named("haswell"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_pass_gives_the_golden_text(path):
    """The pipeline turns the first program of the file into the second, and then has nothing left to do."""
    before, _, after = path.read_text("utf-8").partition(SEPARATOR)
    pipeline = before.partition("\n")[0].removeprefix("// pipeline: ")
    program = Program.parse(before, path.name)
    assert PassManager(pipeline).run(program)
    if os.environ.get("ARGOSY_UPDATE_GOLDEN"):
        path.write_text(f"{before.rstrip()}\n{SEPARATOR}{print_program(program, False)}", "utf-8")
    else:
        assert print_program(program, False) == after
    assert not PassManager(pipeline).run(program)


def test_every_pass_has_a_golden_text_a_docstring_and_an_entry_point():
    """Of those that are this package's: an entry point finds each by its name, on the command line, too."""
    ours = {step.name: type(step) for step in PASSES if type(step).__module__.startswith("argosy_cinn.")}
    ran = {name for path in FILES for name in re.findall(r"[a-z-]+", path.read_text("utf-8").partition("\n")[0])}
    assert ours.keys() <= ran
    for name, cls in ours.items():
        assert get_pass(name) is cls
        assert inspect.getdoc(cls)
    declared = (point for point in entry_points(group="argosy.passes") if point.module.startswith("argosy_cinn."))
    found = {point.name: (point.module, point.attr) for point in declared}
    assert found == {name: (cls.__module__, cls.__name__) for name, cls in ours.items()}


def test_the_list_prints_as_text_that_parses_back():
    """With the options that say what passes know of a machine."""
    text = print_pipeline(PASSES)
    assert "expand-transforms,split-complex,widen-narrow" in text
    assert tuple(parse_pipeline(text)) == PASSES
    assert "expand-transforms{vector-bits=512}" in print_pipeline(lowering_passes(Target.named("znver4")))


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
