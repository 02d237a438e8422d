"""What running an eager operator on a distributed tensor costs beside the same operator on an ordinary one.

``python benchmarks/distributed_dispatch.py [--peer-python PATH]``: microseconds of CPU time for each call on a mesh of
one rank, where nothing is communicated; with a peer's interpreter also for DTensor. Writes
results/distributed_dispatch.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side import commit, machine

CALLS, ROUNDS, SIZE = 50, 600, 16
Cases = dict[str, Callable[[], Any]]


def microseconds(call: Callable[[], Any]) -> float:
    """The least over rounds of the CPU time of one call: whatever else the machine does only adds to it. Before the
    last rounds what is hot has been compiled."""
    for _ in range(20):
        call()
    found = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(CALLS):
            call()
        found.append((time.process_time() - begin) / CALLS * 1e6)
    return round(min(found), 2)


def argosy_cases() -> dict[str, Cases]:
    import argosy as paddle
    import argosy.distributed as dist

    mesh = dist.ProcessMesh([0], dim_names=["x"])
    rows = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32)
    plain = paddle.to_tensor(rows)
    split, whole = dist.shard_tensor(plain, mesh, [dist.Shard(0)]), dist.shard_tensor(plain, mesh, [])
    return {
        "ordinary": _cases(paddle, plain, plain, paddle.add),
        "distributed": _cases(paddle, split, whole, paddle.add),
    }


def torch_cases() -> dict[str, Cases]:
    import os

    import torch
    import torch.distributed as dist
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29631", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (1,))
    plain = torch.from_numpy(np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32))
    split, whole = distribute_tensor(plain, mesh, [Shard(0)]), distribute_tensor(plain, mesh, [Replicate()])
    return {
        "ordinary": _cases(torch, plain, plain, torch.add),
        "distributed": _cases(torch, split, whole, torch.add),
    }


def _cases(library: Any, x: Any, w: Any, add: Callable[[Any, Any], Any]) -> Cases:
    return {
        "add": lambda: add(x, x),
        "tanh": lambda: library.tanh(x),
        "matmul": lambda: library.matmul(x, w),
        "addmm": lambda: library.addmm(x, x, w),
        "sum": lambda: library.sum(x, -1),
    }


def figures(framework: str) -> list[dict[str, Any]]:
    """One row for each operator."""
    kinds = argosy_cases() if framework == "argosy" else torch_cases()
    return [
        {
            "workload": "distributed_dispatch", "framework": framework, "operator": name,
            **{f"{kind}_us": microseconds(cases[name]) for kind, cases in kinds.items()},
        }
        for name in kinds["ordinary"]
    ]  # fmt: skip


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", choices=("argosy", "torch"), help="print this one's rows and write nothing")
    parser.add_argument("--peer-python", help="an interpreter with torch")
    options = parser.parse_args()
    if options.framework:
        print(json.dumps(figures(options.framework)))
        return
    rows = figures("argosy")
    if options.peer_python:
        command = [options.peer_python, __file__, "--framework", "torch"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows += json.loads(done.stdout.splitlines()[-1])
    for row in rows:
        print("{framework:8}{operator:8}{ordinary_us:9.2f} us {distributed_us:9.2f} us".format(**row))
    target = Path(__file__).parent / "results" / "distributed_dispatch.json"
    shown = ["PATH" if word == options.peer_python else word for word in sys.argv]  # no place on this machine
    found = {"command": " ".join(["python", *shown]), "commit": commit(), "machine": machine(), "figures": rows}
    target.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
