"""What goes wrong in the middle of sharded computation: both lines are named, and nothing of the job is left."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import argosy.distributed as dist
from argosy.distributed.debug import run_ranks
from argosy.distributed.launch.process_manager import NoMpi, command
from argosy_hwadapt.errors import CollectiveMismatch


def _has_mpi():
    try:
        return bool(command(2))
    except NoMpi:
        return False


needs_mpi = pytest.mark.skipif(not _has_mpi(), reason="no MPI: argosy-hwadapt[mpi] is not installed")
MARK = "ARGOSY_TEST_JOB"  # in the environment of every process of a job

# Each rank trains on its rows; with all ranks at work rank 0 writes down all processes of the job, mpiexec's included.
TRAINING = f"""
import os, pathlib
import argosy as paddle
import argosy.distributed as dist

def processes():
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if b"{MARK}=" + os.environ["{MARK}"].encode() in environment.split(b"\\0"):
            yield entry.name

dist.init_parallel_env()
mesh = dist.ProcessMesh([0, 1, 2], ["x"])
w = dist.shard_tensor(paddle.ones([5, 4]), mesh, [dist.Shard(0)], stop_gradient=False)
x = dist.shard_tensor(paddle.ones([7, 5]), mesh, [dist.Shard(1)])
for step in range(4):
    if step == 2:
        dist.barrier()
        if dist.get_rank() == 0:
            pathlib.Path("pids").write_text(" ".join(processes()))
        dist.barrier()
        if dist.get_rank() == 1:
            os.kill(os.getpid(), 9)
    loss = paddle.tanh(paddle.matmul(x, w)).sum()
    loss.backward()
    print(step, float(loss), flush=True)
"""


@needs_mpi
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in /proc")
def test_nothing_is_left_of_a_job_whose_rank_is_killed_in_a_step(tmp_path):
    """The launcher names rank and signal, and of all processes, mpiexec and its helpers included, none runs on."""
    (tmp_path / "train.py").write_text(TRAINING)
    done = subprocess.run(
        [sys.executable, "-m", "argosy.distributed.launch", "--nproc_per_node", "3", "train.py"],
        cwd=tmp_path, env={**os.environ, MARK: str(tmp_path)}, capture_output=True, text=True, timeout=3600,
        check=False,
    )  # fmt: skip
    assert done.returncode == 137
    assert "rank 1 was killed by SIGKILL" in done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["0", "1"]  # the steps before
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) >= 5  # the launcher, mpiexec, three ranks
    _assert_ended(pids)


PIPELINE = """
import os
import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed import fleet
from argosy.distributed.fleet import meta_parallel as parts

strategy = fleet.DistributedStrategy()
strategy.hybrid_configs = {"pp_degree": 2}
strategy.pipeline_configs = {"accumulate_steps": 4, "micro_batch_size": 2}
fleet.init(is_collective=True, strategy=strategy)
net = parts.PipelineLayer([nn.Linear(4, 4) for _ in range(2)], 2, loss_fn=nn.MSELoss())
model, x = fleet.distributed_model(net), paddle.ones([8, 4])

def killing(run, calls=[]):
    def backward(*given):
        calls.append(1)
        if len(calls) == 2:
            os.kill(os.getpid(), 9)
        return run(*given)
    return backward

for step in range(3):
    model.forward_backward_pipeline([x, x])
    if step == 1 and dist.get_rank() == 1:
        functions = list(model._pipeline._steps.values())[-1].functions
        functions["backward", 1] = killing(functions["backward", 1])
"""


@needs_mpi
def test_a_rank_that_is_killed_in_an_instruction_ends_its_pipeline(tmp_path):
    """In the backward pass of the second microbatch, for whose gradient the other stage waits."""
    (tmp_path / "train.py").write_text(PIPELINE)
    done = subprocess.run(
        [sys.executable, "-m", "argosy.distributed.launch", "--nproc_per_node", "2", "train.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=3600, check=False,
    )  # fmt: skip
    assert done.returncode == 137
    killed = r"rank 1 was killed by SIGKILL in instruction \d+: run backward\[1, 1\].*; the job of 2 ranks was ended"
    assert re.search(killed, done.stderr), done.stderr


def _assert_ended(pids):
    deadline = time.monotonic() + 3600
    while left := [pid for pid in pids if _runs(pid)]:
        assert time.monotonic() < deadline, f"processes {left} are left"
        time.sleep(0.05)


def _runs(pid):
    """Whether the process is there, as a zombie, too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _disagree(rank):
    """Rank 0 gathers a tensor that rank 1 splits otherwise; the two lines, in that order."""
    x = dist.shard_tensor(np.ones((4, 4), np.float32), dist.ProcessMesh([0, 1]), [dist.Shard(0)])
    if rank == 0:
        return dist.reshard(x, x.process_mesh, [dist.Replicate()])
    return dist.reshard(x, x.process_mesh, [dist.Shard(1)])


FIRST = _disagree.__code__.co_firstlineno + 4
SAID = r"rank 0 calls all_gather\(.*\) at .*:(\d+); rank 1 calls all_to_all\(.*\) at .*:(\d+)"


def test_layouts_that_ranks_disagree_on_name_both_lines():
    """As threads: the error is that of the collectives, at the lines that changed the layouts."""
    with pytest.raises(CollectiveMismatch, match=SAID) as caught:
        run_ranks(lambda: _disagree(dist.get_rank()), 2)
    assert re.search(SAID, str(caught.value)).groups() == (str(FIRST), str(FIRST + 1))


@needs_mpi
def test_processes_that_disagree_on_layouts_name_both_lines(tmp_path):
    """As processes, too."""
    lines = [
        "import numpy as np", "import argosy.distributed as dist", "dist.init_parallel_env()",
        "mesh = dist.ProcessMesh([0, 1])",
        "x = dist.shard_tensor(np.ones((4, 4), np.float32), mesh, [dist.Shard(0)])", "if dist.get_rank() == 0:",
        "    dist.reshard(x, mesh, [dist.Replicate()])", "else:", "    dist.reshard(x, mesh, [dist.Shard(1)])",
    ]  # fmt: skip
    (tmp_path / "script.py").write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "argosy.distributed.launch", "--nproc_per_node", "2", "script.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=3600, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    found = re.search(SAID, done.stderr + "".join(p.read_text() for p in (tmp_path / "log").glob("*")))
    assert found is not None, done.stderr
    assert found.groups() == ("7", "9")
