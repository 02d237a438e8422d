"""Saved programs come back equal, and damaged or foreign files are refused by name with nothing half-written."""

import errno
import os

import numpy as np
import pytest

from argosy_infer import Predictor, load_program, save_program
from argosy_infer.errors import InputError, ProgramFileError
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir.builder import Builder
from argosy_pir.dims import SymExpr
from argosy_pir.program import Program
from argosy_pir.types import TensorType

N = SymExpr.symbol("n")
W = np.arange(6, dtype=np.float32).reshape(2, 3)


def affine():
    """y = x @ w, and a state that counts the calls."""
    program = Program("affine")
    x = program.add_input(TensorType((N, 2), "float32"), "x")
    w = program.add_state("w", TensorType((2, 3), "float32")).argument
    calls = program.add_state("calls", TensorType((), "int64")).argument
    with emit_at(Builder.at_end(program.block)):
        y = prim.dot_general(x, w, lhs_contract=(1,), rhs_contract=(0,))
        program.set_outputs([y], [w, calls + 1])
    return program


@pytest.fixture
def saved(tmp_path):
    save_program(affine(), {"w": W, "calls": np.array(0)}, tmp_path / "affine")
    return tmp_path / "affine"


def test_a_program_comes_back_with_its_weights(saved):
    loaded = load_program(saved)
    assert str(loaded.program) == str(affine())
    np.testing.assert_array_equal(loaded.states["w"], W)
    assert sorted(p.name for p in saved.parent.iterdir()) == ["affine.pir", "affine.safetensors"]


def test_a_predictor_runs_any_size_and_keeps_its_states(saved):
    predictor = Predictor(saved, compiler="reference")
    for n in (1, 4, 0):
        x = np.ones((n, 2), np.float32)
        np.testing.assert_array_equal(predictor.run(x)[0], x @ W)
    assert predictor.states["calls"].array() == 3


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, r"inputs \['x'\] are missing"),
        ((np.ones((1, 2), np.float32),), {"y": 1}, r"inputs \['y'\] are unknown"),
        ((np.ones((1, 3), np.float32),), {}, r"input 'x' has shape \[1, 3\], expected tensor<\[n, 2\], float32>"),
        ((np.ones((1, 2), np.complex64),), {}, "input 'x' has dtype complex64"),
        ((1, 2), {}, "takes 1 inputs"),
    ],
)
def test_wrong_inputs_are_named(saved, args, kwargs, message):
    with pytest.raises(InputError, match=message):
        Predictor(saved, compiler="reference").run(*args, **kwargs)


def test_a_missing_or_wrong_state_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ProgramFileError, match=r"state 'calls'.*is missing"):
        save_program(affine(), {"w": W}, tmp_path / "p")
    with pytest.raises(ProgramFileError, match=r"state 'w' is float64 \[2, 3\]"):
        save_program(affine(), {"w": W.astype(float), "calls": np.array(0)}, tmp_path / "p")
    assert not list(tmp_path.iterdir())


def test_every_truncation_and_many_bit_flips_are_refused(saved):
    file = saved.with_name("affine.pir")
    data = file.read_bytes()
    for cut in range(0, len(data), 7):
        file.write_bytes(data[:cut])
        with pytest.raises(ProgramFileError, match=r"affine\.pir"):
            load_program(saved)
    for at in range(0, len(data), 5):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        with pytest.raises(ProgramFileError):
            load_program(saved)


def test_weights_of_another_export_are_refused(saved, tmp_path):
    other = Program("other")
    other.set_outputs([])
    save_program(other, {}, tmp_path / "other")
    os.replace(tmp_path / "other.safetensors", saved.with_name("affine.safetensors"))
    with pytest.raises(ProgramFileError, match="different exports"):
        load_program(saved)


def test_truncated_weights_and_missing_files_are_named(saved):
    weights = saved.with_name("affine.safetensors")
    weights.write_bytes(weights.read_bytes()[:-3])
    with pytest.raises(ProgramFileError, match=r"affine\.safetensors"):
        load_program(saved)
    with pytest.raises(ProgramFileError, match=r"nowhere\.pir"):
        load_program(saved.with_name("nowhere"))


def test_a_full_disk_leaves_the_old_export_whole(saved, monkeypatch):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = {p.name: p.read_bytes() for p in saved.parent.iterdir()}
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_program(affine(), {"w": W + 1, "calls": np.array(5)}, saved)
    assert {p.name: p.read_bytes() for p in saved.parent.iterdir()} == before
