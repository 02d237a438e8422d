"""Bytes that a rank sends in one compiled training step of a GPT, beside the closed forms for ring collectives.

``python benchmarks/distributed_bytes.py [--ranks 2]``. Data parallelism and ZeRO 1: 2P(d-1)/d elements for P parameters
on d ranks; ZeRO 3: 3P(d-1)/d; tensor parallelism (Shoeybi et al., 2019): four all-reduces of the activations a layer.
The columns of the fused projection are [query, key, value] by heads: they are split in three blocks, so that each rank
has whole heads of each.
Writes results/distributed_bytes.json, which tests/test_recorded_bytes.py compares with what is counted. Nothing is
timed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side import commit, machine

import argosy as paddle
import argosy.distributed as dist
from argosy.distributed.debug import run_ranks
from argosy.models import GPT, GPTConfig
from argosy_autoparallel.counting import count_collectives

BATCH, TOKENS, VOCABULARY, WIDTH, LAYERS = 8, 64, 512, 128, 2


def place_columns_and_rows(name: str, layer: Any, mesh: Any) -> None:
    """The first product of each pair by columns, the second by rows; the head stays whole."""
    last = name.rpartition(".")[2]
    if isinstance(layer, paddle.nn.Linear) and last != "head":
        columns = last in ("inward", "wide")
        blocks = 3 if last == "inward" else 1
        dist.shard_tensor(layer.weight, mesh, [dist.Shard(1 if columns else 0, split_factor=blocks)])
        if columns:
            dist.shard_tensor(layer.bias, mesh, [dist.Shard(0, split_factor=blocks)])


def step(layout: str, ranks: int) -> tuple[float, dict[str, int], int]:
    """Bytes sent by this rank, collectives, and the number of parameters."""
    paddle.seed(0)
    mesh = dist.ProcessMesh(list(range(ranks)), dim_names=["x"])
    model = GPT(GPTConfig(VOCABULARY, TOKENS, WIDTH, LAYERS, 4))
    dist.shard_layer(model, mesh, place_columns_and_rows if layout == "tensor" else None)
    stage = {"zero1": dist.ShardingStage1, "zero3": dist.ShardingStage3}.get(layout)
    adam = paddle.optimizer.AdamW(1e-3, parameters=model.parameters())
    optimizer = dist.shard_optimizer(adam, stage and stage("x"))
    ids = np.random.default_rng(0).integers(0, VOCABULARY, (2, BATCH, TOKENS))
    batch = [paddle.to_tensor(x) for x in ids]
    loader = dist.shard_dataloader([batch] * 2, mesh, shard_dims=None if layout == "tensor" else "x")

    @paddle.jit.to_static(full_graph=True)
    def train(x: Any, y: Any) -> Any:
        loss = model.loss(x, y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    for x, y in loader:
        with count_collectives() as counts:
            train(x, y)
    return counts.total_bytes, counts.calls, sum(p.size for p in model.parameters())


def formula(layout: str, ranks: int, parameters: int) -> float:
    """Bytes by the closed form, for 4-byte elements."""
    share = (ranks - 1) / ranks
    if layout == "tensor":
        return 4 * LAYERS * 2 * share * 4 * BATCH * TOKENS * WIDTH
    return (3 if layout == "zero3" else 2) * 4 * parameters * share


def main() -> None:
    """Count, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    options = parser.parse_args()
    rows = []
    for layout in ("data", "zero1", "zero3", "tensor"):
        counted, calls, parameters = run_ranks(lambda layout=layout: step(layout, options.ranks), options.ranks)[0]
        expected = formula(layout, options.ranks, parameters)
        rows.append({
            "workload": "distributed_bytes", "framework": "argosy", "layout": layout, "ranks": options.ranks,
            "bytes": counted, "formula": expected, "ratio": round(counted / expected, 4), "calls": calls,
        })  # fmt: skip
        print(f"{layout:8}{counted:12.0f} of {expected:12.0f} bytes, {counted / expected:6.3f}  {calls}")
    target = Path(__file__).parent / "results" / "distributed_bytes.json"
    found = {"command": " ".join(["python", *sys.argv]), "commit": commit(), "machine": machine(), "figures": rows}
    target.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
