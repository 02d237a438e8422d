"""Elements of an axis that is split along one mesh dimension, as each rank of the line needs them."""

from __future__ import annotations

from collections.abc import Sequence

from argosy_autoparallel.resharding.emitter import Emitter, block
from argosy_phi_ops import prim
from argosy_pir import Value

__all__ = ["exchange"]

Range = tuple[int, int]


def exchange(
    emitter: Emitter, x: Value, group: Sequence[int], axis: int, held: Sequence[Range], wanted: Sequence[Range]
) -> Value | None:
    """Emit the messages that bring the elements from ``wanted[r][0]`` to ``wanted[r][1]`` of ``axis`` to the rank
    ``group[r]``, which has those from ``held[r][0]`` to ``held[r][1]``; ``x`` is this rank's part. None where it wants
    nothing.

    Every rank sends first, which does not wait, then receives in the order of the group.
    """
    me = list(group).index(emitter.rank)
    start = held[me][0]
    for r, peer in enumerate(group):
        low, high = _intersection(held[me], wanted[r])
        if r != me and low < high:
            emitter.communicate("send", block(x, axis, low - start, high - low), peer=peer)
    pieces = []
    for r, peer in enumerate(group):
        low, high = _intersection(held[r], wanted[me])
        if low >= high:
            continue
        if r == me:
            pieces.append(block(x, axis, low - start, high - low))
        else:
            shape = tuple(high - low if i == axis else n for i, n in enumerate(x.shape))
            got = emitter.communicate("recv", None, shape=shape, dtype=x.dtype, peer=peer)
            assert got is not None
            pieces.append(got)
    if len(pieces) < 2:
        return pieces[0] if pieces else None
    made: Value = prim.concat(*pieces, axis=axis)
    return made


def _intersection(a: Range, b: Range) -> Range:
    return max(a[0], b[0]), min(a[1], b[1])
