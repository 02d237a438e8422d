"""Programs that Paddle 3.3.1 exported, with its outputs beside them, run here; damaged files are refused by name.

The fixtures hold an MLP with dropout, convolutions with batch norm and pooling, a transformer layer over embeddings and
an LSTM, each with an open batch size; outputs.npz holds an input and Paddle's output for each.
"""

import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
from argosy.jit.paddle_format.arrays import TensorArray, run_array_operator
from argosy.jit.paddle_format.operators import Constant, run_operator
from argosy.jit.paddle_format.parameters import read_parameters
from argosy_infer import Predictor
from argosy_infer.errors import ProgramFileError

FILES = Path(__file__).parent / "paddle_programs"
NAMES = ["mlp", "cnn", "transformer", "lstm"]


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_paddles(name):
    """A loaded program gives what Paddle gave, and the same for any batch size."""
    recorded = np.load(FILES / "outputs.npz")
    x, expected = recorded[f"{name}_x"], recorded[f"{name}_y"]
    layer = paddle.jit.load(str(FILES / name))
    np.testing.assert_allclose(layer(paddle.to_tensor(x)).numpy(), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(layer(paddle.to_tensor(x[:1])).numpy(), expected[:1], rtol=1e-4, atol=1e-6)


def test_weights_are_parameters_under_their_names():
    """The weights of the file are there, under the names that Paddle gave them, and can be trained."""
    layer = paddle.jit.load(str(FILES / "mlp"))
    assert sorted(layer.state_dict()) == ["linear_0.b_0", "linear_0.w_0", "linear_1.b_0", "linear_1.w_0"]
    assert len(layer.parameters()) == 4
    x = paddle.to_tensor(np.load(FILES / "outputs.npz")["mlp_x"])
    expected = layer(x).numpy()
    result = layer.train()(x)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-6)
    result.sum().backward()
    assert all(p.grad is not None for p in layer.parameters())


def _copy(tmp_path, change=None, weights=None):
    for end in (".json", ".pdiparams"):
        shutil.copy(FILES / f"mlp{end}", tmp_path / f"m{end}")
    if change is not None:
        tree = json.loads((tmp_path / "m.json").read_text())
        change(tree)
        (tmp_path / "m.json").write_text(json.dumps(tree))
    if weights is not None:
        (tmp_path / "m.pdiparams").write_bytes(weights((tmp_path / "m.pdiparams").read_bytes()))
    return str(tmp_path / "m")


def _operations(tree):
    return tree["program"]["regions"][0]["blocks"][0]["ops"]


def test_unknown_operators_are_named(tmp_path):
    """An operator that is not known here is an error with its name, not a wrong answer."""

    def change(tree):
        next(o for o in _operations(tree) if o["#"] == "1.relu")["#"] = "1.flash_something"

    with pytest.raises(NotImplementedError, match="operator flash_something"):
        paddle.jit.load(_copy(tmp_path, change))


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        (lambda b: b[:-1], r"bytes, .* are left"),
        (lambda b: b + b"\0", "1 bytes follow"),
        (lambda b: b"\1" + b[1:], "version 1"),
        (lambda b: b[:4] + b"\xff" * 8 + b[12:], "LoD levels"),
        (lambda b: b[:16] + struct.pack("<i", -4) + b[20:], "takes -4 bytes"),
    ],
)
def test_damaged_weights_are_refused(tmp_path, weights, says):
    """Files cut short, prolonged or changed are refused with the file's name and what is wrong."""
    with pytest.raises(ProgramFileError, match=rf"m\.pdiparams.*{says}"):
        paddle.jit.load(_copy(tmp_path, weights=weights))


def test_claimed_sizes_are_checked_before_memory_is_taken():
    """A header that claims 10**18 elements is refused for the bytes that are not there."""
    size, claimed = 10**18, bytearray()
    while size >= 0x80:
        claimed.append(size & 0x7F | 0x80)
        size >>= 7
    described = bytes([0x08, 5, 0x10, *claimed, size])
    data = struct.pack("<IQIi", 0, 0, 0, len(described)) + described + b"\0" * 64
    with pytest.raises(ProgramFileError, match="takes 4000000000000000000 bytes, 64 are left"):
        read_parameters(data, ["w"], "hostile.pdiparams")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"base_code": {"magic": "no"}}', "[" * 100_000])
def test_damaged_programs_are_refused(tmp_path, text):
    """What is no program is refused by the file's name."""
    path = _copy(tmp_path)
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(ProgramFileError, match=r"m\.json is not a program"):
        paddle.jit.load(path)


def test_weights_of_another_program_are_refused(tmp_path):
    """A program whose parameters have other sizes than the file's is refused."""

    def change(tree):
        next(o for o in _operations(tree) if o["#"] == "p")["O"]["TT"]["D"][1] = [4]

    with pytest.raises(ProgramFileError, match=r"linear_1.b_0 is \[3\], the program expects \[4\]"):
        paddle.jit.load(_copy(tmp_path, change))


def test_methods_that_paddle_wrote_beside_forward_come_with_it(tmp_path):
    """``<name>.<method>.json`` is a method of what ``<name>.json`` is; names that layers have are left alone."""
    for method in ("", ".encode", ".state_dict", ".no name"):
        for suffix in (".json", ".pdiparams"):
            shutil.copy(FILES / f"mlp{suffix}", tmp_path / f"m{method}{suffix}")
    layer = paddle.jit.load(str(tmp_path / "m"))
    x = paddle.to_tensor(np.load(FILES / "outputs.npz")["mlp_x"])
    np.testing.assert_array_equal(layer.encode(x).numpy(), layer(x).numpy())
    assert len(layer.state_dict()) == 4
    layer.state_dict()["linear_0.w_0"].set_value(paddle.zeros(layer.state_dict()["linear_0.w_0"].shape))
    np.testing.assert_array_equal(layer.encode(x).numpy(), layer(x).numpy())
    with pytest.raises(ValueError, match="no method 'state_dict' was exported"):
        layer.program("state_dict")


def test_an_element_of_an_axis_of_open_size_leaves_no_axis():
    """``x[:, 0] * 2 + x[:, 1:3, -1].sum(1, keepdim=True)`` of [batch, length, 3], exported without weights."""
    layer = paddle.jit.load(str(FILES / "open_slices"))
    for shape in ((2, 4, 3), (3, 3, 3), (1, 7, 3)):
        x = np.random.default_rng(0).standard_normal(shape).astype("float32")
        expected = x[:, 0] * 2 + x[:, 1:3, -1].sum(1, keepdims=True)
        result = layer(paddle.to_tensor(x))
        assert result.shape == [shape[0], 3]
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(2, 5, 3), (1, 4, 3)])
def test_arithmetic_on_open_sizes_gives_sizes(shape):
    """``x[:, : h // 2 * 2].reshape([b * (h // 2), 2, 3])``, an array of sizes ``[h % 2 + 1, b + h]`` and
    ``(shape * 2 - 1)[1] - h`` are compiled for any sizes."""
    layer = paddle.jit.load(str(FILES / "open_sizes"))
    assert isinstance(layer._programs["forward"], Predictor)
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    (b, h, _), (pairs, filled, number) = shape, layer(paddle.to_tensor(x))
    np.testing.assert_array_equal(pairs.numpy(), x[:, : h // 2 * 2].reshape(-1, 2, 3))
    np.testing.assert_array_equal(filled.numpy(), np.full((h % 2 + 1, b + h), 1.5, "float32"))
    assert number.item() == h - 1


def test_shared_data_and_elements_of_arrays_are_values():
    """``share_data_`` gives its operand, ``slice_array_dense`` an array's tensor."""
    x = paddle.ones([2])
    assert run_operator("share_data_", [x], {}) is x
    assert run_array_operator("slice_array_dense", [TensorArray([x + 1, x]), Constant(1, [1], "int32")], {}) is x
