"""Distributed tensors, on two ranks that are threads."""

from __future__ import annotations

from typing import Any

import argosy as paddle
import argosy.distributed as dist


def ranks(benchmark: Any, work: Any) -> None:
    """Time ten rounds of what every rank does, setting up left out where ``work`` returns a function."""
    benchmark.pedantic(lambda: dist.debug.run_ranks(work, 2), rounds=5, warmup_rounds=1)


def test_100_reshards(benchmark: Any) -> None:
    def work() -> None:
        mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
        split = dist.shard_tensor(paddle.ones([64, 64]), mesh, [dist.Shard(0)])
        for _ in range(50):
            whole = dist.reshard(split, mesh, [dist.Replicate()])
            dist.reshard(whole, mesh, [dist.Shard(1)])

    ranks(benchmark, work)


def test_100_operators(benchmark: Any) -> None:
    def work() -> None:
        mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
        x = dist.shard_tensor(paddle.ones([64, 64]), mesh, [dist.Shard(0)])
        for _ in range(100):
            x = x * 1.0

    ranks(benchmark, work)
