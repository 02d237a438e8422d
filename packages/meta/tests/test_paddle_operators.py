"""Operators as Paddle 3.3.1 writes them into programs, many in a program, run here beside its outputs."""

import json
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
from argosy.jit.paddle_format.operators import run_operator
from argosy.jit.paddle_format.stepwise import StepwiseProgram

FILES = Path(__file__).parent / "paddle_programs"
RECORDED = json.loads((FILES / "operators_outputs.json").read_text())


def _array(recorded):
    return np.array(recorded["values"], recorded["dtype"]).reshape(recorded["shape"])


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_operators_give_what_paddle_gave(name):
    """Tensors and layers are compiled; boxes, whose number depends on data, run step by step."""
    layer = paddle.jit.load(str(FILES / name))
    assert isinstance(layer._programs["forward"], StepwiseProgram) == (name == "detection")
    (case,) = RECORDED[name]
    results = layer(*(paddle.to_tensor(_array(x)) for x in case["inputs"]))
    for i, (result, recorded) in enumerate(zip(results, case["outputs"], strict=True)):
        assert [str(result.numpy().dtype), list(result.shape)] == [recorded["dtype"], recorded["shape"]], i
        np.testing.assert_allclose(result.numpy(), _array(recorded), rtol=2e-4, atol=2e-5, err_msg=f"output {i}")


def test_a_norm_of_a_weight_leaves_its_vectors():
    """Each call of a program iterates from the vectors that were saved."""
    weight, u, v = (
        paddle.to_tensor(np.linspace(*ends, n, dtype="f4")) for ends, n in (((-1, 2), 12), ((1, 2), 3), ((1, 3), 4))
    )
    weight = weight.reshape([3, 4])
    attributes = {"dim": 0, "power_iters": 50, "eps": 1e-12}
    result = run_operator("spectral_norm", [weight, u, v], attributes)
    largest = np.linalg.svd(weight.numpy())[1][0]
    np.testing.assert_allclose(result.numpy(), weight.numpy() / largest, rtol=1e-5)
    np.testing.assert_array_equal(u.numpy(), np.linspace(1, 2, 3, dtype="f4"))
