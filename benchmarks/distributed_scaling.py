"""How a compiled data-parallel training step of a GPT scales from one rank to several, one core each.

``python benchmarks/distributed_scaling.py [--ranks 2] [--turns 12]``: ranks are started by argosy.distributed.launch
and share the same global batch. Steps of one rank, with the others idle, and of all of them are taken in turns, and a
speedup is the median of those of single turns: what else slows a machine for a while slows both. The first steps of a
turn do not count: a core that has idled takes some to come back to its speed. Beside it is the speedup of the fastest
steps, in which nothing has slowed either core. Ranks that communicate nothing, each with a training of its own of the
whole batch, but wait for each other after a step, say what the machine leaves several such steps at once: the speedup
that no step surpasses, of which each figure is a share.
Writes results/distributed_scaling.json, with that of copies and products (``shared_machine.py``) beside it.
Needs a quiet machine with a core a rank.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from shared_machine import shared_limits
from side_by_side import commit, machine

BATCH, TOKENS, VOCABULARY, WIDTH, LAYERS, HEADS = 8, 128, 1024, 256, 4, 4
HERE = Path(__file__).resolve()
WARM_UP = 3
IDLE, COUNTED = 2, 5
"""Steps of a turn, of which the first do not count."""

WAYS = {
    "alone": "one rank",
    "copies": "copies",
    "split": "states split",
    "apart": "without communication, each the whole batch",
}


def training(way: str) -> Callable[[], float]:
    """A step of this rank, which gives its loss: alone with the whole batch ("alone", "apart"), or with all ranks, of
    which each updates all parameters ("copies") or its part of them ("split", ZeRO 1)."""
    import argosy as paddle
    import argosy.distributed as dist
    from argosy.models import GPT, GPTConfig

    ranks = [dist.get_rank()] if way in ("alone", "apart") else list(range(dist.get_world_size()))
    mesh = dist.ProcessMesh(ranks, dim_names=["dp"])
    paddle.seed(0)
    model = dist.shard_layer(GPT(GPTConfig(VOCABULARY, TOKENS, WIDTH, LAYERS, HEADS)), mesh)
    adam = paddle.optimizer.AdamW(3e-4, parameters=model.parameters())
    optimizer = dist.shard_optimizer(adam, dist.ShardingStage1("dp") if way == "split" else None)
    ids = np.random.default_rng(0).integers(0, VOCABULARY, (2, BATCH, TOKENS))
    ((x, y),) = dist.shard_dataloader([[paddle.to_tensor(x) for x in ids]], mesh, shard_dims="dp")

    @paddle.jit.to_static(full_graph=True)
    def step(x: Any, y: Any) -> Any:
        loss = model.loss(x, y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return lambda: float(step(x, y))


def take_turns(turns: int, target: Path) -> None:
    """One rank: seconds of the steps of each turn in each way, one way after the other; rank 0 writes ``target``."""
    import argosy.distributed as dist

    dist.init_parallel_env()
    ways = [way for way in WAYS if way != "alone" or dist.get_rank() == 0]
    trainings = {way: training(way) for way in ways}
    losses = {way: [step() for _ in range(WARM_UP)] for way, step in trainings.items()}
    seconds: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    for _ in range(turns):
        for way in WAYS:
            found = []
            for _ in range(IDLE + COUNTED):
                dist.barrier()
                begin = time.perf_counter()
                if way in trainings:
                    trainings[way]()
                if way == "apart":
                    dist.barrier()
                found.append(time.perf_counter() - begin)
            seconds[way].append(found[IDLE:])
    if dist.get_rank() == 0:
        target.write_text(json.dumps({"seconds": seconds, "losses": losses}))


def launch(ranks: int, turns: int, folder: Path) -> list[dict[str, Any]]:
    """A row for each way, of ``ranks`` ranks with one thread each."""
    target = folder / f"scaling-{ranks}.json"
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARGOSY_NUM_THREADS")}
    options = ["--nproc_per_node", str(ranks), "--log_dir", str(folder / "log")]
    command = [sys.executable, "-m", "argosy.distributed.launch", *options, str(HERE)]
    subprocess.run(
        [*command, "--figures", str(target), "--turns", str(turns)], check=True, env={**os.environ, **threads}
    )
    found: dict[str, Any] = json.loads(target.read_text())
    return [row(way, ranks, found["seconds"], found["losses"][way]) for way in WAYS]


def row(way: str, ranks: int, seconds: dict[str, list[list[float]]], losses: list[float]) -> dict[str, Any]:
    """The median step of a way, its ``speedup`` over the steps of one rank beside it, that of the ``fastest`` steps,
    and the ``share`` of the speedup that as many ranks have which do not communicate."""
    factor = ranks if way == "apart" else 1  # as many batches
    medians = {each: [statistics.median(turn) for turn in turns] for each, turns in seconds.items()}
    least = {each: min(map(min, turns)) for each, turns in seconds.items()}
    bound = ranks * statistics.median(a / b for a, b in zip(medians["alone"], medians["apart"], strict=True))
    speedup = factor * statistics.median(a / b for a, b in zip(medians["alone"], medians[way], strict=True))
    return {
        "workload": "distributed_scaling",
        "framework": "argosy",
        "ranks": 1 if way == "alone" else ranks,
        "way": way,
        "step_ms": round(statistics.median(medians[way]) * 1e3, 3),
        "speedup": round(speedup, 3),
        "fastest": round(factor * least["alone"] / least[way], 3),
        "share": 1.0 if way == "alone" else round(speedup / bound, 3),
        "losses": losses,
    }


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="*", default=[2])
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--figures", type=Path, help="run as one rank and write the figures here")
    options = parser.parse_args()
    if options.figures:
        take_turns(options.turns, options.figures)
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for ranks in options.ranks for row in launch(ranks, options.turns, Path(folder))]
    for each in rows:
        print(
            f"{each['ranks']} ranks, {WAYS[each['way']]}: {each['step_ms']:.2f} ms, speedup {each['speedup']:.2f} "
            f"({each['fastest']:.2f} of the fastest), "
            f"{each['share']:.0%} of what the machine leaves, {each['losses']}"
        )
    limits = shared_limits(max(options.ranks))
    print(f"limits of {max(options.ranks)} processes of this machine: {limits}")
    target = HERE.parent / "results" / "distributed_scaling.json"
    found = {
        "limits": limits,
        "command": " ".join(["python", *sys.argv]),
        "commit": commit(),
        "machine": machine(),
        "figures": rows,
    }
    target.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
