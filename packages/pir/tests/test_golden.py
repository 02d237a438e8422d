"""Each file in golden/ holds a program, the pipeline to run, and the program that should come out.

Write a new file with only the first part and run with ARGOSY_UPDATE_GOLDEN=1 to add the second; then read it.
"""

import os
from pathlib import Path

import pytest

from argosy_pir import Program, print_program
from argosy_pir.passes import PassManager

FILES = sorted((Path(__file__).parent / "golden").glob("*.pir"))
SEPARATOR = "// ----- becomes\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_pass_gives_the_golden_text(path):
    """The pipeline turns the first program of the file into the second, and then has nothing left to do."""
    before, _, after = path.read_text("utf-8").partition(SEPARATOR)
    pipeline = before.partition("\n")[0].removeprefix("// pipeline: ")
    program = Program.parse(before, path.name)
    assert PassManager(pipeline).run(program)
    if os.environ.get("ARGOSY_UPDATE_GOLDEN"):
        path.write_text(f"{before.rstrip()}\n{SEPARATOR}{print_program(program)}", "utf-8")
    else:
        assert print_program(program) == after
    assert not PassManager(pipeline).run(program)
