"""Saves that are interrupted: what was there, or what was being written, loads whole, and nothing is left behind."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy_tensorcore.safetensors import save_file

SCRIPT = Path(__file__).with_name("interrupted_saves.py")


@pytest.mark.exhaustive(every=3)
@pytest.mark.skipif(sys.platform == "win32", reason="the script forks")
@pytest.mark.parametrize(
    "kind",
    "folder export methods model sharded checkpoint background numbered pickle safetensors".split(),
)
def test_a_save_that_ends_before_any_of_its_operations_leaves_one_version(kind, tmp_path):
    """A killed process, at each operation on files: never a mixture, never neither, no files that stay."""
    done = subprocess.run([sys.executable, SCRIPT, kind, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 5  # operations


def _split(value):
    mesh = dist.ProcessMesh([0, 1], ["x"])
    return {"a": dist.shard_tensor(np.full((2, 2), value, "f"), mesh, [dist.Shard(0)])}


def test_a_checkpoint_appears_with_the_parts_of_all_ranks(tmp_path, monkeypatch):
    """A rank whose part cannot be written leaves the checkpoint before, and every rank hears of it."""

    def refuse(parts, path, *rest):
        if Path(path).name.startswith("1_"):
            raise OSError(28, "No space left on device")
        return save_file(parts, path, *rest)

    def program():
        try:
            return dist.save_state_dict(_split(2), tmp_path, unique_id=0, async_save=True).wait()
        except OSError as error:
            return str(error)

    dist.debug.run_ranks(lambda: dist.save_state_dict(_split(1), tmp_path), 2)
    monkeypatch.setattr("argosy.distributed.checkpoint.committing.save_file", refuse)
    told = dist.debug.run_ranks(program, 2)
    assert "No space left" in told[1]
    assert "rank 1 met OSError: [Errno 28] No space left" in told[0]
    assert np.all(dist.load_merged_state_dict(tmp_path)["a"].numpy() == 1)


def _dropout_run(steps, checkpoint, resume):
    paddle.utils.unique_name.switch()
    paddle.seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = paddle.optimizer.AdamW(parameters=model.parameters())
    state = {"model": model, "optimizer": optimizer}
    if resume:
        dist.load_state_dict(state, checkpoint)
    losses = []
    for _ in range(steps):
        loss = model(paddle.ones([2, 4])).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    if not resume:
        dist.save_state_dict(state, checkpoint)
    return losses


def test_what_resumes_draws_on(tmp_path):
    """The generator's state is in a checkpoint beside the optimizer: masks of dropout are not drawn again."""
    whole = _dropout_run(6, tmp_path / "whole", False)
    _dropout_run(3, tmp_path / "first", False)
    assert _dropout_run(3, tmp_path / "first", True) == whole[3:]


def test_each_rank_draws_on(tmp_path):
    """Ranks whose generators differ get their own back; a generator that is named stands for its state."""

    def program():
        generator = paddle.seed(10 + dist.get_rank())
        paddle.rand([1])
        dist.save_state_dict({"x": paddle.ones([1]), "noise": generator}, tmp_path)
        expected = paddle.rand([3]).tolist()
        paddle.seed(0)
        dist.load_state_dict({"x": paddle.ones([1]), "noise": generator}, tmp_path)
        return expected, paddle.rand([3]).tolist()

    (first, again), (other, other_again) = dist.debug.run_ranks(program, 2)
    assert first == again != other == other_again
    with pytest.raises(ValueError, match="lacks the state of the generator 'other'"):
        dist.load_state_dict({"other": paddle.seed(1)}, tmp_path)


def test_a_loaded_model_draws_on(tmp_path):
    """``Model.save`` keeps the generator beside the optimizer's states, which any optimizer still takes."""

    def model():
        paddle.utils.unique_name.switch()
        network = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
        made = paddle.Model(network)
        made.prepare(paddle.optimizer.Adam(parameters=network.parameters()), nn.MSELoss())
        return made

    batch = [paddle.ones([2, 4])], [paddle.zeros([2, 1])]
    paddle.seed(1)
    first = model()
    first.train_batch(*batch)
    first.save(str(tmp_path / "m"))
    expected = [first.train_batch(*batch) for _ in range(3)]
    paddle.seed(1)
    again = model()
    again.load(str(tmp_path / "m"))
    assert [again.train_batch(*batch) for _ in range(3)] == expected
    again._optimizer.set_state_dict(paddle.load(str(tmp_path / "m.pdopt")))
