"""Checkpoints: what goes in comes out, and damage is named."""

import json
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

import numpy as np
import pytest

import argosy as paddle
from argosy_tensorcore.safetensors import CheckpointError, load_file


def test_flat_state_dicts_keep_their_names(tmp_path):
    """A state dict is stored under its own names, readable by any safetensors reader."""
    model = paddle.nn.Linear(2, 3)
    path = tmp_path / "model.safetensors"
    paddle.save(model.state_dict(), path)
    assert sorted(load_file(path)) == ["bias", "weight"]
    loaded = paddle.load(path)
    np.testing.assert_array_equal(loaded["weight"].numpy(), model.weight.numpy())
    assert loaded["weight"].stop_gradient


def test_nested_objects_come_back_as_they_were(tmp_path):
    """Dicts, lists, tuples, plain values and odd keys survive; tensors keep dtype, shape and bits."""
    path = tmp_path / "all.safetensors"
    bf16 = paddle.to_tensor([1.5, 2.25], dtype="bfloat16")
    obj = {
        "a/b": {"~": [bf16, (1, None, 2.5)]},
        "empty": {},
        "flag": True,
        "name": "x",
        "zero": paddle.to_tensor(3),
    }
    paddle.save(obj, path)
    back = paddle.load(path)
    assert back["empty"] == {}
    assert back["flag"] is True
    assert back["name"] == "x"
    tensor, plain = back["a/b"]["~"]
    assert plain == (1, None, 2.5)
    assert tensor.dtype is paddle.bfloat16
    assert tensor.tolist() == [1.5, 2.25]
    assert back["zero"].shape == []
    assert isinstance(paddle.load(path, return_numpy=True)["zero"], np.ndarray)


def test_other_formats_and_values_are_refused_by_name(tmp_path):
    """Formats that are not implemented and values that cannot be stored say so, and leave no file."""
    with pytest.raises(NotImplementedError, match="pdmodel"):
        paddle.save([], tmp_path / "m.pdmodel")  # a state may stand there: group_sharded_parallel's does
    with pytest.raises(ValueError, match="should name a file"):
        paddle.save({}, f"{tmp_path}/")
    with pytest.raises(TypeError, match="object at 'a/0'"):
        paddle.save({"a": [object()]}, tmp_path / "m.safetensors")
    with pytest.raises(TypeError, match="string keys"):
        paddle.save({1: 2}, tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("keep", [4, 20, 0.5, 0.99])
def test_truncated_files_are_named(tmp_path, keep):
    """A file cut anywhere is an error that names it."""
    path = tmp_path / "m.safetensors"
    paddle.save({"n": 1, "w": paddle.to_tensor(np.arange(100.0))}, path)
    data = path.read_bytes()
    path.write_bytes(data[: keep if keep > 1 else int(len(data) * keep)])
    with pytest.raises(CheckpointError, match=r"m\.safetensors"):
        paddle.load(path)


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    """When writing fails in the middle the file that was there stays whole and nothing else is left."""
    path = tmp_path / "m.safetensors"
    paddle.save({"w": paddle.to_tensor([1.0])}, path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        paddle.save({"w": paddle.to_tensor([2.0])}, path)
    monkeypatch.undo()
    assert paddle.load(path)["w"].tolist() == [1.0]
    assert [p.name for p in tmp_path.iterdir()] == ["m.safetensors"]


def test_missing_files_are_missing(tmp_path):
    """A path that does not exist raises FileNotFoundError."""
    with pytest.raises(FileNotFoundError):
        paddle.load(tmp_path / "none.safetensors")


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({"a": {"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 8]}}, "needs 4000000000000000000"),
        ({"a": {"dtype": "F32", "shape": [10**18], "data_offsets": [0, 4 * 10**18]}}, "cut short"),
        ({"a": {"dtype": "F32", "shape": [0, 10**30], "data_offsets": [0, 8]}}, "shape"),
        (
            {
                "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                "b": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
            },
            "overlaps",
        ),
        (
            {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {"argosy.tree": "[" * 10**5}},
            "not JSON",
        ),
    ],
)
def test_sizes_and_nests_that_a_file_only_claims_are_refused(tmp_path, header, says):
    """10^18 elements, tensors that share bytes and nests without end are errors before memory is taken."""
    text = json.dumps(header).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    with pytest.raises(ValueError, match=says):
        paddle.load(path)


def test_a_variable_of_a_scope_is_saved_as_its_value(tmp_path):
    """As scripts of static programs save them: it comes back as a tensor."""
    variable = paddle.static.global_scope().var("of a scope")
    variable.set(np.array([1.0, 2.0], np.float32))
    paddle.save({"x": variable.get_tensor()}, str(tmp_path / "x.pdtensor"))
    assert paddle.load(str(tmp_path / "x.pdtensor"))["x"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", ["none.pdparams", "none.safetensors"])
def test_a_missing_file_is_what_paddle_and_python_raise(tmp_path, name):
    for error in (ValueError, FileNotFoundError):
        with pytest.raises(error, match=name):
            paddle.load(str(tmp_path / name))


@pytest.mark.parametrize("name", ["a.pdparams", "a.safetensors"])
def test_of_a_layer_the_state_is_saved(tmp_path, name):
    for error in (ValueError, TypeError):
        with pytest.raises(error, match=r"cannot write Linear at 'model'; save its state_dict\(\)"):
            paddle.save({"model": paddle.nn.Linear(2, 2)}, str(tmp_path / name))


def test_states_are_saved_in_the_background_as_they_were(tmp_path):
    layer = paddle.nn.Linear(2, 2)
    before = layer.weight.numpy().copy()
    paddle.async_save(layer.state_dict(), str(tmp_path / "a.pdparams"))
    with paddle.no_grad():
        layer.weight.set_value(before + 1)
    paddle.async_save(layer.state_dict(), str(tmp_path / "b.pdparams"), sync_other_task=True)
    paddle.clear_async_save_task_queue()
    found = [paddle.load(str(tmp_path / f"{name}.pdparams"))["weight"].numpy() for name in "ab"]
    np.testing.assert_array_equal(found[0], before)
    np.testing.assert_array_equal(found[1], before + 1)


def test_what_cannot_be_saved_in_the_background_is_told(tmp_path):
    with pytest.raises(TypeError, match="argument 'obj' must be a dictionary or a Tensor, got int"):
        paddle.async_save(3, str(tmp_path / "a.pdparams"))
    paddle.async_save({"a": object()}, str(tmp_path / "a.pdparams"))
    with pytest.raises(TypeError, match="cannot write object at 'a'"):
        paddle.clear_async_save_task_queue()
    paddle.clear_async_save_task_queue()


class Plan(StrEnum):
    STEPS = "steps"


class Level(IntEnum):
    HIGH = 2


@dataclass
class Arguments:
    """As a trainer has them."""

    plan: Plan = Plan.STEPS
    level: Level = Level.HIGH
    rates: list[float] = field(default_factory=lambda: [0.5])
    inner: object = None


@pytest.mark.parametrize("name", ["arguments.bin", "arguments.safetensors"])
def test_dataclasses_are_saved_as_their_fields(tmp_path, name):
    """No file names a class: members of enumerations are their values, also those that are strings and numbers."""
    paddle.save(Arguments(inner=Arguments()), tmp_path / name)
    plain = {"plan": "steps", "level": 2, "rates": [0.5]}
    assert paddle.load(tmp_path / name) == {**plain, "inner": {**plain, "inner": None}}
    with pytest.raises(ValueError, match=r"object at 'inner'"):
        paddle.save(Arguments(inner=object()), tmp_path / name)
