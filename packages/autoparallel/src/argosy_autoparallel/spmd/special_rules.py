"""Rules that neither notation nor linearity give: splitting an axis that indices address, and windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
        for placement in _addressed(query, axes[0]):
            yield Strategy((placement, _EVERYWHERE), (_SUM,), "addressed")


def _addressed(query: StrategyQuery, axis: int) -> list[Placement]:
    """How an axis that indices address may be split, each part one stretch: as it is by given sizes, or as usual."""
    given = query.given[0]
    sized = isinstance(given, Shard) and (given.dim, given.split_factor) == (axis, 1) and given.sizes is not None
    return [given, Shard(axis)] if sized else [Shard(axis)]


@rule("scatter")
def _(query: StrategyQuery) -> Iterator[Strategy]:
    """Each rank takes the updates of the part that it has; or each adds some of the updates to zeros."""
    x, indices, _ = query.operands
    axes, batch, kind = (query.attributes[name] for name in ("axes", "batch", "kind"))
    if len(axes) == 1:
        for placement in _addressed(query, axes[0]):
            yield Strategy((placement, _EVERYWHERE, _EVERYWHERE), (placement,), "addressed")
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
    given = query.given[0]
    if not isinstance(given, Shard) or (given.dim, given.split_factor) != (query.attributes["axis"], 1):
        return
    if "scanned" not in query.taken:
        yield Strategy((given,), (given,), "scanned")


@rule("sort")
def _(query: StrategyQuery) -> Iterator[Strategy]:
    """The axis itself: ranks merge their parts."""
    placement: Placement = Shard(query.attributes["axis"])
    size = query.operands[0].shape[query.attributes["axis"]]
    if placement in query.given and "sorted" not in query.taken and type(size) is int:
        yield Strategy((placement,) * len(query.operands), (placement,) * len(query.results), "sorted")


@rule("slice")
def _(query: StrategyQuery) -> Iterator[Strategy]:
    """Whole blocks of an axis that is split in blocks."""
    placement, shape = query.given[0], query.operands[0].shape
    if not isinstance(placement, Shard) or placement.split_factor == 1 or type(shape[placement.dim]) is not int:
        return
    start, limit, stride = (query.attributes[part][placement.dim] for part in ("start", "limit", "stride"))
    size = shape[placement.dim] // placement.split_factor
    if stride == 1 and start % size == limit % size == 0 and limit > start:
        made = Shard(placement.dim, (limit - start) // size, placement.sizes)
        yield Strategy((placement,), (made,), f"blocks{placement.dim}")


@rule("pad")
def _(query: StrategyQuery) -> Iterator[Strategy]:
    """Whole blocks before and behind an axis that is split in blocks, or in one, as gradients of slices have it."""
    placement = query.given[0]
    shape: Any = query.operands[0].shape
    if query.plain or not isinstance(placement, Shard) or type(shape[placement.dim]) is not int:
        return
    low, high, interior = (query.attributes[part][placement.dim] for part in ("low", "high", "interior"))
    size = shape[placement.dim] // placement.split_factor
    if size and not interior and min(low, high) >= 0 and low % size == high % size == 0 and low + high:
        blocks = placement.split_factor + (low + high) // size
        made = Shard(placement.dim, blocks, placement.sizes)
        yield Strategy((placement, _EVERYWHERE), (made,), f"blocks{placement.dim}")


@rule("concat")
def _(query: StrategyQuery) -> Iterator[Strategy]:
    """Equal blocks one behind the other."""
    axis, given = query.attributes["axis"], query.given[0]
    shapes = {x.shape[axis] for x in query.operands}
    if query.plain or not isinstance(given, Shard) or (given.dim, given.split_factor) != (axis, 1):
        return
    if all(p == given for p in query.given) and len(shapes) == 1 and len(query.operands) > 1:
        (size,) = shapes
        if type(size) is int and size:
            yield Strategy(tuple(query.given), (Shard(axis, len(query.operands), given.sizes),), f"blocks{axis}")
