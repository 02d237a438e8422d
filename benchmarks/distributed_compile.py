"""What the first call of a GPT's training step costs on a mesh against the model's depth, the hooks of sequence
parallelism included: capture, partition and compile.

``python benchmarks/distributed_compile.py [--depths 12 48]`` takes the CPU time of a first call, two ranks in threads,
one process for each depth, without a cache of programs, and writes results/distributed_compile.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from side_by_side import commit, machine

RANKS, BATCH, TOKENS, VOCABULARY, WIDTH, HEADS = 2, 2, 32, 256, 64, 2


def first_call(depth: int) -> float:
    """CPU seconds of the first call of both ranks, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ARGOSY_CACHE_DIR": folder, "ARGOSY_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "--measure", str(depth)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return float(done.stdout.strip().splitlines()[-1])


def train_once(depth: int) -> None:
    """A rank's first step: products by columns and rows, sequences split between them by hooks."""
    import numpy as np

    import argosy as paddle
    import argosy.distributed as dist
    from argosy.models import GPT, GPTConfig

    paddle.seed(0)
    mesh = dist.ProcessMesh([[*range(RANKS)]], dim_names=["dp", "mp"])
    model = GPT(GPTConfig(VOCABULARY, TOKENS, WIDTH, depth, HEADS))
    plan: dict[str, Any] = {}
    for i in range(depth):
        plan |= {f"blocks.{i}.wide": [dist.ColWiseParallel(), dist.SequenceParallelEnd(False)]}
        plan |= {f"blocks.{i}.narrow": [dist.RowWiseParallel(), dist.SequenceParallelBegin(False)]}
    adam = paddle.optimizer.AdamW(1e-3, parameters=model.parameters())
    model, adam = dist.parallelize(model, adam, mesh, {"mp_config": {"parallelize_plan": plan}})
    ids = np.random.default_rng(0).integers(0, VOCABULARY, (2, BATCH, TOKENS))
    x, y = (dist.shard_tensor(paddle.to_tensor(each), mesh, []) for each in ids)

    @paddle.jit.to_static(full_graph=True)
    def train(x: Any, y: Any) -> Any:
        loss = model.loss(x, y)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    train(x, y)


def measure(depth: int) -> None:
    """The process of `first_call`: the ranks take turns, and what they import comes before."""
    from argosy.distributed.debug import run_ranks

    run_ranks(lambda: train_once(1), RANKS, timeout=3600)
    began = time.process_time()
    run_ranks(lambda: train_once(depth), RANKS, timeout=3600)
    print(time.process_time() - began)


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depths", type=int, nargs="+", default=[12, 48])
    parser.add_argument("--measure", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    rows = []
    for depth in options.depths:
        seconds = first_call(depth)
        rows.append({"workload": "distributed_compile", "framework": "argosy", "layers": depth, "cpu_s": seconds})
        print(f"{depth:>3} layers {seconds:7.2f} s, {seconds / depth * 1e3:6.0f} ms a layer")
    target = Path(__file__).parent / "results" / "distributed_compile.json"
    found = {"command": " ".join(["python", *sys.argv]), "commit": commit(), "machine": machine(), "figures": rows}
    target.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
