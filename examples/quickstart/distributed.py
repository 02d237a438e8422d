"""Go on training the quickstart's model on every rank that was launched, beside the same steps on one.

    argosy launch --nproc_per_node 2 examples/quickstart/distributed.py --out out/quickstart

The script is that of one process; four lines, marked below, say how tensors are laid out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from data import RandomBatches, Windows, read_text, split

import argosy as paddle
import argosy.distributed as dist
from argosy.models import GPT, GPTConfig

STEPS = 5


def batches(sizes: dict[str, int]) -> list[list[paddle.Tensor]]:
    """The text's windows after those that the first training has seen, as inputs and the bytes that follow them."""
    windows = Windows(split(read_text())[0], sizes["length"])
    order = RandomBatches(windows, sizes["batch"], sizes["seed"] + 1, 0, STEPS)
    rows = [[windows[place] for place in batch] for batch in order]
    return [[paddle.to_tensor(np.stack(part)) for part in zip(*batch, strict=True)] for batch in rows]


def train(out: Path, mesh: dist.ProcessMesh | None) -> list[float]:
    """Losses of a whole compiled step for each batch, on a mesh or (None) alone."""
    state = paddle.load(out / "checkpoint.safetensors")
    sizes = state["sizes"]
    model = GPT(GPTConfig(256, sizes["length"], sizes["width"], sizes["layers"], sizes["heads"]))
    model.set_state_dict(state["model"])
    data: Iterable[list[paddle.Tensor]] = batches(sizes)
    optimizer = paddle.optimizer.AdamW(1e-4, parameters=model.parameters())
    if mesh is not None:
        dist.shard_layer(model, mesh)  # 1: parameters on every rank
        data = dist.shard_dataloader(data, meshes=mesh, shard_dims="dp")  # 2: batches split
        optimizer = dist.shard_optimizer(optimizer, dist.ShardingStage1("dp"))  # 3: moments split

    @paddle.jit.to_static(full_graph=True)
    def step(ids: paddle.Tensor, following: paddle.Tensor) -> paddle.Tensor:
        loss: paddle.Tensor = model.loss(ids, following)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return [float(step(ids, following)) for ids, following in data]


def main() -> None:
    """Train both ways and compare. Raises AssertionError where losses differ by more than 1e-5 of their value."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/quickstart"))
    chosen = parser.parse_known_args()[0]  # the quickstart hands on the flags of training, too
    ranks = dist.get_world_size()
    together = train(chosen.out, dist.ProcessMesh(list(range(ranks)), dim_names=["dp"]))  # 4: the mesh
    if dist.get_rank():
        return  # one rank compares
    alone = train(chosen.out, None)
    print(f"\nfive more steps: loss on {ranks} ranks, loss on one")
    for a, b in zip(together, alone, strict=True):
        print(f"{a:20.6f} {b:20.6f}")
    np.testing.assert_allclose(together, alone, rtol=1e-5)


if __name__ == "__main__":
    main()
