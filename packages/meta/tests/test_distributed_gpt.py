"""A GPT with dropout on four ranks: under every layout the losses of one process, and known communication."""

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


def _train(layout, static):
    paddle.seed(0)
    model = GPT(GPTConfig(64, 16, 32, 1, 2, dropout=0.1))
    rng, stage = np.random.default_rng(0), None
    batches = [[paddle.to_tensor(rng.integers(0, 64, (4, 16))) for _ in range(2)] for _ in range(STEPS)]
    if layout is not None:
        mesh = dist.ProcessMesh([[0, 1], [2, 3]], ["dp", "mp"])
        dist.shard_layer(model, mesh, _place_columns_and_rows if layout == "tensor" else None)
        batches = [list(batch) for batch in dist.shard_dataloader(batches, mesh, "dp")]
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


@pytest.mark.parametrize(
    ("layout", "static"),
    [("data", False), ("tensor", False), ("sequence", False), ("zero", False), ("data", True)],
)
def test_losses_equal_those_of_one_process(expected, layout, static):
    """Data, tensor, sequence and ZeRO layouts on a mesh of 2 by 2 change no loss beyond rounding, dropout included."""
    results = run_ranks(lambda: _train(layout, static), 4)
    for losses, _, _ in results:
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
    _, calls, parameters = results[0]
    if layout == "data":
        assert calls == {"all_reduce": parameters}
