"""A GPT with dropout on four ranks: under every layout the losses of one process, and known communication."""

from functools import partial

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed.debug import run_ranks
from argosy.models import GPT, GPTConfig
from argosy_autoparallel.counting import count_collectives

STEPS = 3
COLUMNS = ("inward", "wide")


def _place_columns_and_rows(name, layer, mesh):
    """Tensor parallelism: the first product of a pair by columns, the second by rows (Shoeybi et al., 2019)."""
    if isinstance(layer, nn.Linear):
        axis = 1 if name.rpartition(".")[2] in COLUMNS else 0
        dist.shard_tensor(layer.weight, mesh, [dist.Replicate(), dist.Shard(axis)])


def _split_sequences(inputs, mesh):
    return tuple(dist.reshard(x, mesh, [dist.Shard(0), dist.Shard(1)]) for x in inputs)


def _train(layout, static, steps=STEPS, same=False):
    paddle.seed(0)
    model = GPT(GPTConfig(64, 16, 32, 1, 2, dropout=0.1))
    rng, stage = np.random.default_rng(0), None
    batches = [[paddle.to_tensor(rng.integers(0, 64, (4, 16))) for _ in range(2)] for _ in range(steps)]
    if same:
        batches = batches[:1] * steps
    if layout is not None:
        mesh = dist.ProcessMesh([[0, 1], [2, 3]], ["dp", "mp"])
        dist.shard_layer(model, mesh, _place_columns_and_rows if layout == "tensor" else None)
        batches = [list(batch) for batch in dist.shard_dataloader(batches, mesh, shard_dims="dp")]
        if layout == "sequence":
            batches = [_split_sequences(batch, mesh) for batch in batches]
        stage = dist.ShardingStage3("mp") if layout == "zero" else None
    optimizer = dist.shard_optimizer(paddle.optimizer.AdamW(0.01, parameters=model.parameters()), stage)

    def step(x, y):
        loss = model.loss(x, y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    run = paddle.jit.to_static(step, full_graph=True) if static else step
    losses = []
    for x, y in batches:
        with count_collectives() as counts:
            loss = run(x, y)
        losses.append(float(loss))
    return losses, counts.calls, len(model.parameters())


@pytest.fixture(scope="module")
def expected():
    """The losses of one process."""
    return run_ranks(lambda: _train(None, False)[0], 1)[0]


# What a step of the model's one block communicates. Data: one sum for all gradients. The others are what the choices of
# the partitioner come to; a change that moves them should be one for the better.
COMMUNICATION = {
    ("data", False): {"all_reduce": 1},
    ("data", True): {"all_reduce": 1},
    ("tensor", False): {"all_reduce": 7, "reduce_scatter": 4, "all_gather": 9, "all_to_all": 1},
    ("tensor", True): {"all_reduce": 8, "reduce_scatter": 2, "all_gather": 4, "all_to_all": 1},
    ("sequence", False): {"all_reduce": 8, "all_gather": 14, "all_to_all": 27},
    ("sequence", True): {"all_reduce": 2, "all_gather": 6, "all_to_all": 26},
    ("zero", False): {"all_reduce": 18, "reduce_scatter": 15, "all_gather": 14, "all_to_all": 8},
    ("zero", True): {"all_reduce": 16, "reduce_scatter": 4, "all_gather": 4, "all_to_all": 6},
}


@pytest.mark.parametrize(
    ("layout", "static"),
    [
        pytest.param(layout, static, marks=[pytest.mark.exhaustive] * (static != (layout in ("sequence", "zero"))))
        for layout, static in COMMUNICATION
    ],
)
def test_losses_equal_those_of_one_process(expected, layout, static):
    """Data, tensor, sequence and ZeRO layouts on a mesh of 2 by 2 change no loss beyond rounding, dropout included, and
    communicate what is known.
    """
    results = run_ranks(lambda: _train(layout, static), 4)
    for losses, _, _ in results:
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for _, calls, parameters in results:
        assert calls == COMMUNICATION[layout, static]
        assert layout != "data" or calls == {"all_reduce": 1} != {"all_reduce": parameters}


@pytest.mark.exhaustive
def test_training_converges_alike_in_every_layout():
    """On one batch the loss falls by a third in eight steps, by the same numbers in every layout as in one process."""
    (expected,) = run_ranks(lambda: _train(None, False, 8, True)[0], 1)
    assert expected[-1] < expected[0] * 2 / 3
    for layout in ("data", "tensor", "sequence", "zero"):
        for losses, _, _ in run_ranks(partial(_train, layout, False, 8, True), 4):
            np.testing.assert_allclose(losses, expected, rtol=1e-5)
