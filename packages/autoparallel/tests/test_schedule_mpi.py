"""Lists over MPI: the same bits as in one thread; a rank that raises or is killed ends all."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:/usr/bin:/usr/local/bin")
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")
OVERSUBSCRIBED = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def _start(size, *case):
    command = [sys.executable, str(Path(__file__).parent / "lists_over_mpi.py"), *case]
    return subprocess.Popen(
        [MPIEXEC, "-n", str(size), *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, **OVERSUBSCRIBED},
    )  # fmt: skip


def _run(size, *case):
    started = _start(size, *case)
    said, _ = started.communicate()
    return started.returncode, said


@pytest.mark.parametrize("size", [2, 4])
def test_a_pipeline_over_mpi_has_the_bits_of_one_thread(size):
    """All that is left on every rank is equal."""
    code, said = _run(size, "exact")
    assert code == 0, said
    assert said.count("equal") == size


def test_a_rank_that_raises_ends_all():
    """Its instruction is named; nobody hangs and no process is left."""
    code, said = _run(3, "raise")
    assert re.search(r"\[1\] rank 1, instruction \d+: run backward_input\[1, 2\]: ArithmeticError: no gradient", said)
    assert code != 0
    _assert_ended(said)


def test_a_rank_that_is_killed_in_any_instruction_ends_all():
    """Before a message and after it, within rounds, at the end."""
    for started in [_start(3, "kill", number) for number in ("1", "4", "11", "24")]:
        said, _ = started.communicate()
        assert started.returncode in (9, 137), said
        _assert_ended(said)


def _assert_ended(said):
    pids = [int(pid) for pid in re.findall(r"process (\d+)", said)]
    assert len(pids) == 3, said
    while any(_runs(pid) for pid in pids):
        time.sleep(0.02)


def _runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
