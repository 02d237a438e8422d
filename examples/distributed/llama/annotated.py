"""one_process.py on a grid of ranks: copies (dp) of split products (mp), optimizer states split over the copies.

argosy launch --nproc_per_node 4 examples/distributed/llama/annotated.py
"""

from __future__ import annotations

import numpy as np
from one_process import batches, build, train

import argosy.distributed as dist

PLAN = {
    "embedding": dist.RowWiseParallel(),
    r"blocks\.\d+\.(attention\.(query|key|value)|gate|up)|head": dist.ColWiseParallel(),
    r"blocks\.\d+\.(attention\.output|down)": dist.RowWiseParallel(),
}


def run(mp: int = 2) -> list[float]:
    """The losses on ``dp * mp`` ranks."""
    mesh = dist.ProcessMesh(np.arange(dist.get_world_size()).reshape(-1, mp), ["dp", "mp"])
    config = {"dp_config": {"sharding_level": 1}, "mp_config": {"parallelize_plan": PLAN}}
    model, optimizer = dist.parallelize(*build(), mesh, config)
    return train(model, optimizer, dist.shard_dataloader(batches(), mesh, shard_dims="dp"))


if __name__ == "__main__":
    losses = run()
    if dist.get_rank() == 0:
        print("\n".join(f"{loss:.6f}" for loss in losses))
