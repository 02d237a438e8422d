"""Products in chunks with the gather of their operand, or the sum of their result: what a chunk communicates is on its
way while others are computed (Wang et al., 2023, "Overlap communication with dependent computation via decomposition in
large deep learning models").

All ranks come to the same chunks: what decides are the sizes of what is communicated, which ranks have alike, and not
those of the products, which they may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import NamedTuple

from argosy_autoparallel.local_slice import chunk
from argosy_autoparallel.passes.tokens import builder_at, communicates_within, thread_tokens
from argosy_autoparallel.resharding.emitter import block, static_shape
from argosy_autoparallel.value_layouts import bytes_of
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Operation, Program, Value
from argosy_pir.passes import Pass, register_pass
from argosy_pir.values import OpResult

__all__ = ["ChunkProducts"]

_COLLECTIVES = ("prim.all_gather", "prim.all_reduce", "prim.reduce_scatter")
_BETWEEN = ("prim.cast", "prim.reshape")


@register_pass("chunk-products")
@dataclass(frozen=True)
class ChunkProducts(Pass):
    """Makes products in chunks: of an operand that is gathered along an axis that the product keeps, as the chunks
    come, or of a result that is summed over ranks, whose chunks are summed (or summed and scattered) as they come.
    Casts, and reshapes that leave the axis as it is, may stand between both. Of two operands that are gathered over the
    same ranks the smaller one comes whole, and first; the larger one in chunks.

    There are at most ``chunks`` of at least ``least`` bytes. The pass ``overlap`` then starts the collective of a chunk
    before the product of another.
    """

    chunks: int = 4
    least: int = 1 << 18

    def run(self, program: Program) -> bool:
        """Divide what is worth it; True where anything was."""
        if communicates_within(program):
            return False
        changed, whole = False, set[Operation]()
        for op in [op for op in program.block if op.name in _COLLECTIVES]:
            pair = None if op in whole else self._match(op)
            other = None if pair is None or op.kind != "all_gather" else _gather_behind(pair.operand)
            if pair is None or (other is not None and self._is_larger(other, pair)):
                continue
            if other is not None:
                whole.add(other)
                pair = pair._replace(after=_later(other, pair))
            (_gather if op.kind == "all_gather" else _reduce)(pair)
            changed = True
        if changed:
            thread_tokens(program)
        return changed

    def _is_larger(self, other: Operation, pair: _Pair) -> bool:
        """Whether the gather ``other`` of the same product's other operand is to be in chunks instead."""
        if other.attributes["group"] != pair.op.attributes["group"]:
            return False
        found = self._match(other)
        larger = bytes_of(other.results[0]) > bytes_of(pair.op.results[0])
        return found is not None and found.product is pair.product and larger

    def _match(self, op: Operation) -> _Pair | None:
        gathers = op.kind == "all_gather"
        chain = _reader(op.results[0]) if gathers else _maker(op.operand(0))
        whole = op.results[0] if gathers else op.operand(0)
        if chain is None or op.attributes["size"] < 2 or not whole.type.is_static:  # type: ignore[attr-defined]
            return None
        product, between = chain
        kept, shape = _kept_axes(product), static_shape(product.result)
        if gathers:
            operand = between[-1].result if between else whole
            source = int(product.operand(1) is operand), _follow(op.attributes["axis"], between)
            axes = [axis for axis, place in kept.items() if place == source]
        else:
            ends = {axis: _follow(axis, between) for axis in sorted(kept, key=lambda at: -shape[at])}
            scattered = op.attributes.get("axis")
            axes = [axis for axis, end in ends.items() if end is not None and scattered in (None, end)]
        if not axes:
            return None
        ranks = 1 if op.kind == "all_reduce" else op.attributes["size"]
        chunks = min(self.chunks, int(bytes_of(whole)) // self.least, shape[axes[0]] // ranks)
        return _Pair(op, product, between, axes[0], *kept[axes[0]], ranks, chunks) if chunks > 1 else None


class _Pair(NamedTuple):
    """A collective and the product that it goes with, and the casts and reshapes ``between`` them: the ``axis`` of the
    result that is cut is axis ``along`` of operand ``side``; it has the parts of ``ranks`` one behind the other, each
    of which is cut in so many ``chunks``, made behind the operation ``after`` where that is not the collective."""

    op: Operation
    product: Operation
    between: Sequence[Operation]
    axis: int
    side: int
    along: int
    ranks: int
    chunks: int
    after: Operation | None = None

    @property
    def operand(self) -> Value:
        """The operand of the product that is not cut."""
        return self.product.operand(1 - self.side)

    def places(self) -> list[tuple[int, int]]:
        """Where the chunks of a rank's part begin, and how long they are."""
        length = static_shape(self.product.result)[self.axis] // self.ranks
        found = [chunk(length, self.chunks, i) for i in range(self.chunks)]
        return [(start, count) for start, count in found if count]

    def collective(self, x: Value) -> Value:
        """The collective of a chunk; the order of tokens is made afterwards."""
        made: Value = getattr(prim, self.op.kind)(x, self.op.operand(1), **self.op.attributes)[0]
        made.op.annotations = self.op.annotations  # type: ignore[attr-defined]
        return made

    def multiply(self, x: Value) -> Value:
        """The product of a chunk of its operand."""
        operands = [x if number == self.side else y for number, y in enumerate(self.product.operands)]
        made: Value = prim.dot_general(*operands, **self.product.attributes)
        return made


def _reader(gathered: Value) -> tuple[Operation, list[Operation]] | None:
    """The product that reads a value first, once, and the casts and reshapes on the way to it."""
    between: list[Operation] = []
    first = _first_user(gathered)
    while first is not None and first.name in _BETWEEN and len(first.result.uses) == 1:
        between.append(first)
        first = _first_user(first.result)
    once = first is not None and first.name == "prim.dot_general" and first.operand(0) is not first.operand(1)
    return (first, between) if first is not None and once else None


def _gather_behind(x: Value) -> Operation | None:
    """The gather that gives ``x`` but for casts and reshapes."""
    while isinstance(x, OpResult) and x.op.name in _BETWEEN:
        x = x.op.operand(0)
    return x.op if isinstance(x, OpResult) and x.op.name == "prim.all_gather" else None


def _later(other: Operation, pair: _Pair) -> Operation | None:
    """The gather ``other``, where that of ``pair`` over the same ranks comes before it and may come behind."""
    op = pair.op
    if other.parent is not op.parent or other.attributes["group"] != op.attributes["group"] or other.is_before(op):
        return None
    readers = [user for user in op.results[0].users if user not in pair.between]
    return None if any(user.is_before(other) for user in readers) else other


def _first_user(value: Value) -> Operation | None:
    """The first operation that reads a value, where all that do are in one block."""
    users = value.users
    if not users or any(user.parent is not users[0].parent for user in users):
        return None
    return reduce(_earlier, users)


def _earlier(one: Operation, other: Operation) -> Operation:
    return other if other.is_before(one) else one


def _maker(summed: Value) -> tuple[Operation, list[Operation]] | None:
    """The product that makes a value, and the casts and reshapes behind it; all are read once."""
    between: list[Operation] = []
    while isinstance(summed, OpResult) and len(summed.uses) == 1:
        if summed.op.name == "prim.dot_general":
            return summed.op, between
        if summed.op.name not in _BETWEEN:
            break
        between.insert(0, summed.op)
        summed = summed.op.operand(0)
    return None


def _follow(axis: int, between: Sequence[Operation]) -> int | None:
    """The axis that ``axis`` is behind casts and reshapes; None where one of those joins or splits it."""
    for op in between:
        if op.name == "prim.reshape":
            before, after = static_shape(op.operand(0)), static_shape(op.result)
            found = [i for i, n in enumerate(after) if n == before[axis] and prod(after[:i]) == prod(before[:axis])]
            if not found:
                return None
            axis = found[0]
    return axis


def _repeat(between: Sequence[Operation], x: Value, axis: int) -> Value:
    """Casts and reshapes of a chunk along ``axis``."""
    for op in between:
        if op.name == "prim.cast":
            x = prim.cast(x, **op.attributes)
        else:
            end = _follow(axis, [op])
            assert end is not None
            shape = tuple(static_shape(x)[axis] if i == end else n for i, n in enumerate(static_shape(op.result)))
            x, axis = prim.reshape(x, shape=shape), end
    return x


def _kept_axes(product: Operation) -> dict[int, tuple[int, int]]:
    """The axes of a product that one operand has alone: which operand, and the axis there."""
    a = product.attributes
    places: list[tuple[int, int]] = []
    for side, name in enumerate(("lhs", "rhs")):
        used = {*a[f"{name}_batch"], *a[f"{name}_contract"]}
        places += [(side, i) for i in range(product.operand(side).ndim) if i not in used]
    return dict(enumerate(places, len(a["lhs_batch"])))


def _gather(pair: _Pair) -> None:
    """Gather chunks of an operand; the product of each; both put together for who reads them."""
    op, product, axis = pair.op, pair.product, pair.op.attributes["axis"]
    place = op if pair.after is None or pair.after.next is None else pair.after.next
    with emit_at(builder_at(place, op)):
        parts = [pair.collective(block(op.operand(0), axis, *place)) for place in pair.places()]
    with emit_at(builder_at(product, product)):
        chunks = [pair.multiply(_repeat(pair.between, part, axis)) for part in parts]
        made = _concat_chunks(chunks, pair.axis, pair.ranks)
    others = [x for x in op.results[0].users if x is not product and x not in pair.between]
    if others:  # in one block, behind the first of those that the chunks are for
        with emit_at(builder_at(reduce(_earlier, others, product), product)):
            whole = _concat_chunks(parts, axis, pair.ranks)
    product.result.replace_all_uses_with(made)
    for old in (product, *reversed(pair.between)):
        old.erase()
    if others:
        op.results[0].replace_all_uses_with(whole)
    _erase(op)


def _reduce(pair: _Pair) -> None:
    """Sum the chunks of a product as they come."""
    op, x, at = pair.op, pair.product.operand(pair.side), pair.along
    with emit_at(builder_at(op, op)):
        split = x if pair.ranks == 1 else _split_axis(x, at, pair.ranks)
        made = []
        for place in pair.places():
            rows = block(split, at + (pair.ranks > 1), *place)
            product = pair.multiply(rows if pair.ranks == 1 else _merge_axes(rows, at))
            made.append(pair.collective(_repeat(pair.between, product, pair.axis)))
    first = _first_user(op.results[0])
    with emit_at(builder_at(op if first is None or first.parent is not op.parent else first, op)):
        op.results[0].replace_all_uses_with(prim.concat(*made, axis=_follow(pair.axis, pair.between)))
    _erase(op)
    for old in (*reversed(pair.between), pair.product):
        old.erase()


def _erase(op: Operation) -> None:
    op.results[1].replace_all_uses_with(op.operand(1))
    op.erase()


def _concat_chunks(parts: Sequence[Value], axis: int, ranks: int) -> Value:
    """Chunks, which have those of all ranks one behind the other, as the parts of ranks one behind the other."""
    return _merge_axes(prim.concat(*[_split_axis(x, axis, ranks) for x in parts], axis=axis + 1), axis)


def _split_axis(x: Value, axis: int, ranks: int) -> Value:
    shape = static_shape(x)
    made: Value = prim.reshape(x, shape=(*shape[:axis], ranks, shape[axis] // ranks, *shape[axis + 1 :]))
    return made


def _merge_axes(x: Value, axis: int) -> Value:
    shape = static_shape(x)
    made: Value = prim.reshape(x, shape=(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))
    return made
