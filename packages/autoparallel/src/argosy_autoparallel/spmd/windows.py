"""Windows along a split axis: each rank computes the part of the result that is its own, from its part of the operand
and what it lacks of its neighbours' (halo exchange; Dryden et al., 2019, "Improving strong-scaling of CNN training by
exploiting finer-grained parallelism").

Convolutions, slices and pads are one thing along an axis: result ``i`` reads the positions from ``i * stride - low``
on, ``reach`` many, of an operand whose elements lie ``spread`` apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from argosy_autoparallel.local_slice import part_of
from argosy_autoparallel.placement import Partial, Placement, ReduceType, Replicate, Shard
from argosy_autoparallel.spmd.registry import rule
from argosy_autoparallel.spmd.strategy import Strategy, StrategyQuery

__all__ = ["Window", "parts_of", "reads_of", "window_of"]

Part = tuple[int, int]
"""Where a rank's part of an axis begins, and how long it is."""


class Window(NamedTuple):
    """How results along an axis read an operand of ``size`` elements."""

    size: int
    stride: int = 1
    low: int = 0
    spread: int = 1
    reach: int = 1

    def positions(self, start: int, length: int, count: int, dilation: int | None) -> tuple[int, int]:
        """The positions that ``length`` results from ``start`` on cover; or, where taps of a weight lie ``dilation``
        apart, those that all ``count`` results read by as many taps."""
        if dilation is None:
            first = start * self.stride - self.low
            return first, first + (length - 1) * self.stride + self.reach
        first = start * dilation - self.low
        return first, first + (count - 1) * self.stride + (length - 1) * dilation + 1

    def elements(self, first: int, end: int) -> tuple[int, int]:
        """The elements at the positions from ``first`` to ``end``: from which on, up to which."""
        start, stop = -(-first // self.spread), -(-end // self.spread)
        start = min(max(start, 0), self.size)
        return start, min(max(stop, start), self.size)


def window_of(name: str, attributes: Any, x: Sequence[Any], axis: int, w: Sequence[Any]) -> Window | None:
    """How ``prim.name`` reads its operand of shape ``x`` along ``axis``; ``w`` is the shape of a weight. None where it
    reads no windows there."""
    size = x[axis]
    if name == "slice":
        start, limit, stride = (attributes[part][axis] for part in ("start", "limit", "stride"))
        return Window(size, stride, -start) if (start, limit, stride) != (0, size, 1) else None
    if name == "pad":
        low, high, interior = (attributes[part][axis] for part in ("low", "high", "interior"))
        return Window(size, 1, low, interior + 1) if low or high or interior else None
    if axis < 2 or not size:
        return None
    i = axis - 2
    reach = (w[axis] - 1) * attributes["rhs_dilation"][i] + 1
    return Window(size, attributes["strides"][i], attributes["padding"][i][0], attributes["lhs_dilation"][i], reach)


def reads_of(window: Window, parts: Sequence[Part], count: int, dilation: int | None) -> list[tuple[int, int]]:
    """From which element on and up to which each rank reads, where each has its part of ``count`` results, or
    (``dilation`` is not None) all results by its part of the taps of a weight that lie so far apart."""
    return [window.positions(start, length, count, dilation) if length else (0, 0) for start, length in parts]


def parts_of(placement: Placement, size: int, ranks: int) -> list[Part]:
    """Where the part of each rank begins along an axis of ``size`` elements, and how long it is."""
    assert isinstance(placement, Shard)
    return [part_of(placement, size, ranks, rank) for rank in range(ranks)]


def _results_beside(window: Window, placement: Shard, count: int, ranks: int) -> Shard:
    """How results lie: evenly, or where the operand is in parts of given sizes each where the element in the middle of
    what it reads lies."""
    if placement.sizes is None:
        return placement
    if count == window.size and window.stride == window.spread == 1:
        return placement
    ends = [start + length for start, length in parts_of(placement, window.size, ranks)]
    middles = [(i * window.stride - window.low + window.reach // 2) // window.spread for i in range(count)]
    below = [sum(middle < end for middle in middles) for end in ends[:-1]]
    return Shard(placement.dim, 1, [b - a for a, b in pairwise([0, *below, count])])


@rule("conv", "slice", "pad")
def _(query: StrategyQuery) -> Iterator[Strategy]:
    """The axis that the operand is split along now, where no rank lacks more than half of what a gather brings."""
    placement, window = query.given[0], None
    if not isinstance(placement, Shard) or placement.split_factor > 1:
        return
    axis, ranks = placement.dim, query.size
    shapes: list[Any] = [x.shape for x in query.operands]
    window = window_of(query.name, query.attributes, shapes[0], axis, shapes[-1])
    count: Any = query.results[0].shape[axis]
    if window is None or f"window{axis}" in query.taken or type(count) is not int or type(window.size) is not int:
        return
    if placement.sizes is not None and (sum(placement.sizes), len(placement.sizes)) != (window.size, ranks):
        return  # of parts of the axis
    held, after = parts_of(placement, window.size, ranks), _results_beside(window, placement, count, ranks)
    if _is_local(window, held, reads_of(window, parts_of(after, count, ranks), count, None)):
        everywhere: tuple[Placement, ...] = (Replicate(),) * (len(query.operands) - 1)
        yield Strategy((placement, *everywhere), (after,), f"window{axis}")
    if query.name == "conv" and query.given[1] == placement:  # in the gradient of a weight
        dilation = query.attributes["rhs_dilation"][axis - 2]
        taps = parts_of(placement, shapes[1][axis], ranks)
        if _is_local(window, held, reads_of(window, taps, count, dilation)):
            yield Strategy((placement, placement), (Partial(ReduceType.kRedSum),), f"window{axis}")


def _is_local(window: Window, held: Sequence[Part], reads: Sequence[tuple[int, int]]) -> bool:
    for (start, length), (first, end) in zip(held, reads, strict=True):
        low, high = window.elements(first, end)
        own = max(0, min(start + length, high) - max(start, low))
        if 2 * (high - low - own) > window.size - length:
            return False
    return True
