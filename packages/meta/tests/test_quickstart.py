"""The main job at a size that takes seconds: training, interruption, resumption, export, generation."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
from argosy.distributed.launch.process_manager import NoMpi, command

EXAMPLE = Path(__file__).parents[3] / "examples" / "quickstart"
pytestmark = pytest.mark.skipif(not EXAMPLE.is_dir(), reason="the examples are in the repository, not in the wheel")


def _train(out, *flags, backend="reference"):
    run = [sys.executable, str(EXAMPLE / "train.py"), "--tiny", "--backend", backend, "--out", str(out), *flags]
    run += ["--width", "16", "--length", "16", "--steps", "8", "--every", "4", "--validate", "1"]
    return subprocess.run(run, capture_output=True, text=True, check=False)


def _has_mpi():
    try:
        return bool(command(2))
    except NoMpi:
        return False


def _losses(out):
    return paddle.load(out / "checkpoint.safetensors", return_numpy=True)


def test_the_quickstart_trains_resumes_bit_equal_and_generates(tmp_path):
    """A run that was stopped and resumed ends with the bits of one that was not; its export generates."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    result = _train(whole)
    assert result.returncode == 0, result.stderr
    assert "nats per byte" in result.stdout
    assert _train(parts, "--stop-after", "5").returncode == 0
    assert not (parts / "model.pir").exists()
    resumed = _train(parts, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    a, b = _losses(whole), _losses(parts)
    np.testing.assert_array_equal(a["losses"], b["losses"])
    for name in a["model"]:
        np.testing.assert_array_equal(a["model"][name], b["model"][name])
    figures = json.loads((whole / "train.json").read_text())
    assert figures["compilations"] == 1
    assert (whole / "loss.png").read_bytes()[:4] == b"\x89PNG"
    generated = subprocess.run(
        [sys.executable, EXAMPLE / "generate.py", "--out", whole, "--tokens", "6", "--compiler", "reference",
         "--prompt", "The"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert generated.returncode == 0, generated.stderr
    assert "greedy:   The" in generated.stdout
    assert "validation loss" in generated.stdout


@pytest.mark.skipif(not _has_mpi(), reason="no MPI: argosy[mpi] is not installed")
def test_the_quickstart_goes_on_on_two_ranks(tmp_path):
    """The trained model trains on as two processes with the losses of one, which the script itself compares."""
    assert _train(tmp_path).returncode == 0
    launch = [sys.executable, "-m", "argosy.distributed.launch", "--nproc_per_node", "2", "--log_dir", tmp_path / "log"]
    done = subprocess.run(
        [*launch, EXAMPLE / "distributed.py", "--out", tmp_path, "--tiny"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows = done.stdout.split("\n")[1:-1]
    assert head.startswith("five more steps: loss on 2 ranks")
    losses = np.array([row.split() for row in rows], float)
    assert losses.shape == (5, 2)
    np.testing.assert_allclose(losses[:, 0], losses[:, 1], rtol=1e-5, atol=2e-6)  # they are printed to six digits


def test_other_sizes_cannot_resume(tmp_path):
    """Resuming with another width says which flag differs."""
    assert _train(tmp_path, "--stop-after", "1").returncode == 0
    result = _train(tmp_path, "--resume", "--seed", "5")
    assert result.returncode != 0
    assert "other sizes: {'seed': 1}" in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_interruption_leaves_a_checkpoint(tmp_path):
    """Ctrl-C ends the run after the current step with exit code 130 and a checkpoint to resume from."""
    run = [
        sys.executable,
        str(EXAMPLE / "train.py"),
        "--tiny",
        "--backend",
        "reference",
        "--out",
        str(tmp_path),
    ]
    run += ["--width", "16", "--length", "16", "--steps", "100000", "--every", "1", "--validate", "1"]
    process = subprocess.Popen(run, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if "step 2" in line:
            break
    process.send_signal(signal.SIGINT)
    rest = process.communicate()[0]
    assert process.returncode == 130
    assert "go on with --resume" in rest
    assert _losses(tmp_path)["step"] >= 2


_COUNT = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import train
import argosy as paddle

trainer = train.Trainer(train.parse_arguments(["--tiny"]))
ids = paddle.to_tensor(np.zeros((4, 32), np.int64))
with paddle.jit.count_compiles() as compiles:
    for _ in range(3):
        trainer.run_step(ids, ids)
        trainer.schedule.step()
    calls = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    trainer.run_step(ids, ids)
    sys.setprofile(None)
print(compiles.value, len(calls), *calls)
"""


def test_a_step_is_fewer_than_thirty_python_calls():
    """The quickstart's whole training step: one compilation, and fewer than 30 Python-level calls per step."""
    result = subprocess.run([sys.executable, "-c", _COUNT, str(EXAMPLE)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    compiles, calls, *names = result.stdout.split()
    assert int(compiles) == 1
    assert int(calls) < 30, names
