"""How a compiled data-parallel training step of a GPT scales from one rank to two, one core each.

``python benchmarks/distributed_scaling.py [--ranks 1 2] [--steps 20]``: ranks are started by argosy.distributed.launch
and share the same global batch. Ranks that do not communicate, each with a training of its own of the whole batch, say
what the machine leaves several such steps at once: the speedup that no step surpasses, of which each figure is a share.
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
import time
from pathlib import Path
from typing import Any

import numpy as np
from shared_machine import shared_limits
from side_by_side import commit, machine

BATCH, TOKENS, VOCABULARY, WIDTH, LAYERS, HEADS = 8, 128, 1024, 256, 4, 4
HERE = Path(__file__).resolve()


WAYS = {"copies": "copies", "split": "states split", "apart": "without communication, each the whole batch"}


def train(steps: int, target: Path, way: str) -> None:
    """One rank: median seconds of a step; rank 0 writes them to ``target``. ``way``: each rank updates its part of the
    parameters ("split", ZeRO 1), all of them ("copies"), or is alone with the whole batch ("apart")."""
    import argosy as paddle
    import argosy.distributed as dist
    from argosy.models import GPT, GPTConfig

    dist.init_parallel_env()
    ranks = [dist.get_rank()] if way == "apart" else list(range(dist.get_world_size()))
    mesh = dist.ProcessMesh(ranks, dim_names=["dp"])
    paddle.seed(0)
    model = dist.shard_layer(GPT(GPTConfig(VOCABULARY, TOKENS, WIDTH, LAYERS, HEADS)), mesh)
    adam = paddle.optimizer.AdamW(3e-4, parameters=model.parameters())
    optimizer = dist.shard_optimizer(adam, dist.ShardingStage1("dp") if way == "split" else None)
    ids = np.random.default_rng(0).integers(0, VOCABULARY, (2, BATCH, TOKENS))
    loader = dist.shard_dataloader([[paddle.to_tensor(x) for x in ids]], mesh, shard_dims="dp")
    ((x, y),) = loader

    @paddle.jit.to_static(full_graph=True)
    def step(x: Any, y: Any) -> Any:
        loss = model.loss(x, y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    losses = [float(step(x, y)) for _ in range(3)]
    seconds = []
    for _ in range(steps):
        dist.barrier()
        begin = time.perf_counter()
        loss = step(x, y)
        float(loss)
        seconds.append(time.perf_counter() - begin)
    if dist.get_rank() == 0:
        target.write_text(json.dumps({"step_ms": round(statistics.median(seconds) * 1e3, 3), "losses": losses}))


def launch(ranks: int, way: str, steps: int, folder: Path) -> dict[str, Any]:
    """Run ``train`` on ``ranks`` ranks with one thread each."""
    target = folder / f"scaling-{ranks}.json"
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARGOSY_NUM_THREADS")}
    options = ["--nproc_per_node", str(ranks), "--log_dir", str(folder / "log")]
    command = [sys.executable, "-m", "argosy.distributed.launch", *options, str(HERE)]
    command += ["--figures", str(target), "--steps", str(steps), "--way", way]
    subprocess.run(command, check=True, env={**os.environ, **threads})
    found: dict[str, Any] = json.loads(target.read_text())
    target.unlink()
    return {"workload": "distributed_scaling", "framework": "argosy", "ranks": ranks, "way": way, **found}


def add_speedups(rows: list[dict[str, Any]]) -> None:
    """Give each row its ``speedup`` over the first, which is of one rank, and its ``share`` of the speedup that as many
    ranks have which do not communicate."""
    one = rows[0]["step_ms"]
    bounds = {row["ranks"]: row["ranks"] * one / row["step_ms"] for row in rows if row["way"] == "apart"}
    for row in rows:
        bound = bounds.get(row["ranks"], row["ranks"])
        row["speedup"] = round(bound if row["way"] == "apart" else one / row["step_ms"], 3)
        row["share"] = round(row["speedup"] / bound, 3)


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--figures", type=Path, help="run as one rank and write the figures here")
    parser.add_argument("--way", choices=WAYS, default="copies", help="as one rank: what it does")
    options = parser.parse_args()
    if options.figures:
        train(options.steps, options.figures, options.way)
        return
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        cases = [(ranks, way) for ranks in options.ranks for way in (WAYS if ranks > 1 else ["copies"])]
        rows = [launch(*case, options.steps, Path(folder)) for case in cases]
    add_speedups(rows)
    for row in rows:
        print(
            f"{row['ranks']} ranks, {WAYS[row['way']]}: {row['step_ms']:.2f} ms, speedup {row['speedup']:.2f}, "
            f"{row['share']:.0%} of what the machine leaves, {row['losses']}"
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
