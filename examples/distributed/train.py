"""A few steps of a small GPT on every rank that was launched, beside the same steps on one.

    argosy launch --nproc_per_node 2 examples/distributed/train.py

The script is that of one process; four lines, marked below, say how tensors are laid out.
"""

import argparse
from pathlib import Path

import numpy as np

import argosy as paddle
import argosy.distributed as dist
from argosy.models import GPT, GPTConfig

STEPS = 5


def batches() -> list:
    """Sequences that count upwards: the next token is easy to learn."""
    rng = np.random.default_rng(0)
    starts = rng.integers(0, 32, (STEPS, 8, 1))
    counting = (starts + np.arange(17)) % 64
    return [[paddle.to_tensor(rows[:, :-1]), paddle.to_tensor(rows[:, 1:])] for rows in counting]


def train(mesh: dist.ProcessMesh | None) -> list[float]:
    """Losses of a whole compiled step for each batch, on a mesh or (None) alone."""
    paddle.seed(0)
    model = GPT(GPTConfig(vocabulary=64, positions=16, width=64, layers=2, heads=4, dropout=0.1))
    data = batches()
    optimizer = paddle.optimizer.AdamW(0.003, parameters=model.parameters())
    if mesh is not None:
        dist.shard_layer(model, mesh)  # 1: parameters on every rank
        data = dist.shard_dataloader(data, meshes=mesh, shard_dims="dp")  # 2: batches split
        optimizer = dist.shard_optimizer(optimizer, dist.ShardingStage1("dp"))  # 3: moments split

    @paddle.jit.to_static(full_graph=True)
    def step(x, y):
        loss = model.loss(x, y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return [float(step(x, y)) for x, y in data]


def main() -> None:
    """Train both ways and compare."""
    ranks = dist.get_world_size()
    together = train(dist.ProcessMesh(list(range(ranks)), dim_names=["dp"]))  # 4: the mesh
    alone = train(None)
    print(f"loss on {ranks} ranks   loss on one")
    for a, b in zip(together, alone, strict=True):
        print(f"{a:15.6f} {b:13.6f}")
    np.testing.assert_allclose(together, alone, rtol=1e-5)
    folder = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    folder.add_argument("--plots", default="", help="a folder for a picture, which rank 0 makes; empty: none")
    plots = folder.parse_args().plots
    if plots and dist.get_rank() == 0:
        draw(together, alone, ranks, Path(plots) / "train.png")


def draw(together: list[float], alone: list[float], ranks: int, path: Path) -> None:
    """Both losses, and their difference."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(alone, linewidth=4, alpha=0.4, label="one rank")
    left.plot(together, "o--", label=f"{ranks} ranks")
    left.set(title="loss", xlabel="step", ylabel="loss", xticks=range(len(alone)))
    left.legend()
    right.plot(np.abs(np.subtract(together, alone)) / np.abs(alone), "o-", color="tab:red")
    right.set(title="relative difference of the losses", xlabel="step", xticks=range(len(alone)))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main()
