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


@register_pass("chunk-products")
@dataclass(frozen=True)
class ChunkProducts(Pass):
    """Makes products in chunks: of an operand that is gathered along an axis that the product keeps, as the chunks
    come, or of a result that is summed over ranks, whose chunks are summed (or summed and scattered) as they come.

    There are at most ``chunks`` of at least ``least`` bytes. The pass ``overlap`` then starts the collective of a chunk
    before the product of another.
    """

    chunks: int = 4
    least: int = 1 << 18

    def run(self, program: Program) -> bool:
        """Divide what is worth it; True where anything was."""
        if communicates_within(program):
            return False
        changed = False
        for op in [op for op in program.block if op.name in _COLLECTIVES]:
            pair = self._match(op)
            if pair is not None:
                (_gather if op.kind == "all_gather" else _reduce)(pair)
                changed = True
        if changed:
            thread_tokens(program)
        return changed

    def _match(self, op: Operation) -> _Pair | None:
        gathers = op.kind == "all_gather"
        product = _first_reader(op.results[0]) if gathers else _maker(op.operand(0))
        whole = op.results[0] if gathers else op.operand(0)
        if product is None or op.attributes["size"] < 2 or not whole.type.is_static:  # type: ignore[attr-defined]
            return None
        kept, shape = _kept_axes(product), static_shape(product.result)
        if gathers:
            source = int(product.operand(1) is whole), op.attributes["axis"]
            axes = [axis for axis, place in kept.items() if place == source]
        else:
            axes = [op.attributes["axis"]] if op.kind == "reduce_scatter" else sorted(kept, key=lambda at: -shape[at])
        if not axes or axes[0] not in kept:
            return None
        ranks = 1 if op.kind == "all_reduce" else op.attributes["size"]
        chunks = min(self.chunks, int(bytes_of(whole)) // self.least, shape[axes[0]] // ranks)
        return _Pair(op, product, axes[0], *kept[axes[0]], ranks, chunks) if chunks > 1 else None


class _Pair(NamedTuple):
    """A collective and the product that it goes with: the ``axis`` of the result that is cut is axis ``along`` of
    operand ``side``; it has the parts of ``ranks`` one behind the other, each of which is cut in so many ``chunks``."""

    op: Operation
    product: Operation
    axis: int
    side: int
    along: int
    ranks: int
    chunks: int

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


def _first_reader(gathered: Value) -> Operation | None:
    """The first operation of the block that reads a value, where that is a product that reads it once."""
    first = _first_user(gathered)
    once = first is not None and first.name == "prim.dot_general" and first.operand(0) is not first.operand(1)
    return first if once else None


def _first_user(value: Value) -> Operation | None:
    """The first operation that reads a value, where all that do are in one block."""
    users = value.users
    if not users or any(user.parent is not users[0].parent for user in users):
        return None
    return reduce(lambda one, other: other if other.is_before(one) else one, users)


def _maker(summed: Value) -> Operation | None:
    """The product that makes a value that is read once."""
    made = summed.op if isinstance(summed, OpResult) else None
    return made if made is not None and made.name == "prim.dot_general" and len(summed.uses) == 1 else None


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
    op, product = pair.op, pair.product
    with emit_at(builder_at(op, op)):
        parts = [pair.collective(block(op.operand(0), pair.along, *place)) for place in pair.places()]
    with emit_at(builder_at(product, product)):
        made = _concat_chunks([pair.multiply(part) for part in parts], pair.axis, pair.ranks)
        whole = _concat_chunks(parts, pair.along, pair.ranks)
    product.result.replace_all_uses_with(made)
    product.erase()
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
            made.append(pair.collective(pair.multiply(rows if pair.ranks == 1 else _merge_axes(rows, at))))
    first = _first_user(op.results[0])
    with emit_at(builder_at(op if first is None or first.parent is not op.parent else first, op)):
        op.results[0].replace_all_uses_with(prim.concat(*made, axis=pair.axis))
    _erase(op)
    pair.product.erase()


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
