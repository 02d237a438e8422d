"""A compiled GPT with dropout under the layouts that the environment names; prints each with its losses."""

import os
import sys

import numpy as np

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.models import GPT, GPTConfig

STEPS, COLUMNS = 3, ("inward", "wide")
SHARDING = {"zero1": dist.ShardingStage1, "zero2": dist.ShardingStage2, "zero3": dist.ShardingStage3}


def split_products(name, layer, mesh):
    """The first product of a pair by columns, the second by rows (Shoeybi et al., 2019)."""
    if isinstance(layer, nn.Linear):
        dist.shard_tensor(layer.weight, mesh, [dist.Shard(int(name.rpartition(".")[2] in COLUMNS))])


def train(layout):
    paddle.seed(0)
    model = GPT(GPTConfig(64, 16, 32, 1, 2, dropout=0.1))
    rng = np.random.default_rng(0)
    batches = rng.integers(0, 64, (STEPS, 2, 4, 16))
    mesh = dist.ProcessMesh(list(range(dist.get_world_size())), ["x"])
    dist.shard_layer(model, mesh, split_products if layout == "mp" else None)
    stage = SHARDING[layout]("x") if layout in SHARDING else None
    optimizer = dist.shard_optimizer(paddle.optimizer.AdamW(0.01, parameters=model.parameters()), stage)
    placement = {"mp": dist.Replicate(), "sequences": dist.Shard(1)}.get(layout, dist.Shard(0))

    @paddle.jit.to_static(full_graph=True)
    def step(x, y):
        loss = model.loss(x, y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return [float(step(*(dist.shard_tensor(x, mesh, [placement]) for x in batch))) for batch in batches]


dist.init_parallel_env()
for layout in os.environ["LAYOUTS"].split():
    sys.stdout.write(f"{layout} {' '.join(f'{loss:.9g}' for loss in train(layout))}\n")
