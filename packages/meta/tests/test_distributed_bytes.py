"""Bytes that a rank sends in a captured training step of a GPT: the closed forms for ring collectives, exactly."""

import numpy as np
import pytest

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.distributed.debug import run_ranks
from argosy.models import GPT, GPTConfig
from argosy_autoparallel.counting import count_collectives

BATCH, TOKENS, WIDTH, RANKS = 4, 32, 64, 2
SHARE = (RANKS - 1) / RANKS


def place_columns_and_rows(name, layer, mesh):
    """The first product of each pair by columns, the second by rows (Shoeybi et al., 2019); the head stays whole. The
    columns of [query, key, value] are three blocks."""
    last = name.rpartition(".")[2]
    if isinstance(layer, nn.Linear) and last != "head":
        columns = last in ("inward", "wide")
        blocks = 3 if last == "inward" else 1
        dist.shard_tensor(layer.weight, mesh, [dist.Shard(1 if columns else 0, split_factor=blocks)])
        if columns:
            dist.shard_tensor(layer.bias, mesh, [dist.Shard(0, split_factor=blocks)])


def step(layout, layers):
    """What a rank counts in the second step, the number of parameters, and the loss of that step."""
    paddle.seed(0)
    mesh = dist.ProcessMesh(list(range(RANKS)), dim_names=["x"])
    model = GPT(GPTConfig(96, TOKENS, WIDTH, layers, 2))
    dist.shard_layer(model, mesh, place_columns_and_rows if layout == "tensor" else None)
    stage = dist.ShardingStage1("x") if layout == "zero1" else None
    optimizer = dist.shard_optimizer(paddle.optimizer.AdamW(1e-3, parameters=model.parameters()), stage)
    ids = np.random.default_rng(0).integers(0, 96, (2, BATCH, TOKENS))
    batch = [paddle.to_tensor(x) for x in ids]
    loader = dist.shard_dataloader([batch] * 2, mesh, shard_dims=None if layout == "tensor" else "x")

    @paddle.jit.to_static(full_graph=True)
    def train(x, y):
        loss = model.loss(x, y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    for x, y in loader:
        with count_collectives() as counts:
            loss = train(x, y)
    return counts, sum(p.size for p in model.parameters()), float(loss)


@pytest.mark.parametrize("layout", ["data", "zero1"])
def test_gradients_cost_two_times_the_parameters(layout):
    """Data parallelism and ZeRO 1 send 2 P (d - 1) / d elements, whatever the batch; with them goes the loss."""
    for counts, parameters, _ in run_ranks(lambda: step(layout, 1), RANKS):
        assert counts.total_bytes == 2 * 4 * (parameters + 1) * SHARE


def test_tensor_parallelism_costs_four_sums_of_activations_a_layer():
    """Four all-reduces of the activations for each layer, and nothing of the weights.

    What comes on top is exactly this, for each layer: the mean of a norm's input, taken of the terms of a sum and
    summed beside it (twice, an element a token); gradients of vectors of the width (four times), beside those.
    """
    layers = 2
    for counts, _, loss in run_ranks(lambda: step("tensor", layers), RANKS):
        assert counts.calls == {"all_reduce": layers * 4}
        activations, means, vectors = BATCH * TOKENS * WIDTH, BATCH * TOKENS, WIDTH
        assert counts.total_bytes == 2 * SHARE * 4 * layers * (4 * activations + 2 * means + 4 * vectors)
        assert loss == pytest.approx(_second_loss(layers), rel=1e-5)


def _second_loss(layers):
    paddle.seed(0)
    model = GPT(GPTConfig(96, TOKENS, WIDTH, layers, 2))
    optimizer = paddle.optimizer.AdamW(1e-3, parameters=model.parameters())
    x, y = map(paddle.to_tensor, np.random.default_rng(0).integers(0, 96, (2, BATCH, TOKENS)))
    model.loss(x, y).backward()
    optimizer.step()
    optimizer.clear_grad()
    return float(model.loss(x, y))
