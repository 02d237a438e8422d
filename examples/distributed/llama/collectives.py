"""What annotated.py does, with every collective by hand, as one writes it for a library that knows tensors of one rank.

argosy launch --nproc_per_node 4 examples/distributed/llama/collectives.py
"""

from __future__ import annotations

from typing import Any

from one_process import Llama, batches, build

import argosy as paddle
import argosy.distributed as dist
from argosy import nn
from argosy.nn import functional as F


class Grid:
    """This rank's place among ``dp * mp`` ranks, and its two groups."""

    def __init__(self, mp: int) -> None:
        rank, size = dist.get_rank(), dist.get_world_size()
        self.copy, self.part, self.parts = rank // mp, rank % mp, mp
        rows = [list(range(start, start + mp)) for start in range(0, size, mp)]
        columns = [list(range(start, size, mp)) for start in range(mp)]
        self.split = [dist.new_group(row) for row in rows][self.copy]
        self.copies = [dist.new_group(column) for column in columns][self.part]

    def slice(self, whole: Any, axis: int) -> Any:
        """This rank's part of a parameter, as a parameter."""
        part = whole.chunk(self.parts, axis)[self.part].clone()
        parameter = paddle.create_parameter(part.shape, "float32")
        parameter.set_value(part)
        parameter.is_split = True
        return parameter


class SumOfGradients(paddle.autograd.PyLayer):
    """The identity in front of a product split by columns; gradients of its parts are summed."""

    @staticmethod
    def forward(context: Any, x: Any, group: Any) -> Any:
        context.group = group
        return x.clone()

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        gradient = gradient.clone()
        dist.all_reduce(gradient, group=context.group)
        return gradient


class SumOfParts(paddle.autograd.PyLayer):
    """The sum behind a product split by rows; its gradient is that of each part."""

    @staticmethod
    def forward(_context: Any, x: Any, group: Any) -> Any:
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(_context: Any, gradient: Any) -> Any:
        return gradient.clone()


class ColumnParallelLinear(nn.Layer):
    """A linear layer of which a rank computes some columns (Shoeybi et al., 2019)."""

    def __init__(self, whole: nn.Linear, grid: Grid) -> None:
        super().__init__()
        self.grid, self.weight = grid, grid.slice(whole.weight, 1)

    def forward(self, x: Any) -> Any:
        return F.linear(SumOfGradients.apply(x, self.grid.split), self.weight)


class RowParallelLinear(nn.Layer):
    """A linear layer of which a rank multiplies some rows."""

    def __init__(self, whole: nn.Linear, grid: Grid) -> None:
        super().__init__()
        self.grid, self.weight = grid, grid.slice(whole.weight, 0)

    def forward(self, x: Any) -> Any:
        return SumOfParts.apply(F.linear(x, self.weight), self.grid.split)


class VocabularyPart:
    """Where a token lies in this rank's part of the vocabulary."""

    def __init__(self, grid: Grid, size: int) -> None:
        self.first, self.size = grid.part * size, size

    def locate(self, tokens: Any) -> tuple[Any, Any]:
        """Indices within the part, and 1 where the token is in it, 0 elsewhere."""
        local = tokens - self.first
        inside = (local >= 0) & (local < self.size)
        return paddle.where(inside, local, paddle.zeros_like(local)), inside.astype("float32")


class ParallelEmbedding(nn.Layer):
    """An embedding of which a rank holds a part of the vocabulary."""

    def __init__(self, whole: nn.Embedding, grid: Grid) -> None:
        super().__init__()
        self.grid, self.weight = grid, grid.slice(whole.weight, 0)
        self.vocabulary = VocabularyPart(grid, self.weight.shape[0])

    def forward(self, tokens: Any) -> Any:
        local, inside = self.vocabulary.locate(tokens)
        return SumOfParts.apply(F.embedding(local, self.weight) * inside.unsqueeze(-1), self.grid.split)


class ParallelCrossEntropy(nn.Layer):
    """Mean cross-entropy of logits of which a rank holds a part of the vocabulary."""

    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self.grid = grid

    def forward(self, logits: Any, tokens: Any) -> Any:
        largest = logits.detach().max(-1, keepdim=True)
        dist.all_reduce(largest, dist.ReduceOp.MAX, self.grid.split)
        logits = logits - largest
        total = SumOfParts.apply(logits.exp().sum(-1), self.grid.split)
        local, inside = VocabularyPart(self.grid, logits.shape[-1]).locate(tokens)
        right = paddle.take_along_axis(logits, local.unsqueeze(-1), -1).squeeze(-1) * inside
        return (total.log() - SumOfParts.apply(right, self.grid.split)).mean()


def split(model: Llama, grid: Grid) -> None:
    """Replace the layers of a model of one process by this rank's parts."""
    model.embedding = ParallelEmbedding(model.embedding, grid)
    model.head = ColumnParallelLinear(model.head, grid)
    model.loss = ParallelCrossEntropy(grid)
    for block in model.blocks:
        for layer, names in ((block.attention, ("query", "key", "value")), (block, ("gate", "up"))):
            for name in names:
                setattr(layer, name, ColumnParallelLinear(getattr(layer, name), grid))
        block.attention.output = RowParallelLinear(block.attention.output, grid)
        block.down = RowParallelLinear(block.down, grid)


class ShardedAdamW:
    """AdamW of which each copy holds the states of some parameters (ZeRO 1; Rajbhandari et al., 2020)."""

    def __init__(self, parameters: list[Any], clip: float, grid: Grid) -> None:
        self.parameters, self.clip, self.grid = parameters, clip, grid
        self.mine = [p for i, p in enumerate(parameters) if i % grid.copies.nranks == grid.copy]
        self.adamw = paddle.optimizer.AdamW(0.003, parameters=self.mine, weight_decay=0.1)

    @paddle.no_grad()
    def step(self) -> None:
        """Sum gradients at their owner, clip them by the norm of all, update, and hand the parameters out."""
        owners = self.grid.copies.ranks
        for i, parameter in enumerate(self.parameters):
            parameter.grad.scale_(1 / len(owners))
            dist.reduce(parameter.grad, owners[i % len(owners)], group=self.grid.copies)
        squares = paddle.zeros([])
        for parameter in self.mine:  # a whole parameter counts once, not once on each part
            share = 1 if getattr(parameter, "is_split", False) else 1 / self.grid.parts
            squares += parameter.grad.square().sum() * share
        dist.all_reduce(squares)
        factor = self.clip / paddle.maximum(squares.sqrt(), paddle.full([], self.clip))
        for parameter in self.mine:
            parameter.grad.multiply_(factor)
        self.adamw.step()
        for i, parameter in enumerate(self.parameters):
            dist.broadcast(parameter, owners[i % len(owners)], group=self.grid.copies)
            parameter.clear_grad()


def run(mp: int = 2) -> list[float]:
    """The losses on ``dp * mp`` ranks."""
    grid = Grid(mp)
    model, _ = build()
    split(model, grid)
    optimizer = ShardedAdamW(model.parameters(), 0.5, grid)
    losses = []
    for batch in batches():
        x, y = (tensor.chunk(grid.copies.nranks)[grid.copy] for tensor in batch)
        loss = model.loss(model(x), y)
        loss.backward()
        optimizer.step()
        mean = loss.detach() / grid.copies.nranks
        dist.all_reduce(mean, group=grid.copies)
        losses.append(float(mean))
    return losses


if __name__ == "__main__":
    losses = run()
    if dist.get_rank() == 0:
        print("\n".join(f"{loss:.6f}" for loss in losses))
