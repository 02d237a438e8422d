"""The launcher: ranks start, print and end together, and whatever goes wrong ends the job with rank and cause."""

import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from argosy.distributed.launch.arguments import parse
from argosy.distributed.launch.process_manager import NoMpi, command


def _has_mpi():
    try:
        return bool(command(2))
    except NoMpi:
        return False


needs_mpi = pytest.mark.skipif(not _has_mpi(), reason="no MPI: argosy-hwadapt[mpi] is not installed")
HEAD = "import os, sys, time\nimport argosy as paddle\nimport argosy.distributed as dist\n"


def _launch(folder: Path, script: str, *options: str, module=("-m", "argosy.distributed.launch")):
    path = folder / "script.py"
    path.write_text(HEAD + script)
    return subprocess.run(
        [sys.executable, *module, "--log_dir", str(folder / "log"), *options, str(path)],
        capture_output=True, text=True, timeout=3600, check=False, cwd=folder,
    )  # fmt: skip


@needs_mpi
def test_ranks_communicate_print_and_log(tmp_path):
    """Two ranks reduce over MPI; the terminal shows rank 0, each rank has a log; Paddle's variables are set."""
    script = (
        "x = paddle.full([3], float(dist.get_rank() + 1))\n"
        "dist.all_reduce(x)\n"
        "group = dist.new_group([1])\n"
        "print('rank', dist.get_rank(), 'of', dist.get_world_size(), x.tolist(), group.is_member(),\n"
        "      os.environ['PADDLE_TRAINER_ID'], __name__, sys.argv[1:])\n"
    )
    done = _launch(tmp_path, script, "--nproc_per_node", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "rank 0 of 2 [3.0, 3.0, 3.0] False 0 __main__ []\n"
    assert (tmp_path / "log" / "workerlog.1").read_text() == "rank 1 of 2 [3.0, 3.0, 3.0] True 1 __main__ []\n"


@needs_mpi
def test_ranks_of_several_machines_are_told_where_they_are(tmp_path):
    """Names of one machine: ranks beside each other first; all logs come together, and a rank that fails is named with
    its machine."""
    script = (
        "names = ('PADDLE_LOCAL_RANK', 'PADDLE_LOCAL_SIZE', 'PADDLE_NNODES', 'PADDLE_CURRENT_ENDPOINT')\n"
        "x = paddle.ones([1])\n"
        "dist.all_reduce(x)\n"
        "print(x.item(), *[os.environ[name] for name in names], flush=True)\n"
        "dist.barrier()\n"
        "if dist.get_rank() == 2:\n"
        "    os.kill(os.getpid(), 9)\n"
        "dist.barrier()\n"
    )
    (tmp_path / "hosts").write_text("localhost:2  # slots\n\n127.0.0.1\n")
    called = ("-c", "import argosy.distributed as dist; dist.launch()")
    done = _launch(tmp_path, script, "--hostfile", str(tmp_path / "hosts"), "--nproc_per_node", "2", module=called)
    assert done.returncode == 137
    assert "rank 2 on 127.0.0.1 was killed by SIGKILL; the job of 4 ranks was ended" in done.stderr
    said = [(tmp_path / "log" / f"workerlog.{rank}").read_text().splitlines()[0] for rank in range(4)]
    ends = ["localhost:6070", "localhost:6071", "127.0.0.1:6070", "127.0.0.1:6071"]
    assert said == [f"4.0 {rank % 2} 2 2 {end}" for rank, end in enumerate(ends)]
    assert {path.name for path in (tmp_path / "log").iterdir()} == {f"workerlog.{rank}" for rank in range(4)}


SRUN = """#!/bin/sh
# srun as far as the launcher uses it: tasks of a step by Hydra, with the variables that Slurm gives them
echo "$@" > srun.said
while [ "${1#--}" != "$1" ]; do
    case $1 in --ntasks=*) tasks=${1#*=};; --ntasks-per-node=*) each=${1#*=};; --nodelist=*) hosts=${1#*=};; esac
    shift
done
[ "$tasks" = 3 ] && { echo "srun: error: Unable to create step" >&2; exit 1; }
unset SLURM_JOB_ID SLURM_JOB_NODELIST
exec MPIEXEC -n $tasks -ppn $each -hosts $hosts sh -c '
    export SLURM_PROCID=$PMI_RANK SLURM_STEP_NUM_TASKS=$PMI_SIZE SLURMD_NODENAME=$PMI_HOSTNAME; exec "$@"' task "$@"
"""


@pytest.fixture
def allocation(tmp_path, monkeypatch):
    """An allocation of Slurm with two machines, which are two names of this one."""
    for name, text in (
        ("srun", SRUN.replace("MPIEXEC", command(2)[0])),
        ("scontrol", "#!/bin/sh\necho localhost\necho 127.0.0.1\n"),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.delenv("SLURM_MPI_TYPE", raising=False)


@needs_mpi
def test_ranks_start_by_srun_within_an_allocation(tmp_path, allocation):
    """Its machines in its order, whatever order they are named in; a rank that fails is named with its machine."""
    script = (
        "x = paddle.ones([1])\n"
        "dist.all_reduce(x)\n"
        "print(x.item(), *[os.environ[name] for name in ('SLURM_PROCID', 'PADDLE_LOCAL_RANK', 'PADDLE_NNODES')])\n"
        "dist.barrier()\n"
        "assert dist.get_rank() != 1, 'rank one'\n"
    )
    done = _launch(tmp_path, script, "--hosts", "127.0.0.1,localhost")
    assert done.returncode == 1
    assert done.stdout == "2.0 0 0 2\n"
    assert "rank 1 on 127.0.0.1 failed: AssertionError: rank one" in done.stderr
    asked = (tmp_path / "srun.said").read_text().split()[:7]
    assert asked == [
        "--ntasks=2", "--nodes=2", "--ntasks-per-node=1", "--distribution=block", "--kill-on-bad-exit=1", "--mpi=pmi2",
        "--nodelist=localhost,127.0.0.1",
    ]  # fmt: skip


@needs_mpi
def test_what_srun_refuses_is_shown(tmp_path, allocation):
    """More machines than the allocation has, others than it has, a step that cannot be: a message, and no waiting."""
    for options, code, said in (
        (["--nnodes", "3"], 2, "--nnodes 3: the allocation of Slurm has 2 machines: localhost, 127.0.0.1"),
        (["--hosts", "c"], 2, "--hosts: c are not in the allocation of Slurm"),
        (["--nproc_per_node", "3"], 1, "srun ended with code 1, and no rank said why\nsrun: error: Unable to create"),
    ):
        done = _launch(tmp_path, "", *options)
        assert (done.returncode, done.stdout) == (code, "")
        assert said in done.stderr


@needs_mpi
def test_the_process_manager_is_chosen_or_found(monkeypatch, allocation):
    """Within an allocation srun, unless another is asked for; how it meets MPI is the cluster's to say."""
    assert [parse([*given, "a.py"], "launch").launcher for given in ([], ["--launcher", "hydra"])] == ["srun", "hydra"]
    monkeypatch.setenv("SLURM_MPI_TYPE", "cray_shasta")
    assert not any(word.startswith("--mpi") for word in command(2, manager="srun"))
    assert command(2, manager="hydra")[0].endswith("mpiexec.hydra")
    monkeypatch.setenv("ARGOSY_MPIEXEC", "/opt/mpiexec")
    assert parse(["a.py"], "launch").launcher == "mpiexec"
    monkeypatch.delenv("SLURM_JOB_ID")
    assert parse(["a.py"], "launch").launcher == "mpiexec"


@needs_mpi
def test_meshes_of_ranks_that_were_dealt_out_in_turns_lie_within_machines(tmp_path):
    """Ranks 0 and 2 are on one machine: the last dimension has them beside each other, as fleet's groups have."""
    script = (
        "from argosy.distributed import fleet\n"
        "mesh = dist.auto_parallel.create_mesh([('dp', 2), ('mp', 2)])\n"
        "strategy = fleet.DistributedStrategy()\n"
        "strategy.hybrid_configs = {'dp_degree': 2, 'mp_degree': 2}\n"
        "fleet.init(is_collective=True, strategy=strategy)\n"
        "groups = fleet.get_hybrid_communicate_group()\n"
        "x = paddle.to_tensor([dist.get_rank()])\n"
        "dist.all_reduce(x, group=groups.get_model_parallel_group())\n"
        "made = [None] * 0\n"
        "dist.all_gather_object(made, (x.item(), groups.get_data_parallel_rank(), groups.get_model_parallel_rank()))\n"
        "if dist.get_rank() == 0: print(mesh.mesh.tolist(), made, fleet.node_num())\n"
    )
    (tmp_path / "script.py").write_text(HEAD + script)
    turns = [command(4)[0], "-hosts", "localhost,127.0.0.1", "-ppn", "1", "-n", "4", sys.executable, "script.py"]
    done = subprocess.run(turns, cwd=tmp_path, capture_output=True, text=True, timeout=3600, check=False)
    assert done.stdout == "[[0, 2], [1, 3]] [(2, 0, 0), (4, 1, 0), (2, 0, 1), (4, 1, 1)] 2\n", done.stderr


@needs_mpi
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system tells who is stopped on Linux")
def test_a_stopped_rank_is_named(tmp_path):
    """The others wait for it, and nobody else would say why; the job goes on when it does."""
    script = (
        "if dist.get_rank() == 1:\n"
        "    rank = os.getpid()\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(2)\n"
        "        os.kill(rank, 18)  # SIGCONT\n"
        "        os._exit(0)\n"
        "    os.kill(rank, 19)  # SIGSTOP\n"
        "dist.barrier()\n"
    )
    done = _launch(tmp_path, script, "--nproc_per_node", "2")
    assert done.returncode == 0
    assert re.fullmatch(r"launch: rank 1 \(process \d+\) is stopped by a signal, .*kill -CONT \d+.*\n", done.stderr)


@needs_mpi
@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("raise ValueError('boom')", 1, "rank 1 failed: ValueError: boom (exit code 1)"),
        ("sys.exit(7)", 7, "rank 1 failed: SystemExit(7)"),
        ("os.kill(os.getpid(), 9)", 137, "rank 1 was killed by SIGKILL"),
        ("dist.barrier()", 1, "all_reduce(dtype=float32, size=1, op=sum) at "),
        ("sys.exit()", 1, "rank 1 has ended its program"),
        ("dist.recv(paddle.ones([1]), 0)", 1, "recv(dtype=float32, size=1, from=0, tag=0) at "),
    ],
)
def test_a_failing_rank_ends_the_job(tmp_path, script, code, said):
    """Rank 0 waits in a collective while rank 1 fails: the job ends with rank 1's code, names it and the cause, and
    leaves no process.
    """
    whole = (
        "dist.init_parallel_env()\n"
        "open(f'pid{dist.get_rank()}', 'w').write(str(os.getpid()))\n"
        f"if dist.get_rank() == 1:\n    {script}\n"
        "dist.all_reduce(paddle.ones([1]))\n"
    )
    done = _launch(tmp_path, whole, "--devices", "0,1")
    assert done.returncode == code
    assert said in done.stderr
    _assert_gone(tmp_path)


@needs_mpi
def test_tensors_of_every_kind_are_communicated(tmp_path):
    """Views that are not contiguous, bfloat16, empty and 0-D tensors, among all ranks and in a group of two."""
    script = (
        "rank = dist.get_rank()\n"
        "pair = dist.new_group([0, 2])\n"
        "view = paddle.arange(6, dtype='float32').reshape([2, 3]).t()\n"
        "if pair.is_member(): dist.all_reduce(view, group=pair)\n"
        "narrow = paddle.full([3], 0.5 + rank, 'bfloat16')\n"
        "dist.all_reduce(narrow)\n"
        "parts = []\n"
        "dist.all_gather(parts, paddle.full([], rank, 'bfloat16'))\n"
        "nothing = paddle.zeros([0, 2])\n"
        "dist.all_reduce(nothing)\n"
        "dist.broadcast(nothing, 1)\n"
        "dist.send(view[1:2], (rank + 1) % 3)\n"
        "came = paddle.zeros([1, 2])\n"
        "dist.recv(came, (rank - 1) % 3)\n"
        "print(view.tolist(), narrow.tolist(), [float(p) for p in parts], list(nothing.shape), came.tolist())\n"
    )
    done = _launch(tmp_path, script, "--nproc_per_node", "3")
    assert (done.returncode, done.stderr) == (0, "")
    own, doubled = "[[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]", "[[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]"
    logs = [(tmp_path / "log" / f"workerlog.{rank}").read_text() for rank in range(3)]
    for rank, (view, came) in enumerate([(doubled, "[2.0, 8.0]"), (own, "[2.0, 8.0]"), (doubled, "[1.0, 4.0]")]):
        assert logs[rank] == f"{view} [4.5, 4.5, 4.5] [0.0, 1.0, 2.0] [0, 2] [{came}]\n"


@needs_mpi
def test_a_module_is_run_and_told_its_place(tmp_path):
    """-m runs a module of the folder one is in, with its arguments; names of the ranks are as asked; the second job's
    output follows the first's where that was asked for.
    """
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "first.py").write_text(
        "import os, sys\nprint(__name__, __package__, sys.argv[1:], *(os.environ['PADDLE_' + n] for n in 'TRAINER_ID "
        "TRAINERS_NUM LOCAL_SIZE GLOBAL_RANK CURRENT_ENDPOINT TRAINER_ENDPOINTS JOB_ID MASTER'.split()))\n"
    )
    options = ["--host", "here", "--start_port", "700", "--log_overwrite", "False", "--job_id", "j"]
    program = ["-c", "import sys; from argosy.cli import main; sys.exit(main())", "launch", "--nproc_per_node", "2"]
    command = [sys.executable, *program, *options, "-m", "lessons.first", "--x"]
    expected = "__main__ lessons ['--x'] {0} 2 2 {0} here:70{0} here:700,here:701 j here:700\n"
    for round in (1, 2):
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False, cwd=tmp_path)
        assert (done.returncode, done.stderr, done.stdout) == (0, "", expected.format(0))
        assert (tmp_path / "log" / "workerlog.1").read_text() == expected.format(1) * round


@needs_mpi
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="what a process has mapped is read from /proc")
def test_a_killed_job_leaves_no_shared_memory(tmp_path):
    """Whatever lay in /dev/shm for MPI is gone after a rank was killed."""
    script = (
        "dist.init_parallel_env()\n"
        "maps = {line.split()[5] for line in open('/proc/self/maps') if '/dev/shm/' in line}\n"
        "open(f'maps{dist.get_rank()}', 'w').write('\\n'.join(maps))\n"
        "dist.barrier()\n"
        "time.sleep(0.2)\n"
        "if dist.get_rank() == 0: os.kill(os.getpid(), 9)\n"
        "dist.barrier()\n"
    )
    assert _launch(tmp_path, script, "--nproc_per_node", "2").returncode == 137
    mapped = [line for rank in range(2) for line in (tmp_path / f"maps{rank}").read_text().splitlines()]
    assert mapped  # the ranks' own board, at least
    assert [path for path in mapped if Path(path).exists()] == []


def _wait_for_ranks(folder: Path) -> None:
    deadline = time.monotonic() + 3600
    while not all((folder / f"pid{i}").exists() and (folder / f"pid{i}").read_text() for i in range(2)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@needs_mpi
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_no_rank_outlives_a_killed_launcher(tmp_path):
    """SIGKILL, which the launcher cannot catch, ends every rank, too."""
    path = tmp_path / "script.py"
    path.write_text(HEAD + "open(f'pid{dist.get_rank()}', 'w').write(str(os.getpid()))\ntime.sleep(50)\n")
    job = subprocess.Popen(
        [sys.executable, "-m", "argosy.distributed.launch", "--nproc_per_node", "2", str(path)],
        cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    _wait_for_ranks(tmp_path)
    job.kill()
    job.wait(timeout=3600)
    _assert_gone(tmp_path)


@needs_mpi
def test_ctrl_c_ends_all_ranks(tmp_path):
    """SIGINT to the launcher ends every rank."""
    path = tmp_path / "script.py"
    path.write_text(HEAD + "open(f'pid{dist.get_rank()}', 'w').write(str(os.getpid()))\ntime.sleep(50)\n")
    job = subprocess.Popen(
        [sys.executable, "-m", "argosy.distributed.launch", "--nproc_per_node", "2", str(path)],
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    _wait_for_ranks(tmp_path)
    job.send_signal(signal.SIGINT)
    _, said = job.communicate(timeout=3600)
    assert job.returncode == 128 + signal.SIGINT
    assert "stopped by SIGINT" in said
    _assert_gone(tmp_path)


@needs_mpi
def test_spawn_runs_a_function_as_ranks(tmp_path):
    """spawn runs a function of the script itself, raises where a rank failed, and names it."""
    script = (
        "def work(scale, fails):\n"
        "    x = paddle.ones([1]) * scale\n"
        "    dist.all_reduce(x)\n"
        "    print('got', float(x))\n"
        "    if fails and dist.get_rank() == 1:\n        raise KeyError('lost')\n"
        "if __name__ == '__main__':\n"
        "    started = dist.spawn(work, (2, False), nprocs=2, join=False)\n"
        "    assert started.join()\n"
        "    try: dist.spawn(work, (3, True), nprocs=2)\n"
        "    except RuntimeError as error: print(error)\n"
    )
    (tmp_path / "script.py").write_text(HEAD + script)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=3600, check=False
    )
    assert done.stdout.splitlines() == ["got 4.0", "got 6.0", "spawn: rank 1 failed: KeyError: 'lost' (exit code 1)"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--nnodes", "2"], "0 machines are named; name all by --hosts"),
        (["--nnodes", "3", "--hosts", "a,b"], "2 machines are named"),
        (["--hosts", "a,a"], "a machine appears more than once"),
        (["--hostfile", "missing"], "No such file"),
        (["--rank", "1"], "one launcher starts the ranks of all machines"),
        (["--max_restart", "3"], "restarting"),
        (["--run_mode", "ps"], "only collective"),
        (["--auto_cluster_config", "c.json"], "not implemented"),
        (["--log_overwrite", "perhaps"], "expected True or False"),
        (["--devices", "0,0"], "more than once"),
        (["--devices", "gpu"], "expected numbers"),
        (["--devices", "0,1", "--nproc_per_node", "3"], "does not fit the 2 devices"),
        (["--nproc_per_node", "0"], "at least one"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(options, message, capsys):
    """Options that would be ignored or contradict each other end the command with a message."""
    with pytest.raises(SystemExit):
        parse([*options, "script.py"], "launch")
    assert message in capsys.readouterr().err


def test_what_follows_the_script_is_its_own():
    """Options after the script are the script's, those that look like the launcher's or begin like them included."""
    given = ["--nproc", "3", "--dev", "x", "--rank=3", "--ips", "-m", "--", "-h"]
    chosen = parse(["--nproc_per_node", "2", "train.py", *given], "launch")
    assert chosen.command == ["train.py", *given]
    assert chosen.ranks == 2


def test_devices_and_counts_give_the_number_of_ranks():
    """One rank for each device, or as many as were asked for; the script keeps its own options."""
    assert parse(["--device=0,1,2,3,4,5,6,7", "train.py"], "launch").ranks == 8
    chosen = parse(["--nproc_per_node", "3", "train.py", "--devices", "x"], "launch")
    assert (chosen.ranks, chosen.script_args) == (3, ["--devices", "x"])
    assert parse(["train.py"], "launch").ranks == 1


@pytest.mark.skipif(find_spec("mpi4py") is None, reason="no mpi4py: argosy-hwadapt[mpi] is not installed")
def test_a_missing_mpiexec_names_the_installation(monkeypatch):
    """Without an MPI the launcher says which package brings one."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(NoMpi, match=r"argosy-hwadapt\[mpi\]"):
        command(2)


def _assert_gone(folder: Path) -> None:
    """No rank that wrote its process id is running."""
    pids = [int(path.read_text()) for path in folder.glob("pid*")]
    assert len(pids) == 2
    deadline = time.monotonic() + 3600
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < deadline, f"processes {pids} are left"
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
