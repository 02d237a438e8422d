"""Each file in golden/ holds a program, the pipeline to run, and the program that should come out.

Write a new file with only the first part and run with ARGOSY_UPDATE_GOLDEN=1 to add the second; then read it.
"""

import inspect
import os
from pathlib import Path

import pytest

import argosy_phi_ops.passes.decompose  # noqa: F401  (registers its pass)
from argosy_infer.errors import IncrementalError
from argosy_infer.incremental import MakeIncremental
from argosy_pir import Program, print_program
from argosy_pir.passes import PassManager, get_pass

FILES = sorted((Path(__file__).parent / "golden").glob("*.pir"))
SEPARATOR = "// ----- becomes\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_pass_gives_the_golden_text(path):
    """The pipeline turns the first program of the file into the second, which is valid."""
    before, _, after = path.read_text("utf-8").partition(SEPARATOR)
    pipeline = before.partition("\n")[0].removeprefix("// pipeline: ")
    program = Program.parse(before, path.name)
    assert PassManager(pipeline).run(program)
    if os.environ.get("ARGOSY_UPDATE_GOLDEN"):
        path.write_text(f"{before.rstrip()}\n{SEPARATOR}{print_program(program, False)}", "utf-8")
    else:
        assert print_program(program, False) == after


def test_the_pass_is_found_by_name_and_explained():
    """A program that is incremental already is refused."""
    assert get_pass("make-incremental") is MakeIncremental
    assert inspect.getdoc(MakeIncremental)
    program = Program.parse(FILES[0].read_text("utf-8").partition(SEPARATOR)[2])
    with pytest.raises(IncrementalError, match="expected integer tokens"):
        PassManager("make-incremental").run(program)
