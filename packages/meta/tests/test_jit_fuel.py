"""``ARGOSY_FUEL`` counts the passes before the compiler, too, so that bisecting finds a wrong one by name and line."""

import sys

from argosy_cinn.tools.bisect import command_runner, find_step

SCRIPT = """
import numpy as np
import argosy as paddle
from argosy_pir.passes import cse

def careless(op, *ignored, known=cse._key):  # constants of one type are not all equal
    return (op.name, op.result.type) if op.name == "builtin.constant" else known(op, *ignored)

cse._key = careless
x = paddle.to_tensor(np.full((4,), 0.5, np.float32))

def function(x):
    return paddle.tanh(x * 2.0) + x * 3.0

made = paddle.jit.to_static(function, full_graph=True)(x)
assert np.allclose(made.numpy(), np.tanh(1.0) + 1.5), made
"""


def test_a_wrong_pass_before_the_compiler_is_named(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    found = find_step(command_runner([sys.executable, str(script)]))
    assert found is not None
    assert found[1].startswith("cse of builtin.constant at ")
    assert f"{script}:13" in found[1]
