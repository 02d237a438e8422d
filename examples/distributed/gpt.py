"""A GPT on any number of ranks: data, tensor and sequence parallelism, ZeRO, and checkpoints that any layout resumes.

    argosy launch --nproc_per_node 4 examples/distributed/gpt.py --dp 2 --mp 2 --zero 1 --checkpoint runs/gpt
    argosy launch --nproc_per_node 2 examples/distributed/gpt.py --dp 2 --zero 3 --checkpoint runs/gpt   # goes on

The model is that of one process. ``layout`` says where its tensors lie; communication follows from that, and losses do
not depend on it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import argosy as paddle
import argosy.distributed as dist
from argosy.models import GPT, GPTConfig

BATCH, LENGTH, VOCABULARY = 8, 16, 64
PLAN = {
    r"blocks\.\d+\.attention\.inward": dist.ColWiseParallel(),
    r"blocks\.\d+\.attention\.outward": dist.RowWiseParallel(),
    r"blocks\.\d+\.wide": dist.ColWiseParallel(),
    r"blocks\.\d+\.narrow": dist.RowWiseParallel(),
}
"""Tensor parallelism (Shoeybi et al., 2019): pairs of products, the first by columns, the second by rows, so that one
sum over ranks follows each pair."""
SEQUENCES = {
    r"blocks\.\d+\.norm\d": dist.SequenceParallelEnable(),
}
"""Sequence parallelism (Korthikanti et al., 2022): every rank normalises its part of the positions."""


class Batches(paddle.io.IterableDataset):
    """Sequences that count upwards, from step ``first`` on: the next token is easy to learn."""

    def __init__(self, first: int, steps: int) -> None:
        super().__init__()
        self.range = range(first, first + steps)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for step in self.range:
            starts = np.random.default_rng(step).integers(0, VOCABULARY, (BATCH, 1))
            tokens = (starts + np.arange(LENGTH + 1)) % VOCABULARY
            yield tokens[:, :-1], tokens[:, 1:]


def layout(options: argparse.Namespace) -> tuple[dist.ProcessMesh, dict[str, Any]]:
    """The mesh of ``dp * mp`` ranks, and what lies where on it."""
    mesh = dist.ProcessMesh(np.arange(options.dp * options.mp).reshape(options.dp, options.mp), ["dp", "mp"])
    plan = {**PLAN, **SEQUENCES} if options.sequence else PLAN
    config = {"dp_config": {"sharding_level": options.zero}, "mp_config": {"parallelize_plan": plan}}
    return mesh, config


def train(options: argparse.Namespace) -> list[float]:
    """The losses of ``options.steps`` compiled steps, after those of a checkpoint where there is one."""
    paddle.seed(0)
    model = GPT(GPTConfig(VOCABULARY, LENGTH, width=32, layers=options.layers, heads=4, dropout=0.1))
    rate = paddle.optimizer.lr.LinearWarmup(0.003, warmup_steps=5, start_lr=0.0003, end_lr=0.003)
    optimizer = paddle.optimizer.AdamW(rate, parameters=model.parameters())
    mesh, config = layout(options)
    model, optimizer = dist.parallelize(model, optimizer, mesh, config)

    state = {"model": model, "optimizer": optimizer, "progress": {"step": 0}}
    if options.checkpoint and os.path.isdir(options.checkpoint):
        dist.load_state_dict(state, options.checkpoint)
    loader = paddle.io.DataLoader(Batches(state["progress"]["step"], options.steps), batch_size=None)

    @paddle.jit.to_static(full_graph=True)
    def step(x: Any, y: Any) -> Any:
        loss = model.loss(x, y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    losses = []
    for x, y in dist.shard_dataloader(loader, mesh, shard_dims="dp"):
        losses.append(float(step(x, y)))
        rate.step()
    if options.checkpoint:
        state["progress"]["step"] += len(losses)
        dist.save_state_dict(state, options.checkpoint)
    return losses


def main(arguments: Sequence[str] | None = None) -> list[float]:
    """Read the command line, train, print the losses on rank 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dp", type=int, default=dist.get_world_size(), help="ranks that split batches")
    parser.add_argument("--mp", type=int, default=1, help="ranks that split each product")
    parser.add_argument("--zero", type=int, default=0, choices=range(4), help="stage of ZeRO")
    parser.add_argument("--sequence", action="store_true", help="split positions between the products")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--checkpoint", help="a folder to go on from, where it exists, and to write to")
    parser.add_argument("--plots", default="", help="a folder for a picture, which rank 0 makes; empty: none")
    given = parser.parse_args(arguments)
    losses = train(given)
    if dist.get_rank() == 0:
        print("\n".join(f"{loss:.6f}" for loss in losses))
        if given.plots:
            draw(losses, given)
    return losses


def draw(losses: list[float], given: argparse.Namespace) -> None:
    """The losses, and how many of a rank's numbers it takes: parameters and moments, by what is split."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(losses)
    left.set(
        title=f"loss on {dist.get_world_size()} ranks, dp={given.dp}, mp={given.mp}, zero={given.zero}",
        xlabel="step",
        ylabel="loss",
    )
    for row, least in enumerate((1, 2, 3)):  # the stage of ZeRO that splits it
        parts = given.mp * (given.dp if given.zero >= least else 1)
        for part in range(dist.get_world_size()):
            right.barh(row, 1 / parts, left=part * 1.1, height=0.6, color=f"C{part}")
            right.barh(row, 1, left=part * 1.1, height=0.6, fill=False, edgecolor="gray")
    right.set_yticks(range(3), ["moments", "gradients", "parameters"])
    right.set(title="what each rank keeps of the whole", xticks=[], xlabel="a colour for each rank")
    folder = Path(given.plots)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gpt.png", dpi=100)


if __name__ == "__main__":
    main()
