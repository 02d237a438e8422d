"""Sorting along an axis that is split: each rank sorts its part, and pairs of ranks merge theirs.

Which pairs, says Batcher's merge exchange (Knuth, The Art of Computer Programming, volume 3, algorithm 5.2.2 M), whose
comparators may merge whole sorted parts where those are equal (exercise 5.3.4-38): shorter ones are filled up with
elements that come last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from argosy_autoparallel.local_slice import chunk
from argosy_autoparallel.resharding.emitter import Emitter, block, pad_terms, shape_of
from argosy_phi_ops import prim
from argosy_pir import Value

__all__ = ["comparators", "sort_parts"]


def comparators(count: int) -> Iterator[tuple[int, int]]:
    """The pairs of ``count`` places, lower one first, that are to be put in order one after the other."""
    top = 1 << max(0, (count - 1).bit_length() - 1)
    p = top if count > 1 else 0
    while p:
        q, r, d = top, 0, p
        while True:
            yield from ((i, i + d) for i in range(count - d) if i & p == r)
            if q == p:
                break
            q, r, d = q >> 1, p, q - p
        p >>= 1


def sort_parts(
    emitter: Emitter, columns: Sequence[Value], group: Sequence[int], axis: int, size: int, keys: int, descending: bool
) -> list[Value]:
    """This rank's part of tensors that are sorted together by the first ``keys`` of them along ``axis``, which has
    ``size`` elements and is split over ``group``; ``columns`` are its parts before. Equal elements stay in order."""
    me, part = list(group).index(emitter.rank), chunk(size, len(group), 0)[1]
    start, length = chunk(size, len(group), me)
    shape = tuple(columns[0].shape)
    place = prim.add(prim.iota(shape=shape, axis=axis, dtype="int64"), prim.constant(start, "int64", shape))
    extra = [prim.neg(place) if descending else place]
    if part * len(group) != size:
        extra.insert(0, prim.constant(1 if descending else -1, "int32", shape))  # what fills up has 0
    by = keys + len(extra)
    table = [*extra[:-1], *columns[:keys], extra[-1], *columns[keys:]]
    held = _sort([pad_terms(x, axis, 0, part - length) for x in table], axis, by, descending)
    for low, high in comparators(len(group)):
        if me in (low, high):
            held = _merge(emitter, held, axis, by, descending, group[high if me == low else low], me == low)
    found = held[len(extra) - 1 :]
    return [block(x, axis, 0, length) for x in (*found[:keys], *found[keys + 1 :])]


def _sort(columns: Sequence[Value], axis: int, keys: int, descending: bool) -> list[Value]:
    made = prim.sort(*columns, axis=axis, keys=keys, descending=descending)
    return list(made)


def _merge(
    emitter: Emitter, held: Sequence[Value], axis: int, keys: int, descending: bool, peer: int, is_low: bool
) -> list[Value]:
    """What comes first (of the lower rank) or last of this rank's part and that of ``peer``."""
    for x in held:
        emitter.communicate("send", x, peer=peer)
    joined = []
    for x in held:
        other = emitter.communicate("recv", None, shape=tuple(x.shape), dtype=x.dtype, peer=peer)
        joined.append(prim.concat(*([x, other] if is_low else [other, x]), axis=axis))
    length = shape_of(held[0])[axis]
    return [block(x, axis, 0 if is_low else length, length) for x in _sort(joined, axis, keys, descending)]
