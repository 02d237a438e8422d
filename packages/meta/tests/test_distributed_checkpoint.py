"""Checkpoints of distributed tensors: written by the ranks of one mesh, read by those of any other."""

import json
from functools import partial

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed.debug import run_ranks
from argosy.models import GPT, GPTConfig
from argosy_tensorcore.safetensors import CheckpointError, SafetensorsFile

SQUARE = ([[0, 1], [2, 3]], ["dp", "mp"])
LINE = ([0, 1, 2, 3], ["dp"])


def _columns(name, layer, mesh):
    """Columns, those of [query, key, value] in three blocks."""
    if isinstance(layer, nn.Linear) and "mp" in mesh.dim_names:
        split = dist.Shard(1, split_factor=3 if name.endswith("inward") else 1)
        dist.shard_tensor(layer.weight, mesh, [dist.Replicate(), split][-mesh.ndim :])


def _gpt(mesh, stage=None):
    """A GPT, its AdamW with a schedule, and the schedule."""
    paddle.seed(7)
    model = GPT(GPTConfig(32, 8, 16, 1, 2))
    rate = paddle.optimizer.lr.StepDecay(0.02, step_size=2)
    optimizer = paddle.optimizer.AdamW(rate, parameters=model.parameters())
    if mesh is not None:
        dist.shard_layer(model, mesh, _columns)
        optimizer = dist.shard_optimizer(optimizer, stage and stage("dp"))
    return model, optimizer, rate


def _train(model, optimizer, rate, batches):
    rng, losses = np.random.default_rng(batches[0]), []
    for _ in range(batches[1]):
        x, y = (paddle.to_tensor(rng.integers(0, 32, (4, 8))) for _ in range(2))
        loss = model.loss(x, y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        rate.step()
        losses.append(float(loss))
    return losses


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with a GPT after two steps on [2, 2], tensor-parallel with ZeRO's second stage; the losses after it."""
    folder = tmp_path_factory.mktemp("checkpoint")

    def program():
        model, optimizer, rate = _gpt(dist.ProcessMesh(*SQUARE), dist.ShardingStage2)
        _train(model, optimizer, rate, (1, 2))
        dist.save_state_dict({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder)
        return _train(model, optimizer, rate, (2, 2))

    return folder, run_ranks(program, 4)[0]


@pytest.mark.parametrize(
    ("mesh", "stage", "ranks"),
    [(LINE, dist.ShardingStage3, 4), (([0, 1, 2], ["mp"]), None, 3), (None, None, 1)],
    ids=["line of 4", "three ranks", "one process"],
)
def test_a_gpt_goes_on_elsewhere(written, mesh, stage, ranks):
    """On another mesh, with other placements, and in one process the training goes on with the same losses."""
    folder, expected = written

    def program():
        parts = _gpt(mesh and dist.ProcessMesh(*mesh), stage)
        dist.load_state_dict({"model": parts[0].state_dict(), "optimizer": parts[1]}, folder)
        return _train(*parts, (2, 2))

    for losses in run_ranks(program, ranks):
        np.testing.assert_allclose(losses, expected, rtol=2e-5)


def test_each_part_is_written_once_and_evenly(written):
    """No value is in two files, and ranks write about as much as each other."""
    folder, _ = written
    found = json.loads((folder / "0.metadata.json").read_text())
    sizes = {f"{rank}_0.{found['save']}.safetensors": 0 for rank in range(4)}
    for name in sizes:
        with SafetensorsFile(folder / name) as file:
            sizes[name] = sum(file[key].size for key in file)
    total = sum(np.prod(each["shape"], dtype=int) for each in found["tensors"].values())
    assert sum(sizes.values()) == total
    assert max(sizes.values()) < total / 2
    assert found["values"]["optimizer.LR_Scheduler.last_epoch"] == 2


def test_a_rank_touches_only_files_that_it_needs(tmp_path):
    """A split tensor read back under the same split: each rank can do without the other's file."""
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)

    def program(layout, hidden):
        mesh = dist.ProcessMesh([0, 1], ["x"])
        x = dist.shard_tensor(rows if hidden is None else rows * 0, mesh, layout)
        if hidden is None:
            dist.save_state_dict({"x": x}, tmp_path)
            return None
        seen = tmp_path if dist.get_rank() else hidden
        dist.load_state_dict({"x": x}, seen, unique_id=0)
        return x.numpy()

    run_ranks(partial(program, [dist.Shard(0)], None), 2)
    hidden = tmp_path / "seen by rank 0"
    hidden.mkdir()
    for path in (tmp_path / "0.metadata.json", _part(tmp_path, 0)):
        (hidden / path.name).write_bytes(path.read_bytes())
    for found in run_ranks(partial(program, [dist.Shard(0)], hidden), 2):
        np.testing.assert_array_equal(found, rows)
    with pytest.raises(FileNotFoundError, match=r"1_0\.\w+\.safetensors is missing"):
        run_ranks(partial(program, [dist.Replicate()], hidden), 2)


PLACEMENTS = {
    "rows": [dist.Shard(0)],
    "columns": [dist.Shard(1)],
    "both": [dist.Shard(1), dist.Shard(0)],
    "nested": [dist.Shard(0), dist.Shard(0)],
    "blocks": [dist.Shard(1, split_factor=2), dist.Shard(0)],
    "nested blocks": [dist.Shard(1, split_factor=2), dist.Shard(1)],
    "given sizes": [dist.Shard(0), dist.Shard(1, sizes=[7, 1])],
    "sum": [dist.Shard(0), dist.Partial()],
    "whole": [],
}


@pytest.mark.parametrize("before", PLACEMENTS)
def test_every_layout_becomes_every_other(before, tmp_path):
    """Uneven and empty parts, sums still to be made, a rank outside the mesh; bfloat16 and booleans, too."""
    values = np.arange(40, dtype=np.float32).reshape(5, 8)

    def program():
        square = dist.ProcessMesh([[0, 1], [2, 3]], ["x", "y"])
        laid = dist.shard_tensor(values, square, PLACEMENTS[before])
        state = {"x": laid, "low": laid.astype("bfloat16"), "nested": {"odd": laid > 7, "step": 3}}
        dist.save_state_dict(state, tmp_path)
        found = []
        for mesh in (square, dist.ProcessMesh([3, 1, 0], ["x"])):
            for placements in PLACEMENTS.values():
                zeros = dist.shard_tensor(values * 0, mesh, placements[: mesh.ndim])
                state = {"x": zeros, "low": zeros.astype("bfloat16"), "nested": {"odd": zeros > 7, "step": 0}}
                dist.load_state_dict(state, tmp_path)
                assert state["nested"]["step"] == 3
                whole = [dist.reshard(x, square, []) for x in (state["x"], state["low"], state["nested"]["odd"])]
                found.append([x.astype("float32").numpy() for x in whole])
        return found

    for found in run_ranks(program, 4):
        for x, low, odd in found:
            np.testing.assert_array_equal(x, values)
            np.testing.assert_array_equal(low, values)
            np.testing.assert_array_equal(odd, values > 7)


def test_one_process_reads_everything(written):
    """load_merged_state_dict gives nested dictionaries of whole tensors; a prefix takes one of them."""
    merged = dist.load_merged_state_dict(written[0])
    model = dist.load_merged_state_dict(written[0], "model")
    assert sorted(merged) == ["model", "optimizer"]  # dictionaries: a generator comes with an optimizer itself
    assert merged["optimizer"]["LR_Scheduler"]["last_epoch"] == 2
    assert sorted(model) == sorted(merged["model"])
    plain = _gpt(None)[0]
    assert plain.set_state_dict(model) == ([], [])
    with pytest.raises(ValueError, match="has nothing below 'teacher'"):
        dist.load_merged_state_dict(written[0], "teacher")


def test_saves_are_numbered_and_replaced(tmp_path):
    """Each save gets the next number; a given number replaces; loading takes the largest, or the one asked for."""
    state = {"x": paddle.zeros([2])}
    for value in (1.0, 2.0):
        dist.save_state_dict({"x": paddle.full([2], value)}, tmp_path)
    dist.save_state_dict({"x": paddle.full([2], 3.0)}, tmp_path, unique_id=0)
    dist.load_state_dict(state, tmp_path)
    assert state["x"].tolist() == [2, 2]
    dist.load_state_dict(state, tmp_path, unique_id=0)
    assert state["x"].tolist() == [3, 3]
    with pytest.raises(FileNotFoundError, match=r"no checkpoint 7 in .*; there are \[0, 1\]"):
        dist.load_state_dict(state, tmp_path, unique_id=7)


def test_saving_goes_on_in_the_background(tmp_path):
    """What is written is the state at the call; loading waits; an error is raised by who waits, once."""

    def program():
        x = dist.shard_tensor(np.ones((3, 2), np.float32), dist.ProcessMesh([0, 1], ["x"]), [dist.Shard(0)])
        dist.save_state_dict({"x": x}, tmp_path, async_save=True)
        x[:] = 5.0
        dist.load_state_dict({"x": x}, tmp_path)
        return x.numpy()

    for found in run_ranks(program, 2):
        np.testing.assert_array_equal(found, np.ones((3, 2)))
    (tmp_path / "4.metadata.json").mkdir()
    task = dist.save_state_dict({"x": paddle.ones([1])}, tmp_path, unique_id=4, async_save=True)
    with pytest.raises(OSError, match=r"4\.metadata"):
        task.wait()
    assert task.is_completed()
    assert task.wait()


def test_replicas_are_written_where_they_are_wanted(tmp_path):
    """With save_replicas each rank's file has all that it holds."""

    def program():
        x = dist.shard_tensor(np.ones((3, 2), np.float32), dist.ProcessMesh([0, 1], ["x"]), [])
        dist.save_state_dict({"x": x}, tmp_path, save_replicas=True)

    run_ranks(program, 2)
    for rank in range(2):
        with SafetensorsFile(_part(tmp_path, rank)) as file:
            assert file["x"].shape == (3, 2)


def _part(folder, rank):
    """The only file of a rank."""
    (found,) = folder.glob(f"{rank}_*.safetensors")
    return found


def _cut(path):
    path.write_bytes(path.read_bytes()[:-4])


def _other_save(path):
    dist.save_state_dict({"x": paddle.ones([2, 3])}, path.parent / "b")
    path.write_bytes(_part(path.parent / "b", 0).read_bytes())


@pytest.mark.parametrize(
    ("name", "damage", "error", "message"),
    [
        ("0_0.*.safetensors", lambda p: p.unlink(), FileNotFoundError, r"0_0\.\w+\.safetensors is missing"),
        ("0_0.*.safetensors", _cut, CheckpointError, r"0_0\.\w+\.safetensors is cut short"),
        ("0_0.*.safetensors", _other_save, CheckpointError, r"0_0\.\w+\.safetensors is of another save"),
        ("0.metadata.json", _cut, CheckpointError, "0.metadata.json is not JSON"),
        ("0.metadata.json", lambda p: p.write_text("[]"), CheckpointError, "not the metadata of a checkpoint"),
        ("0.metadata.json", lambda p: p.write_bytes(b"\xff\xfe"), CheckpointError, "is not text"),
        ("0.metadata.json", lambda p: p.unlink(), FileNotFoundError, "has no checkpoint"),
    ],
    ids=lambda x: x if isinstance(x, str) and "." in x else None,
)
def test_damaged_checkpoints_are_named(tmp_path, name, damage, error, message):
    """Files that are missing, cut or mixed up end in an error with the file's name; nothing is changed."""
    dist.save_state_dict({"x": paddle.ones([2, 3])}, tmp_path)
    damage(next(tmp_path.glob(name)))
    state = {"x": paddle.zeros([2, 3])}
    with pytest.raises(error, match=message):
        dist.load_state_dict(state, tmp_path)
    assert not state["x"].any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t["x"].update(pieces=[["../x_0.safetensors", [0, 0], [2, 3]]]), "not the name of a file"),
        (lambda t: t["x"].update(pieces=[["0_0.safetensors", [0], [2]]]), "of a tensor of shape"),
        (lambda t: t["x"].update(pieces=[["0_0.safetensors", [0, 0], [1, 3]]]), "do not make up"),
        (lambda t: t["x"].update(shape=[2, -3]), "are not sizes"),
        (lambda t: t["x"].update(dtype="object"), "damaged"),
        (lambda t: t["x"].pop("pieces"), "damaged: KeyError"),
    ],
)
def test_metadata_is_checked(tmp_path, change, message):
    """Nothing that the metadata says is believed before it fits."""
    dist.save_state_dict({"x": paddle.ones([2, 3])}, tmp_path)
    path = tmp_path / "0.metadata.json"
    found = json.loads(path.read_text())
    change(found["tensors"])
    path.write_text(json.dumps(found))
    with pytest.raises(CheckpointError, match=message):
        dist.load_state_dict({"x": paddle.zeros([2, 3])}, tmp_path)


def _fresh_optimizer():
    return paddle.optimizer.AdamW(parameters=nn.Linear(2, 3).parameters())


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (lambda: {"y": paddle.zeros([2])}, "lacks 1 of what is wanted: 'y'; it has 'n', 'o.m', 'x'"),
        (lambda: {"x": paddle.zeros([3, 2])}, r"x has shape \[2, 3\] in the checkpoint, but \[3, 2\] is wanted"),
        (lambda: {"x": paddle.zeros([2, 3], "int64")}, "x is float32 in the checkpoint, but int64 is wanted"),
        (lambda: {"x": 3}, "x is a tensor in the checkpoint"),
        (lambda: {"n": paddle.zeros([1])}, "n is a plain value in the checkpoint"),
        (lambda: {"o": _fresh_optimizer().state_dict()}, "'o' is empty, .* give the optimizer itself"),
    ],
)
def test_states_that_do_not_fit_are_named(tmp_path, state, message):
    """Missing names, other shapes, dtypes and kinds."""
    dist.save_state_dict({"x": paddle.ones([2, 3]), "n": 1, "o": {"m": paddle.ones([1])}}, tmp_path)
    with pytest.raises(ValueError, match=message):
        dist.load_state_dict(state(), tmp_path)


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        ([paddle.ones([1])], TypeError, "takes a dictionary of tensors, got list"),
        ({3: paddle.ones([1])}, TypeError, "keys are strings; at 'the top' there is 3"),
        ({"a": {"b": object()}}, TypeError, "'a.b' is object"),
        ({"a.b": 1, "a": {"b": 2}}, ValueError, r"\['a.b'\] and \['a', 'b'\] have the same name"),
        ({"a": paddle.ones([1])}, ValueError, "unique_id is a number from 0, not -1"),
    ],
)
def test_what_cannot_be_saved_is_named(tmp_path, state, error, message):
    """Nothing is written then."""
    with pytest.raises(error, match=message):
        dist.save_state_dict(state, tmp_path / "new", unique_id=-1)
    assert not list(tmp_path.glob("new/*"))


def test_ranks_that_disagree_are_told(tmp_path):
    """Different numbers for the checkpoint, different shapes of one name."""

    def program(number, size):
        dist.save_state_dict({"x": paddle.ones([size()])}, tmp_path, unique_id=number())

    with pytest.raises(ValueError, match=r"different unique_id: \[0, 1\]"):
        run_ranks(partial(program, dist.get_rank, lambda: 1), 2)
    with pytest.raises(ValueError, match=r"'x' is float32 \[1\] on rank 0, but float32 \[2\] on rank 1"):
        run_ranks(partial(program, lambda: 0, lambda: 1 + dist.get_rank()), 2)


def test_floating_values_are_cast(tmp_path):
    """A float32 checkpoint fills a bfloat16 model."""
    dist.save_state_dict({"x": paddle.to_tensor([1.0, 2.5])}, tmp_path)
    state = {"x": paddle.zeros([2], "bfloat16")}
    dist.load_state_dict(state, tmp_path)
    assert state["x"].astype("float32").tolist() == [1, 2.5]


OPTIMIZERS = ["SGD", "Momentum", "Adagrad", "Adadelta", "RMSProp", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Lamb"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_states_made_beforehand_change_nothing(name):
    """An optimizer whose states were made before its first step goes the way of one whose states were not."""

    def steps(beforehand):
        paddle.seed(0)
        layer = nn.Linear(2, 2)
        made = getattr(paddle.optimizer, name)(learning_rate=0.1, parameters=layer.parameters())
        if beforehand:
            made.make_states()
        for _ in range(2):
            layer(paddle.ones([1, 2])).sum().backward()
            made.step()
            made.clear_grad()
        return layer.weight.numpy(), len(made.state_dict())

    (plain, count), (found, same) = steps(False), steps(True)
    np.testing.assert_array_equal(found, plain)
    assert count == same
