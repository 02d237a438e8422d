"""Programs of files that other tools wrote, by importers that installed distributions name."""

import sys

import numpy as np
import pytest

from argosy_infer import Predictor, import_program, save_program
from argosy_infer.errors import ProgramFileError
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir.builder import Builder
from argosy_pir.program import Program
from argosy_pir.types import TensorType

LIBRARY = """
from pathlib import Path
from argosy_infer import LoadedProgram, load_program
class Scaled:
    def accepts(self, path):
        return path.endswith(".scaled")
    def load(self, path):
        base = load_program(Path(path).read_text())
        return LoadedProgram(base.program, {n: 2 * a for n, a in base.states.items()})
"""


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """Names importers of a library as an installed distribution does."""

    def install(*names):
        info = tmp_path / "site" / "scaled-1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / "scaled_files.py").write_text(LIBRARY)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: scaled\nVersion: 1.0\n")
        lines = "".join(f"{name} = scaled_files:Scaled\n" for name in names)
        (info / "entry_points.txt").write_text("[argosy.importers]\n" + lines)
        monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])

    return install


def test_files_are_read_by_the_importer_that_accepts_them(distribution, tmp_path):
    """By the path or by name; exports are loaded as they are; what nobody or several accept is named."""
    program, type = Program("product"), TensorType((3,), "float32")
    factors = program.add_input(type, "x"), program.add_state("y", type).argument
    with emit_at(Builder.at_end(program.block)):
        program.set_outputs([prim.mul(*factors)], [factors[1]])
    save_program(program, {"y": np.arange(3, dtype=np.float32)}, tmp_path / "model")
    (tmp_path / "a.scaled").write_text(str(tmp_path / "model"))
    x = np.ones(3, np.float32)
    (want,) = Predictor(import_program(tmp_path / "model"), "reference").run(x)
    with pytest.raises(ProgramFileError, match=r"no importer accepts .*a\.scaled"):
        import_program(tmp_path / "a.scaled")
    distribution("scaled")
    for name in (None, "scaled"):
        (got,) = Predictor(import_program(tmp_path / "a.scaled", name), "reference").run(x)
        np.testing.assert_array_equal(got, 2 * want)
    with pytest.raises(ProgramFileError, match=r"no importer is named 'nnef'; installed: .*scaled"):
        import_program(tmp_path / "a.scaled", "nnef")
    with pytest.raises(ProgramFileError, match="does not exist, nor does"):
        import_program(tmp_path / "none")
    distribution("scaled", "scaled-too")
    with pytest.raises(ProgramFileError, match="scaled and scaled-too accept"):
        import_program(tmp_path / "a.scaled")
