"""One step of a change of layout: a mesh dimension gets another placement.

Shards are uneven where the size does not divide; what collectives need even is padded before and cut after.
``extent`` is the length of an axis as the ranks of this mesh dimension hold it together.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy_autoparallel.local_slice import chunk
from argosy_autoparallel.placement import Partial, Placement, ReduceType, Replicate, Shard
from argosy_autoparallel.resharding.emitter import Emitter, block, neutral_term, pad_terms, shape_of
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops import prim
from argosy_pir import Value

__all__ = ["emit_step"]

_KINDS = {
    ReduceType.kRedSum: "sum",
    ReduceType.kRedMax: "max",
    ReduceType.kRedMin: "min",
    ReduceType.kRedProd: "prod",
    ReduceType.kRedAvg: "avg",
    ReduceType.kRedAny: "max",
    ReduceType.kRedAll: "min",
}


def emit_step(emitter: Emitter, x: Value, layout: Layout, shape: tuple[int, ...], dim: int, new: Placement) -> Value:
    """Emit the change of mesh dimension ``dim`` of ``layout`` to ``new``; ``x`` is local, ``shape`` global."""
    old = layout.placements[dim]
    group, me = emitter.line(layout.mesh, dim)
    if isinstance(old, Shard):
        return _from_shard(emitter, x, layout, shape, dim, new)
    if isinstance(old, Partial):
        return _from_partial(emitter, x, layout, shape, dim, new)
    whole = layout.with_placement(dim, Replicate()).local_slice(shape, emitter.rank).shape
    if isinstance(new, Shard):
        return _part_of_blocks(x, new, whole[new.dim], len(group), me)
    return _neutral(x, new.reduce_type()) if isinstance(new, Partial) and me else x


def _neutral(x: Value, kind: ReduceType) -> Value:
    """A term that adds nothing to another rank's ``x``; of maxima and the like that is ``x`` itself."""
    if kind not in (ReduceType.kRedSum, ReduceType.kRedProd):
        return x
    one = True if x.dtype == "bool" else 1
    made: Value = prim.constant(neutral_term(x.dtype) if kind is ReduceType.kRedSum else one, x.dtype, shape_of(x))
    return made


def _from_shard(emitter: Emitter, x: Value, layout: Layout, shape: tuple[int, ...], dim: int, new: Placement) -> Value:
    old, (group, me) = layout.placements[dim], emitter.line(layout.mesh, dim)
    assert isinstance(old, Shard)
    joined = layout.with_placement(dim, Replicate())
    whole = joined.local_slice(shape, emitter.rank).shape
    axis, n, blocks = old.dim, len(group), old.split_factor
    size = whole[axis]
    start, length = chunk(size // blocks, n, me)
    if isinstance(new, Partial):
        return pad_terms(x, axis, start, size - start - length)
    if n == 1:
        return x
    largest = -(-size // (blocks * n))
    x = _of_blocks(x, axis, blocks, lambda y, at: pad_terms(y, at, 0, largest - length))
    if isinstance(new, Shard):
        other = whole[new.dim]
        part = -(-other // n)
        x = pad_terms(x, new.dim, 0, n * part - other)
        made = emitter.communicate("all_to_all", x, group=group, size=n, split_axis=new.dim, concat_axis=axis)
        assert made is not None
        return block(block(made, axis, 0, size), new.dim, 0, chunk(other, n, me)[1])
    gathered = emitter.collect("all_gather", x, joined, shape, dim, axis=axis)
    if blocks > 1:
        gathered = _exchange_blocks(gathered, axis, n, blocks)
    return _of_blocks(gathered, axis, blocks, lambda y, at: block(y, at, 0, size // blocks))


def _part_of_blocks(x: Value, new: Shard, size: int, parts: int, part: int) -> Value:
    """Part ``part`` of ``parts`` of each block of an axis of ``size`` elements."""
    start, length = chunk(size // new.split_factor, parts, part)
    return _of_blocks(x, new.dim, new.split_factor, lambda y, at: block(y, at, start, length))


def _of_blocks(x: Value, axis: int, blocks: int, change: Callable[[Value, int], Value]) -> Value:
    """``x``, whose ``axis`` consists of ``blocks``, after a ``change`` of each: of an axis of what it is given."""
    if blocks == 1:
        return change(x, axis)
    shape = shape_of(x)
    parts = prim.reshape(x, shape=(*shape[:axis], blocks, shape[axis] // blocks, *shape[axis + 1 :]))
    made = change(parts, axis + 1)
    if made is parts:
        return x
    after = shape_of(made)
    return prim.reshape(made, shape=(*after[:axis], blocks * after[axis + 1], *after[axis + 2 :]))  # type: ignore[no-any-return]


def _exchange_blocks(x: Value, axis: int, outer: int, inner: int) -> Value:
    """``x``, whose ``axis`` consists of ``outer`` blocks of ``inner`` equal parts, with the parts outermost."""
    shape = shape_of(x)
    parts = prim.reshape(x, shape=(*shape[:axis], outer, inner, shape[axis] // (outer * inner), *shape[axis + 1 :]))
    order = [*range(axis), axis + 1, axis, *range(axis + 2, len(shape) + 2)]
    made: Value = prim.reshape(prim.transpose(parts, permutation=tuple(order)), shape=shape)
    return made


def _from_partial(
    emitter: Emitter, x: Value, layout: Layout, shape: tuple[int, ...], dim: int, new: Placement
) -> Value:
    old, (group, me) = layout.placements[dim], emitter.line(layout.mesh, dim)
    assert isinstance(old, Partial)
    n = len(group)
    kind = _KINDS[old.reduce_type()]
    if n == 1:
        return x
    dtype = x.dtype
    if dtype == "bool":
        x = prim.cast(x, dtype="uint8")
        emitter.terms = None, None
    if isinstance(new, Shard):
        axis, blocks = new.dim, new.split_factor
        size = layout.with_placement(dim, Replicate()).local_slice(shape, emitter.rank).shape[axis] // blocks
        x = _of_blocks(x, axis, blocks, lambda y, at: pad_terms(y, at, 0, n * -(-size // n) - size))
        if blocks > 1:
            x = _exchange_blocks(x, axis, blocks, n)
        made = emitter.collect("reduce_scatter", x, layout, shape, dim, axis=axis, kind=kind)
        made = _of_blocks(made, axis, blocks, lambda y, at: block(y, at, 0, chunk(size, n, me)[1]))
    else:
        made = emitter.collect("all_reduce", x, layout, shape, dim, kind=kind)
    return prim.cast(made, dtype=dtype) if dtype == "bool" else made
