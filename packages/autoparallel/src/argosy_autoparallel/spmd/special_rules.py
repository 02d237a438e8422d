"""Rules that neither notation nor linearity give: splitting an axis that indices address, and windows."""

from __future__ import annotations

from collections.abc import Iterator

from argosy_autoparallel.placement import Partial, Placement, ReduceType, Replicate, Shard
from argosy_autoparallel.spmd.registry import rule
from argosy_autoparallel.spmd.strategy import Strategy, StrategyQuery

_SUM = Partial(ReduceType.kRedSum)
_EVERYWHERE = Replicate()


@rule("gather")
def _(query: StrategyQuery) -> Iterator[Strategy]:
    """A split table: each rank gives the rows that it has and zeros for the others."""
    axes = query.attributes["axes"]
    if len(axes) == 1 and query.operands[0].dtype != "bool":
        yield Strategy((Shard(axes[0]), _EVERYWHERE), (_SUM,), "addressed")


@rule("scatter")
def _(query: StrategyQuery) -> Iterator[Strategy]:
    """Each rank takes the updates of the part that it has; or each adds some of the updates to zeros."""
    x, indices, _ = query.operands
    axes, batch, kind = (query.attributes[name] for name in ("axes", "batch", "kind"))
    if len(axes) == 1:
        yield Strategy((Shard(axes[0]), _EVERYWHERE, _EVERYWHERE), (Shard(axes[0]),), "addressed")
    if kind == "add" and x.dtype != "bool":
        for i in range(batch, len(indices.shape) - 1):
            yield Strategy((_SUM, Shard(i), Shard(i)), (_SUM,), f"update{i}")


@rule("dynamic_update_slice")
def _(query: StrategyQuery) -> Iterator[Strategy]:
    """Axes that the update covers may be split."""
    x, update = query.operands[:2]
    starts: tuple[Placement, ...] = (_EVERYWHERE,) * (len(query.operands) - 2)
    for i, (n, m) in enumerate(zip(x.shape, update.shape, strict=True)):
        if n == m:
            yield Strategy((Shard(i), Shard(i), *starts), (Shard(i),), f"d{i}")


@rule("cumulative")
def _(query: StrategyQuery) -> Iterator[Strategy]:
    """The axis itself: each rank adds what the totals of those before it come to."""
    axis = query.attributes["axis"]
    if query.given[0] == Shard(axis) and "scanned" not in query.taken:
        yield Strategy((Shard(axis),), (Shard(axis),), "scanned")
