"""One step of a change of layout: a mesh dimension gets another placement.

Shards are uneven where the size does not divide; what collectives need even is padded before and cut after.
``extent`` is the length of an axis as the ranks of this mesh dimension hold it together.
"""

from __future__ import annotations

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
        if new.split_factor > 1:
            x = _exchange_blocks(x, new.dim, new.split_factor, len(group))
        return block(x, new.dim, *chunk(whole[new.dim], len(group), me))
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
    axis, n = old.dim, len(group)
    size = whole[axis]
    start, length = chunk(size, n, me)
    if isinstance(new, Partial):
        return pad_terms(x, axis, start, size - start - length)
    if n == 1:
        return x
    largest = -(-size // n)
    x = pad_terms(x, axis, 0, largest - length)
    if isinstance(new, Shard):
        other = whole[new.dim]
        part = -(-other // n)
        x = pad_terms(x, new.dim, 0, n * part - other)
        made = emitter.communicate("all_to_all", x, group=group, size=n, split_axis=new.dim, concat_axis=axis)
        assert made is not None
        return block(block(made, axis, 0, size), new.dim, 0, chunk(other, n, me)[1])
    gathered = block(emitter.collect("all_gather", x, joined, shape, dim, axis=axis), axis, 0, size)
    return _exchange_blocks(gathered, axis, n, old.split_factor) if old.split_factor > 1 else gathered


def _exchange_blocks(x: Value, axis: int, outer: int, inner: int) -> Value:
    """``x``, whose ``axis`` consists of ``outer`` blocks of ``inner`` parts, with the parts outermost."""
    shape = shape_of(x)
    if shape[axis] % (outer * inner) != 0:
        raise ValueError(f"{shape[axis]} elements of dimension {axis} are not {outer} blocks of {inner} equal parts")
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
        size = layout.with_placement(dim, Replicate()).local_slice(shape, emitter.rank).shape[new.dim]
        if new.split_factor > 1:
            x = _exchange_blocks(x, new.dim, new.split_factor, n)
        x = pad_terms(x, new.dim, 0, n * -(-size // n) - size)
        made = emitter.collect("reduce_scatter", x, layout, shape, dim, axis=new.dim, kind=kind)
        made = block(made, new.dim, 0, chunk(size, n, me)[1])
    else:
        made = emitter.collect("all_reduce", x, layout, shape, dim, kind=kind)
    return prim.cast(made, dtype=dtype) if dtype == "bool" else made
