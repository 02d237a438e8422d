"""The static way: a captured training step on distributed states, partitioned and run by each rank."""

import numpy as np
import pytest
from ranks import on_ranks

from argosy_autoparallel import (
    Layout,
    ProcessMesh,
    Replicate,
    Shard,
    communicators,
    layout_of,
    partition_program,
    reshard,
    shard_tensor,
)
from argosy_autoparallel.partition import partition
from argosy_autoparallel.strategy_choice import StrategyChoice
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.compiler import get_compiler
from argosy_phi_ops.context import context, emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir import Builder, Program
from argosy_pir.passes import PassManager
from argosy_pir.types import TensorType
from argosy_tensorcore.rng import Generator
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

autograd = pytest.importorskip("argosy_autograd")

RNG = np.random.default_rng(0)
X, W, V = (RNG.standard_normal(s).astype(np.float32) for s in ((8, 6), (6, 10), (10, 3)))


def step(x, w, v, layout=None):
    """A two-layer step with dropout and gradient descent; returns the loss."""
    g = get_operator
    h = g("dropout")(g("tanh")(g("matmul")(x, w)), p=0.3)
    if layout is not None:
        h = reshard(h, *layout)
    y = g("matmul")(h, v)
    loss = g("mean")(g("multiply")(y, y))
    loss.backward()
    for p in (w, v):
        with autograd.no_grad():
            p.set_value(g("subtract")(p, g("multiply")(p.grad, 0.1)))
        p.clear_gradient(set_to_zero=False)
    return loss


def captured(w, v, layout=None):
    """The step as a program of primitives, and the tensors behind its states."""
    with Tracer("step") as tracer:
        x = tracer.input(TensorType(X.shape, "float32"), "x")
        found = tracer.finish([step(x, w, v, layout)])
    PassManager("decompose,expand-gradients,cse,dce").run(found.program)
    return found


def losses_of_one_process():
    context().generator = Generator(5)
    w, v = (Tensor(a, stop_gradient=False) for a in (W, V))
    return [float(step(Tensor(X), w, v)) for _ in range(3)], w.numpy()


@pytest.mark.parametrize("compiler", ["reference", "cinn"])
@pytest.mark.parametrize(
    ("w_at", "v_at", "x_at"),
    [
        ([Replicate(), Shard(1)], [Replicate(), Shard(0)], [Shard(0), Replicate()]),  # data and tensor parallel
        ([Replicate()] * 2, [Replicate()] * 2, [Shard(0), Shard(0)]),  # data parallel
        ([Shard(0), Replicate()], [Shard(0), Replicate()], [Shard(0), Replicate()]),  # parameters split over data ranks
    ],
)
def test_a_captured_step_trains_as_one_process_does(w_at, v_at, x_at, compiler):
    """Losses and parameters, dropout included, equal those of one process."""
    if compiler == "cinn":
        pytest.importorskip("argosy_cinn")

    def main(rank):
        context().generator = Generator(5)
        mesh = ProcessMesh([[0, 1], [2, 3]], dim_names=["dp", "mp"])
        w, v = (shard_tensor(a, mesh, p, stop_gradient=False) for a, p in ((W, w_at), (V, v_at)))
        x = shard_tensor(X, mesh, x_at)
        found = captured(w, v, (mesh, [Shard(0), Shard(1)]))
        local = partition_program(
            found.program, [layout_of(x)], [layout_of(t) for t in found.states], rank, [Layout.replicate(mesh)]
        )
        local.program.verify()
        made = get_compiler(compiler).compile(local.program, device("cpu"), communicators())
        states = [t.payload if type(t.payload) is StridedArray else t.payload.local for t in found.states]
        run = made.bind(states)
        losses = []
        for _ in range(3):
            (loss,) = run([x.payload.local])
            losses.append(float(loss.array()))
        return losses, w.numpy()

    expected, trained = losses_of_one_process()
    for losses, w in on_ranks(main, 4):
        np.testing.assert_allclose(losses, expected, rtol=2e-5)
        np.testing.assert_allclose(w, trained, atol=1e-5)


@pytest.mark.parametrize("depth", [2, 6])
def test_equal_layers_are_decided_once(depth, monkeypatch):
    """Pairs of products, the first split by columns, the second by rows: more layers ask for no more decisions."""
    decisions = []
    choose = StrategyChoice._choose
    monkeypatch.setattr(StrategyChoice, "_choose", lambda *args: decisions.append(args[1].name) or choose(*args))
    program, mesh, product = Program("layers"), ProcessMesh([0, 1]), get_operator("matmul")
    x, *weights = (program.add_input(TensorType((4, 4), "float32")) for _ in range(1 + 2 * depth))
    with emit_at(Builder.at_end(program.block)):
        for w, v in zip(weights[::2], weights[1::2], strict=True):
            x = prim.add(x, product(prim.tanh(product(x, w)), v))
    program.set_outputs([x])
    layouts = [Layout(mesh, [p]) for p in (Replicate(), *[Shard(1), Shard(0)] * depth)]
    made = partition(program, layouts)
    assert sum(op.name == "prim.dot_general" for op in made.program.walk()) == 2 * depth
    assert len(decisions) <= 10
