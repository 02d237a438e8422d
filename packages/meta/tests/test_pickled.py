"""Paddle's .pdparams and .pdopt: what Paddle writes is read, what is written is laid out as Paddle's, and nothing in a
file is executed."""

import io
import os
import pickle
from collections import OrderedDict
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import argosy as paddle
from argosy.framework.paddle_pickle import NAME_TABLE, loads
from argosy_tensorcore.safetensors import CheckpointError


def test_state_dicts_are_laid_out_as_paddle_lays_them_out(tmp_path):
    """A state dict is a protocol 4 pickle of arrays under their names, with the table of parameter names."""
    model = paddle.nn.Linear(2, 3)
    paddle.save(model.state_dict(), tmp_path / "m.pdparams")
    data = (tmp_path / "m.pdparams").read_bytes()
    held = pickle.loads(data)
    assert data[:2] == b"\x80\x04"
    assert list(held) == ["weight", "bias", NAME_TABLE]
    assert held[NAME_TABLE] == {"weight": model.weight.name, "bias": model.bias.name}
    assert type(held["weight"]) is np.ndarray
    np.testing.assert_array_equal(held["weight"], model.weight.numpy())


def test_a_trained_model_and_its_optimizer_come_back(tmp_path):
    """Parameters, accumulators and the schedule survive .pdparams and .pdopt, and tensors keep their names."""
    model = paddle.nn.Linear(2, 1)
    schedule = paddle.optimizer.lr.StepDecay(0.5, 2)
    optimizer = paddle.optimizer.Adam(schedule, parameters=model.parameters())
    model(paddle.ones([3, 2])).sum().backward()
    optimizer.step()
    schedule.step()
    paddle.save(model.state_dict(), tmp_path / "m.pdparams")
    paddle.save(optimizer.state_dict(), tmp_path / "m.pdopt")
    loaded, state = paddle.load(tmp_path / "m.pdparams"), paddle.load(tmp_path / "m.pdopt")
    assert loaded["weight"].name == model.weight.name
    np.testing.assert_array_equal(loaded["weight"].numpy(), model.weight.numpy())
    assert state["LR_Scheduler"]["last_epoch"] == 1
    optimizer.set_state_dict(state)
    assert NAME_TABLE not in state


def test_nests_hold_tensors_with_their_names(tmp_path):
    """Other nests write each tensor as (name, array); bfloat16 travels as its bits and comes back as bfloat16."""
    half = paddle.to_tensor([1.5, -2.0], dtype="bfloat16")
    zero = paddle.to_tensor(3)
    zero.name = "zero"
    paddle.save({"a": [half, (1, "x")], 2: zero, "n": None}, tmp_path / "n.pdparams")
    held = pickle.loads((tmp_path / "n.pdparams").read_bytes())
    assert held[2][0] == "zero"
    assert held["a"][0][1].dtype == np.uint16
    back = paddle.load(tmp_path / "n.pdparams")
    assert back["a"][0].dtype is paddle.bfloat16
    assert back["a"][0].tolist() == [1.5, -2.0]
    assert back["a"][1] == (1, "x")
    assert back["n"] is None
    assert back[2].shape == []
    assert isinstance(paddle.load(tmp_path / "n.pdparams", return_numpy=True)[2], np.ndarray)


@pytest.mark.parametrize(
    "state",
    [
        {"w": paddle.ones([2]), "keys": np.arange(3), "nest": [np.ones(2)], "rate": np.float32(0.5)},
        {"nest": {"w": paddle.ones([2])}, "keys": np.arange(3), "rate": np.float32(0.5)},
    ],
    ids=["flat", "nested"],
)
def test_arrays_beside_tensors_stay_arrays(state, tmp_path):
    """What was an array comes back as one, so that a state of numpy's generators can be given back, as in Paddle."""
    paddle.save(state, tmp_path / "s.pdparams")
    back = paddle.load(tmp_path / "s.pdparams")
    assert type(back["keys"]) is np.ndarray
    assert type(back["rate"]) is np.float32
    held = back["nest"] if isinstance(back["nest"], dict) else back
    assert isinstance(held["w"], paddle.Tensor)
    assert back["keys"].tolist() == [0, 1, 2]


def test_arrays_alone_become_tensors(tmp_path):
    """A file without tensors is one of converted weights."""
    paddle.save({"w": np.ones(2, np.float32)}, tmp_path / "w.pdparams")
    assert isinstance(paddle.load(tmp_path / "w.pdparams")["w"], paddle.Tensor)


def test_file_objects_carry_the_same_format():
    """save and load take binary file objects."""
    stream = io.BytesIO()
    paddle.save({"w": paddle.ones([2])}, stream)
    stream.seek(0)
    assert paddle.load(stream)["w"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "float32", ">f8", "complex64"])
def test_arrays_of_every_protocol_and_byte_order_are_read(protocol, dtype):
    """numpy's own pickles, older protocols, Fortran order and foreign byte order included, give equal arrays."""
    array = np.asfortranarray(np.arange(6).reshape(2, 3).astype(dtype))
    back = loads(pickle.dumps(OrderedDict(x=array, s=np.float32(2.5)), protocol), "f", lambda a, _: a)
    np.testing.assert_array_equal(back["x"], array)
    assert back["x"].dtype.isnative
    assert back["s"] == np.float32(2.5)


class _Call:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    ("hostile", "named"),
    [
        (_Call(os.system, "touch hacked"), "system"),
        (_Call(eval, "open('hacked', 'w')"), "eval"),
        (_Call(getattr, "x", "upper"), "getattr"),
        (_Call(np.frombuffer, b"abc"), "numpy"),
        (np.array([_Call(eval, "open('hacked', 'w')")], object), "O8|eval"),
        (np.zeros(2, [("a", "f4")]), "V4"),
    ],
)
def test_pickles_that_would_execute_are_refused_by_name(tmp_path, monkeypatch, hostile, named):
    """A file that asks for a callable, or for an array of objects, is refused with its name; nothing has run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h.pdparams").write_bytes(pickle.dumps({"w": hostile}, 4))
    with pytest.raises(CheckpointError, match=rf"h\.pdparams.*({named})"):
        paddle.load(tmp_path / "h.pdparams")
    assert [p.name for p in tmp_path.iterdir()] == ["h.pdparams"]


def test_what_files_are_given_cannot_be_changed_by_them():
    """A pickle that sets attributes of an admitted name (BUILD) is refused, and the next file reads as before."""
    attack = b"cbuiltins\ntuple\n}V_make\nI1\nsb."
    with pytest.raises(CheckpointError, match="tried to change"):
        loads(attack, "f", lambda a, _: a)
    assert loads(pickle.dumps({"a": np.ones(1)}), "f", lambda a, _: a)["a"] == 1


def test_sizes_that_the_file_does_not_hold_are_refused_before_allocation():
    """Huge shapes, lengths and memo slots are errors, not allocations."""
    array = np.ones(3, np.float32)
    function, arguments, state = array.__reduce__()
    huge = _Call(function, *arguments)
    huge.call = (function, (arguments[0], (10**18,), b"b"), (1, (10**18,), *state[2:]))
    with pytest.raises(CheckpointError, match="damaged array"):
        loads(pickle.dumps(huge, 4), "f", lambda a, _: a)
    with pytest.raises(CheckpointError, match="damaged"):
        loads(b"\x80\x04\x8e" + (10**18).to_bytes(8, "little") + b"abc.", "f", lambda a, _: a)
    with pytest.raises(CheckpointError, match="memo slot"):
        loads(b"\x80\x04Nr\xff\xff\xff\x7f.", "f", lambda a, _: a)


def test_bytes_that_many_arrays_share_are_no_way_to_much_memory():
    """A small file whose arrays all refer to the same bytes (a bomb) is refused; one array in many places is not."""
    array = np.zeros(4096)
    function, arguments, state = array.__reduce__()
    bombs = []
    for _ in range(1000):
        bomb = _Call(function, *arguments)
        bomb.call = (function, arguments, state)
        bombs.append(bomb)
    bomb_file = pickle.dumps(bombs, 4)
    assert len(bomb_file) < 100 * 4096
    with pytest.raises(CheckpointError, match="more memory than the file has bytes"):
        loads(bomb_file, "f", lambda a, _: a)
    assert len(loads(pickle.dumps([array] * 1000, 4), "f", lambda a, _: a)) == 1000


def test_nests_within_themselves_are_refused():
    """A list that holds itself, and a doubling of references 100 deep, are refused without running away."""
    loop: list[object] = []
    loop.append(loop)
    doubled: object = []
    for _ in range(100):
        doubled = [doubled, doubled]
    for hostile in (loop, doubled):
        with pytest.raises(CheckpointError, match="nested deeper"):
            loads(pickle.dumps(hostile), "f", lambda a, _: a)


@given(st.binary(max_size=60), st.integers(0, 400))
@settings(deadline=None)
def test_damaged_files_are_named(noise, at):
    """Whatever bytes stand in a file, reading it gives a value or a CheckpointError; cut ones are named."""
    data = pickle.dumps({"w": np.ones((2, 2)), "n": [1, ("a", None)]}, 4)
    for damaged in (data[: at % len(data)], data[: at % len(data)] + noise, noise):
        with suppress(CheckpointError):
            loads(damaged, "some.pdparams", lambda a, _: a)
    with pytest.raises(CheckpointError, match=r"some\.pdparams"):
        loads(data[: at % len(data)], "some.pdparams", lambda a, _: a)
