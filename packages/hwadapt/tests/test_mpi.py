"""The MPI communicator does across processes what threads do in one, on the same program."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from argosy_hwadapt import run_ranks

pytest.importorskip("mpi4py")
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:/usr/bin:/usr/local/bin")
PROGRAM = Path(__file__).parent / "collectives_program.py"


@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")
@pytest.mark.parametrize("size", [1, 2, 3])
def test_processes_compute_what_threads_do(size, tmp_path):
    """Every collective, message and split gives the bytes that the in-process communicator gives."""
    subprocess.run(
        [MPIEXEC, "-n", str(size), sys.executable, str(PROGRAM), str(tmp_path)],
        check=True,
        timeout=60,
        capture_output=True,
    )
    sys.path.insert(0, str(PROGRAM.parent))
    try:
        from collectives_program import program
    finally:
        sys.path.pop(0)
    for rank, expected in enumerate(run_ranks(program, size)):
        with np.load(tmp_path / f"{rank}.npz") as results:
            assert sorted(results) == sorted(expected)
            for name, value in expected.items():
                np.testing.assert_array_equal(results[name], value, err_msg=name)
