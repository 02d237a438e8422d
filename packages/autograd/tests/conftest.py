"""What several tests need: functions run both eagerly and as captured programs."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.eager import tiering
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import TensorType
from argosy_pir.passes import PassManager
from argosy_tensorcore.tensor import Tensor

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="module")
def eager_by_numpy():
    """What is not exact is left to numpy: samples that are applied once are not worth compiling. How compiled code
    comes in is tested across the packages."""
    before = tiering.is_deterministic()
    tiering.set_deterministic(True)
    yield
    tiering.set_deterministic(before)


@pytest.fixture
def both():
    """``both(function, *arrays)``: the eager result, which the captured one must agree with."""

    def run(function, *arrays):
        eager = function(*(Tensor(np.asarray(a), stop_gradient=False) for a in arrays)).numpy()
        np.testing.assert_allclose(_captured(function, *arrays), eager, rtol=1e-12, atol=1e-12)
        return eager

    return run


def _captured(function, *arrays):
    with Tracer("t") as tracer:
        inputs = [tracer.input(TensorType(a.shape, "float64"), stop_gradient=False) for a in arrays]
        made = tracer.finish([function(*inputs)])
    PassManager("decompose,taylor-mode,expand-gradients,cse,dce", verify=True).run(made.program)
    return interpret(made.program, arrays, [t.numpy() for t in made.states])[0][0]
