"""The MPI communicator does across processes what threads do in one, and ends what would hang with an error."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from argosy_hwadapt import run_ranks

pytest.importorskip("mpi4py")
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:/usr/bin:/usr/local/bin")
FOLDER = Path(__file__).parent
PROGRAM = FOLDER / "collectives_program.py"
MORE_RANKS_THAN_CORES = {  # which Open MPI refuses unless told, in its versions' ways
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")


def _mpiexec(size, *command):
    """Run ranks of this Python; after a minute they are ended, all of them."""
    process = subprocess.Popen(
        [MPIEXEC, "-n", str(size), sys.executable, *map(str, command)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env={**os.environ, **MORE_RANKS_THAN_CORES},
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=3600)
    except subprocess.TimeoutExpired:
        process.terminate()  # mpiexec ends its ranks
        said, _ = process.communicate(timeout=3600)
        pytest.fail(f"not finished after a minute; said {said}")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, said


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_processes_compute_what_threads_do(size, tmp_path):
    """Every collective, message and split gives the bytes that the in-process communicator gives."""
    code, said = _mpiexec(size, PROGRAM, tmp_path)
    assert code == 0, said
    sys.path.insert(0, str(FOLDER))
    try:
        from collectives_program import program
    finally:
        sys.path.pop(0)
    for rank, expected in enumerate(run_ranks(program, size)):
        with np.load(tmp_path / f"{rank}.npz") as results:
            assert sorted(results) == sorted(expected)
            for name, value in expected.items():
                np.testing.assert_array_equal(results[name], value, err_msg=name)


@pytest.mark.parametrize(
    ("case", "everyone", "error", "parts"),
    [
        ("kinds", True, "CollectiveMismatch", ["ranks disagree: rank 0 calls all_reduce(", "rank 1 calls barrier()"]),
        ("sizes", True, "CollectiveMismatch", ["all_reduce(dtype=float32, size=2, op=sum)", "size=3, op=sum)"]),
        ("group_and_all", True, "CollectiveMismatch", ["rank 0 waits in all_reduce(", "rank 1 waits in barrier()"]),
        ("in_a_group", False, "CollectiveMismatch", ["rank 1 calls broadcast(", "rank 0 calls broadcast("]),
        ("message_and_collective", True, "CollectiveMismatch", ["rank 0 waits in recv(", "rank 1 waits in barrier()"]),
        ("circle", True, "CollectiveMismatch", ["rank 0 waits in recv(", "from=1", "rank 2 waits in recv("]),
        ("early_end", False, "RankFailure", ["rank 0 waits in all_gather(", "rank 1 has ended its program"]),
        ("early_end_before_a_message", False, "RankFailure", ["rank 0 waits in recv(", "rank 2 has ended its program"]),
        ("unlike_messages", False, "CollectiveMismatch", ["called send(dtype=float64, size=3", "float32, size=4"]),
        ("exception", False, "RankFailure", ["waits in barrier() at", "rank 1 has failed: ValueError: boom"]),
    ],
)  # fmt: skip
def test_ranks_that_disagree_get_an_error(case, everyone, error, parts):
    """What would hang under MPI ends with an error that names the calls and their lines, on every rank concerned."""
    code, said = _mpiexec(3, FOLDER / "disagreeing_program.py", case)
    assert code not in (0, None)
    reports = re.findall(r"\[(\d)\] (\w+): ([^[]*)", said)
    assert len(reports) == 3 if everyone else reports, said
    assert {kind for _, kind, _ in reports} == {error}
    assert all(part in reports[0][2] for part in parts), said
    assert "disagreeing_program.py:" in reports[0][2]


@pytest.mark.parametrize("case", ["killed", "killed_in_a_reduction"])
def test_a_killed_rank_ends_the_others(case):
    """mpiexec ends ranks that wait for a process that was killed, all of them, and says which signal it was."""
    code, said = _mpiexec(3, FOLDER / "disagreeing_program.py", case)
    assert "with a name: {" not in said
    assert code not in (0, None)
    pids = [int(pid) for pid in re.findall(r"process (\d+)", said)]
    assert len(pids) == 3
    assert "9" in re.sub(r"process \d+", "", said)
    deadline = time.monotonic() + 3600
    while left := [pid for pid in pids if _runs(pid)]:
        assert time.monotonic() < deadline, f"ranks {left} are left"
        time.sleep(0.02)


def _runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_computing_and_sending_are_not_mistaken_for_a_hang():
    """A rank that computes for long, and messages larger than MPI's buffers, also one sent as a last act."""
    code, said = _mpiexec(3, FOLDER / "disagreeing_program.py", "slow")
    assert (code, said.split()) == (0, ["999999"] * 3)
