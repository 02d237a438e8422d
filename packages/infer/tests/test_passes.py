"""Each file in golden/ is a pass's golden file, see :mod:`argosy_pir.testing`."""

import os
from pathlib import Path

import pytest

import argosy_phi_ops.passes.decompose  # noqa: F401  (registers its pass)
from argosy_infer.errors import IncrementalError
from argosy_pir import Program
from argosy_pir.passes import PassManager
from argosy_pir.testing import check_golden, check_passes

FILES = sorted((Path(__file__).parent / "golden").glob("*.pir"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_pass_gives_the_golden_text(path):
    """The pipeline turns the first program of the file into the second, which is valid."""
    check_golden(path, again=False, update="ARGOSY_UPDATE_GOLDEN" in os.environ)


def test_every_pass_has_a_golden_text_a_docstring_and_an_entry_point():
    """Of this package's."""
    check_passes("argosy_infer", FILES)


def test_an_incremental_program_is_refused():
    """The pass looks at what it is given."""
    program = Program.parse(FILES[0].read_text("utf-8").rpartition("// ----- becomes")[2])
    with pytest.raises(IncrementalError, match="expected integer tokens"):
        PassManager("make-incremental").run(program)
