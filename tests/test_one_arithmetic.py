"""An application has one arithmetic: however often it is called, forward and back, with and without layers of the
dispatch, it gives the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import argosy as paddle
from argosy_phi_ops import get_operator, prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.index import MODULES
from argosy_phi_ops.eager import table, tiering
from argosy_phi_ops.eager.exactness import is_exact
from argosy_phi_ops.reference.interpreter import prepare
from argosy_pir.builder import Builder
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_tensorcore.tensor import Tensor

F, nn = paddle.nn.functional, paddle.nn
CALLS, SWITCHED = 40, 12
"""Calls of an operator's first sample, and of others: all that changes does so within the first ten."""


@pytest.fixture
def quickly_hot(monkeypatch):
    """Whatever is exact is compiled after a few calls."""
    monkeypatch.setattr(tiering, "BUDGET", 1)
    table.forget()
    yield
    table.forget()


@pytest.fixture
def deterministic():
    paddle.set_flags({"FLAGS_cudnn_deterministic": True})
    yield
    paddle.set_flags({"FLAGS_cudnn_deterministic": False})


def as_tensors(value: Any) -> Any:
    """Arrays as tensors, floating ones wanting gradients."""
    if isinstance(value, list):
        return [as_tensors(each) for each in value]
    return paddle.to_tensor(value, stop_gradient=value.dtype.kind != "f") if isinstance(value, np.ndarray) else value


def tensors_in(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [x for each in value for x in tensors_in(each)] if isinstance(value, (list, tuple)) else []


def results_and_gradients(op: Any, args: Any, kwargs: Any, seeds: list[Tensor]) -> list[bytes]:
    """The bytes of all results and of the gradients of all operands; ``seeds`` is filled when it is empty."""
    paddle.seed(7)
    results = tensors_in(op(*args, **kwargs))
    moving = [x for x in results if not x.stop_gradient]
    if moving and not seeds:
        rng = np.random.default_rng(3)
        seeds += [paddle.to_tensor(rng.uniform(-1, 1, x.shape)).astype(x.dtype) for x in moving]
    if moving:
        paddle.autograd.backward(moving, seeds)
    operands = tensors_in([args, list(kwargs.values())])
    found = [x.numpy().tobytes() for x in (*results, *(x.grad for x in operands if x.grad is not None))]
    for x in operands:
        x.clear_gradient(False)
    return found


def samples(name: str) -> list[Any]:
    sampler = get_operator(name).sampler
    return [] if sampler is None else list(sampler(np.random.default_rng(0)))


SAMPLED = sorted(name for name in MODULES if samples(name))


def assert_bits_stay(name: str, often: int) -> None:
    for number, sample in enumerate(samples(name)):
        args, kwargs = as_tensors(list(sample.args)), {k: as_tensors(v) for k, v in sample.kwargs.items()}
        seeds: list[Tensor] = []
        first = results_and_gradients(get_operator(name), args, kwargs, seeds)
        for call in range(1, SWITCHED if number else often):
            assert results_and_gradients(get_operator(name), args, kwargs, seeds) == first, (number, call)


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("name", SAMPLED)
def test_the_fortieth_call_gives_the_bits_of_the_first(name, quickly_hot):
    assert_bits_stay(name, CALLS)


@pytest.mark.parametrize("name", ["conv2d", "gelu", "layer_norm", "matmul", "multiply", "relu", "softmax", "sum"])
def test_deterministic_ones_stay_too_and_are_those_of_numpy(name, deterministic, quickly_hot, monkeypatch):
    assert_bits_stay(name, CALLS)
    sample = samples(name)[0]
    mine = get_operator(name)(*as_tensors(list(sample.args)), **sample.kwargs).numpy()
    monkeypatch.setenv("ARGOSY_EAGER", "plain")
    table.forget()
    assert get_operator(name)(*as_tensors(list(sample.args)), **sample.kwargs).numpy().tobytes() == mine.tobytes()


def network() -> nn.Layer:
    paddle.seed(3)
    return nn.Sequential(
        nn.Conv2D(1, 8, 3, padding=1), nn.BatchNorm2D(8), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten(), nn.Linear(128, 32),
        nn.LayerNorm(32), nn.GELU(), nn.Dropout(0.2), nn.Linear(32, 5),
    )  # fmt: skip


def losses(state: Any, amp: bool) -> list[float]:
    """Of training steps from one checkpoint."""
    model = network()
    model.set_state_dict(state)
    optimizer = paddle.optimizer.AdamW(1e-2, parameters=model.parameters())
    x, y = paddle.randn([6, 1, 8, 8]), paddle.randint(0, 5, [6])
    found = []
    for _ in range(20):
        with paddle.amp.auto_cast(enable=amp, dtype="bfloat16"):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        found.append(float(loss))
    return found


@pytest.mark.parametrize("amp", [False, True])
def test_a_model_loaded_twice_gives_the_same_losses(amp, quickly_hot):
    state = {name: value.clone() for name, value in network().state_dict().items()}
    assert losses(state, amp) == losses(state, amp)


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -1.5, 2.5, 1e-40, 3e38]
EXACT = {
    "arithmetic": lambda x, y: prim.add(prim.mul(x, y), prim.div(prim.sub(x, y), prim.sqrt(prim.abs(y)))),
    "constants": lambda x, y: prim.div(prim.mul(x, 3.0), 7.0),
    "roundings": lambda x, y: prim.add(prim.floor(x), prim.add(prim.round(y), prim.trunc(prim.mul(x, y)))),
    "remainders": lambda x, y: prim.add(prim.floor_mod(x, y), prim.add(prim.rem(x, y), prim.floor_div(x, y))),
    "extremes": lambda x, y: prim.maximum(prim.minimum(x, y), prim.neg(y)),
    "square": lambda x, y: prim.pow(x, 2.0),
    "choices": lambda x, y: prim.select(prim.lt(x, y), prim.sign(x), prim.reduce_max(y, axes=(0,))),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", EXACT)
def test_exact_programs_are_the_same_bits_by_numpy_and_compiled(name, dtype):
    """What is declared to be exact is, for signed zeros, infinities, NaN and subnormal numbers, too."""
    rng = np.random.default_rng(1)
    x, y = (np.concatenate([s, rng.standard_normal(2000) * 3]) for s in (np.repeat(SPECIAL, 12), np.tile(SPECIAL, 12)))
    x, y = (paddle.to_tensor(a.astype(np.float32)).astype(dtype).payload.ndarray for a in (x, y))
    program = Program(name)
    inputs = [program.add_input(TensorType(a.shape, dtype)) for a in (x, y)]
    with emit_at(Builder.at_end(program.block)):
        program.set_outputs([EXACT[name](*inputs)])
    assert is_exact(program) or dtype == "bfloat16"
    (expected,), native = prepare(program)([x, y]), tiering.native_kernel(program)
    if is_exact(program):
        (made,) = native([x, y])
        nan = np.isnan(expected.astype(np.float64))
        np.testing.assert_array_equal(np.isnan(made.astype(np.float64)), nan)
        assert made[~nan].tobytes() == expected[~nan].tobytes()
