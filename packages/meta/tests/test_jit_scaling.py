"""The work of capturing and compiling grows with the program, not with its square: function calls are counted, and no
time is taken.
"""

import sys

import numpy as np
import pytest

import argosy as paddle
from argosy_cinn.runtime import ObjectCache

WIDTH = 16


class Block(paddle.nn.Layer):
    """A normalised residual layer."""

    def __init__(self):
        super().__init__()
        self.norm, self.linear = paddle.nn.LayerNorm(WIDTH), paddle.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + paddle.nn.functional.gelu(self.linear(self.norm(x)))


def first_call(depth):
    """The first training step of a model of so many layers, to be called."""
    model = paddle.nn.Sequential(*[Block() for _ in range(depth)])
    optimizer = paddle.optimizer.AdamW(1e-3, parameters=model.parameters())

    def step(x):
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    x = paddle.to_tensor(np.ones((4, WIDTH), np.float32))
    static = paddle.jit.to_static(step, full_graph=True)
    return lambda: static(x)


def calls_of(function):
    """How many calls of Python functions and builtins a call makes."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


@pytest.fixture
def _nothing_is_kept(monkeypatch):
    monkeypatch.setattr("argosy_cinn.options.default_cache", lambda: ObjectCache(None))


@pytest.mark.usefixtures("_nothing_is_kept")
def test_the_first_call_works_in_proportion_to_the_depth():
    first_call(1)()  # what is loaded and found out once
    few, some, many = (calls_of(first_call(depth)) for depth in (2, 6, 14))
    layer = (some - few) / 4
    assert (many - some) / 8 < 1.1 * layer, f"{(many - some) / 8:.0f} calls for each further layer, {layer:.0f} before"


def test_states_are_added_without_looking_at_the_others():
    from argosy_pir import Program, TensorType
    from argosy_pir.errors import IRError

    program, type = Program("wide"), TensorType((2,), "float32")
    few = calls_of(lambda: [program.add_state(f"a{i}", type) for i in range(20)])
    many = calls_of(lambda: [program.add_state(f"b{i}", type) for i in range(200)])
    assert many <= 10 * few
    with pytest.raises(IRError, match="already has a state named 'a3'"):
        program.add_state("a3", type)
    del program.states[3]
    assert program.add_state("a3", type).name == "a3"
