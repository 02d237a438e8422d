"""How many files a call of an operator passes on its way to the kernel, which is how far a reader has to follow it."""

import json
import os
import subprocess
import sys

import pytest

MEASURE = """
import json, sys
import numpy as np
import argosy as paddle

def operands(rows, recorded):
    x = paddle.to_tensor(np.ones((rows, 2), "float32"), stop_gradient=not recorded)
    return x, paddle.to_tensor(np.ones((2, 3), "float32"))

def visited(x, y):
    "The files whose functions are entered or come back to, in a row, up to the kernel."
    files, kernel = [], []
    def hook(frame, event, arg):
        if event == "c_call" and getattr(arg, "__name__", "") == "dot":
            kernel[:] = files
        where = frame if event == "call" else frame.f_back if event == "return" else None
        name = where.f_code.co_filename if where is not None else ""
        if "argosy" in name and files[-1:] != [name]:
            files.append(name)
    sys.setprofile(hook)
    paddle.matmul(x, y)
    sys.setprofile(None)
    return len(set(kernel)), len(kernel) - 1, len(set(files)), len(files) - 1

recorded = sys.argv[1] == "recorded"
for rows in (4, 5, 6):  # modules are loaded
    paddle.matmul(*operands(rows, recorded))
x, y = operands(7, recorded)
print(json.dumps([visited(x, y) for _ in range(8)]))
"""


@pytest.mark.parametrize(("kind", "most"), [("plain", (4, 6)), ("recorded", (5, 8))])
def test_a_call_passes_few_files_on_its_way_to_the_kernel(kind, most):
    """The first application to operands of some types at most 14 files with 24 changes of file; later ones ``most`` up
    to the end, recording included."""
    made = subprocess.run(
        [sys.executable, "-c", MEASURE, kind], env={**os.environ, "ARGOSY_EAGER": "plain"}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    first, *_, last = json.loads(made.stdout)
    files, changes = first[:2]
    assert 0 < files <= 14
    assert changes <= 24
    assert last[2:] <= list(most)
    assert last[0] > 0, "the kernel was not seen"
