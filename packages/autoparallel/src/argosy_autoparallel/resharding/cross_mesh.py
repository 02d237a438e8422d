"""From one mesh to another: each rank of the target gets the boxes that it lacks from ranks that have them.

Every rank writes its half of the same plan: sends first (they never wait), then receipts, in one order everywhere.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, product
from math import prod
from typing import NamedTuple

from argosy_autoparallel.local_slice import LocalBox, LocalSlice
from argosy_autoparallel.resharding.emitter import Emitter
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops import prim
from argosy_pir import Value

__all__ = ["Transfer", "emit_transfers", "plan_transfers"]

_SMALL = 1 << 14
"""Elements of a box that is sent with others of its pair of ranks."""


class Transfer(NamedTuple):
    """A box (in global indices) that goes from one rank to another."""

    source: int
    target: int
    offset: tuple[int, ...]
    shape: tuple[int, ...]


def plan_transfers(source: Layout, target: Layout, shape: tuple[int, ...]) -> list[Transfer]:
    """Who sends what to whom; layouts without Partial. A rank prefers its own data, then spreads over the holders.

    Takes time in proportion to the ranks and the transfers.
    """
    parts, found = _Parts(source, shape), []
    for number, rank in enumerate(target.mesh.process_ids):
        own = source.local_boxes(shape, rank) if source.mesh.contains(rank) else ()
        for wanted in target.local_boxes(shape, rank):
            for part, holders in parts.find_overlaps(wanted):
                giver = rank if part in own else holders[number % len(holders)]
                found.append(Transfer(giver, rank, *_intersection(part, wanted)))
    return found


class _Parts:
    """The different boxes that ranks hold of a tensor, with their holders, found by where they lie.

    Each tensor axis is cut by mesh dimensions of its own, so that the boxes are the cells of a grid.
    """

    def __init__(self, layout: Layout, shape: tuple[int, ...]) -> None:
        self._cells: dict[tuple[int, ...], tuple[LocalBox, list[int]]] = {}
        for rank in layout.mesh.process_ids:
            for part in layout.local_boxes(shape, rank):
                self._cells.setdefault(part.offset, (part, []))[1].append(rank)
        self._starts = [sorted(set(starts)) for starts in zip(*self._cells, strict=True)]

    def find_overlaps(self, wanted: LocalBox) -> Iterator[tuple[LocalBox, list[int]]]:
        """The boxes that share elements with another, and who holds each, in order of their places."""
        along = [
            starts[bisect_right(starts, first) - 1 : bisect_left(starts, first + size)]
            for starts, first, size in zip(self._starts, wanted.offset, wanted.shape, strict=True)
        ]
        for place in product(*along):
            yield self._cells[place]


def _intersection(a: LocalBox, b: LocalBox) -> LocalSlice:
    """What two boxes share that overlap."""
    start = tuple(map(max, a.offset, b.offset))
    stop = [min(x + n, y + m) for x, n, y, m in zip(a.offset, a.shape, b.offset, b.shape, strict=True)]
    return LocalSlice(start, tuple(e - s for s, e in zip(start, stop, strict=True)))


def emit_transfers(
    emitter: Emitter, x: Value | None, source: Layout, target: Layout, shape: tuple[int, ...], dtype: str
) -> Value | None:
    """Emit this rank's half; ``x`` is its part on the source mesh. None on ranks outside the target mesh."""
    rank, arrived = emitter.rank, []
    messages = _messages(plan_transfers(source, target, shape))
    held = source.local_boxes(shape, rank) if source.mesh.contains(rank) else ()
    mine = target.local_boxes(shape, rank) if target.mesh.contains(rank) else ()
    for message in messages:
        giver, taker, *_ = message[0]
        if giver == rank:
            assert x is not None
            pieces = [_cut(x, _place(held, each), each.shape) for each in message]
            if taker == rank:
                arrived += [(_place(mine, each), piece) for each, piece in zip(message, pieces, strict=True)]
            else:
                emitter.communicate("send", _pack(pieces), peer=taker)
    for message in messages:
        giver, taker, *_ = message[0]
        if taker == rank != giver:
            size = message[0].shape if len(message) == 1 else (sum(prod(each.shape) for each in message),)
            got = emitter.communicate("recv", None, shape=size, dtype=dtype, peer=giver)
            assert got is not None
            pieces = _unpack(got, [each.shape for each in message])
            arrived += [(_place(mine, each), piece) for each, piece in zip(message, pieces, strict=True)]
    return _assemble(target.local_slice(shape, rank).shape, arrived, dtype) if target.mesh.contains(rank) else None


def _messages(plan: Sequence[Transfer]) -> list[list[Transfer]]:
    """What goes from one rank to another at once: small boxes together, whose copies cost less than messages do."""
    small: dict[tuple[int, int], list[Transfer]] = {}
    found: list[list[Transfer]] = []
    for each in plan:
        if prod(each.shape) > _SMALL:
            found.append([each])
            continue
        pair = (each.source, each.target)
        if pair not in small:
            found.append(small.setdefault(pair, []))
        small[pair].append(each)
    return found


def _pack(pieces: Sequence[Value]) -> Value:
    made: Value = pieces[0]
    if len(pieces) > 1:
        made = prim.concat(*[prim.reshape(each, shape=(prod(each.shape),)) for each in pieces], axis=0)
    return made


def _unpack(packed: Value, shapes: Sequence[tuple[int, ...]]) -> list[Value]:
    if len(shapes) == 1:
        return [packed]
    sizes = [prod(shape) for shape in shapes]
    starts = accumulate(sizes, initial=0)
    return [
        prim.reshape(_cut(packed, (start,), (size,)), shape=shape)
        for start, size, shape in zip(starts, sizes, shapes, strict=False)  # the last start is the end
    ]


def _place(boxes: Sequence[LocalBox], transfer: Transfer) -> tuple[int, ...]:
    """Where what is transferred lies in the array of a rank that has these boxes."""
    for box in boxes:
        within = [o - b for o, b in zip(transfer.offset, box.offset, strict=True)]
        if all(0 <= w < n for w, n in zip(within, box.shape, strict=True)):
            return tuple(p + w for p, w in zip(box.place, within, strict=True))
    raise ValueError(f"{transfer} is in none of {boxes}")


def _cut(x: Value, start: tuple[int, ...], shape: tuple[int, ...]) -> Value:
    limit = tuple(s + n for s, n in zip(start, shape, strict=True))
    if limit == tuple(x.shape) and not any(start):
        return x
    made: Value = prim.slice(x, start=start, limit=limit, stride=(1,) * len(start))
    return made


def _assemble(shape: tuple[int, ...], arrived: list[tuple[tuple[int, ...], Value]], dtype: str) -> Value:
    if len(arrived) == 1 and tuple(arrived[0][1].shape) == shape:
        return arrived[0][1]
    made: Value = prim.constant(False if dtype == "bool" else 0, dtype, shape)
    for place, piece in arrived:
        made = prim.dynamic_update_slice(made, piece, *[prim.constant(start, "int64") for start in place])
    return made
