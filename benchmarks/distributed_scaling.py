"""How a compiled data-parallel training step of a GPT scales from one rank to two, one core each.

``python benchmarks/distributed_scaling.py [--ranks 1 2] [--steps 20]``: ranks are started by argosy.distributed.launch
and share the same global batch. Writes results/distributed_scaling.json. Needs a quiet machine with a core a rank.
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
from side_by_side import commit, machine

BATCH, TOKENS, VOCABULARY, WIDTH, LAYERS, HEADS = 8, 128, 1024, 256, 4, 4
HERE = Path(__file__).resolve()


def train(steps: int, target: Path) -> None:
    """One rank: median seconds of a step; rank 0 writes them to ``target``."""
    import argosy as paddle
    import argosy.distributed as dist
    from argosy.models import GPT, GPTConfig

    dist.init_parallel_env()
    mesh = dist.ProcessMesh(list(range(dist.get_world_size())), dim_names=["dp"])
    paddle.seed(0)
    model = dist.shard_layer(GPT(GPTConfig(VOCABULARY, TOKENS, WIDTH, LAYERS, HEADS)), mesh)
    optimizer = dist.shard_optimizer(paddle.optimizer.AdamW(3e-4, parameters=model.parameters()))
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


def launch(ranks: int, steps: int, folder: Path) -> dict[str, Any]:
    """Run ``train`` on ``ranks`` ranks with one thread each."""
    target = folder / f"scaling-{ranks}.json"
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARGOSY_NUM_THREADS")}
    options = ["--nproc_per_node", str(ranks), "--log_dir", str(folder / "log")]
    command = [sys.executable, "-m", "argosy.distributed.launch", *options, str(HERE)]
    command += ["--figures", str(target), "--steps", str(steps)]
    subprocess.run(command, check=True, env={**os.environ, **threads})
    found: dict[str, Any] = json.loads(target.read_text())
    target.unlink()
    return {"workload": "distributed_scaling", "framework": "argosy", "ranks": ranks, **found}


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--figures", type=Path, help="run as one rank and write the figures here")
    options = parser.parse_args()
    if options.figures:
        train(options.steps, options.figures)
        return
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        rows = [launch(ranks, options.steps, Path(folder)) for ranks in options.ranks]
    for row in rows:
        row["speedup"] = round(rows[0]["step_ms"] / row["step_ms"], 3)
        print(f"{row['ranks']} ranks {row['step_ms']:10.2f} ms a step, speedup {row['speedup']:5.2f}  {row['losses']}")
    target = HERE.parent / "results" / "distributed_scaling.json"
    found = {"command": " ".join(["python", *sys.argv]), "commit": commit(), "machine": machine(), "figures": rows}
    target.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
