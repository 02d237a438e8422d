"""One step of a change of layout: a mesh dimension gets another placement.

Shards are uneven where the size does not divide, or sizes are given; what collectives need even is padded before and
cut after.
``extent`` is the length of an axis as the ranks of this mesh dimension hold it together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argosy_autoparallel.local_slice import largest_part, part_of
from argosy_autoparallel.placement import Partial, Placement, ReduceType, Replicate, Shard
from argosy_autoparallel.resharding.emitter import Emitter, block, neutral_term, pad_terms, shape_of
from argosy_autoparallel.resharding.halo_exchange import exchange
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
    start, length = part_of(old, size // blocks, n, me)
    if isinstance(new, Partial):
        return pad_terms(x, axis, start, size - start - length)
    if n == 1:
        return x
    if isinstance(new, Shard) and new.dim == axis:
        return _recut(emitter, x, old, new, group, size)
    largest = largest_part(old, size // blocks, n)
    x = _of_blocks(x, axis, blocks, lambda y, at: pad_terms(y, at, 0, largest - length))
    if isinstance(new, Shard):
        other = whole[new.dim]
        x = _pad_parts(x, new.dim, new, other, n)
        made = emitter.communicate("all_to_all", x, group=group, size=n, split_axis=new.dim, concat_axis=axis)
        assert made is not None
        return block(_join_parts(made, axis, old, size, n), new.dim, 0, part_of(new, other, n, me)[1])
    gathered = emitter.collect("all_gather", x, joined, shape, dim, axis=axis)
    if blocks > 1:
        gathered = _exchange_blocks(gathered, axis, n, blocks)
    return _of_blocks(gathered, axis, blocks, lambda y, at: _join_parts(y, at, old, size // blocks, n))


def _recut(emitter: Emitter, x: Value, old: Shard, new: Shard, group: Sequence[int], size: int) -> Value:
    """Another cut of the same axis: ranks are sent what they lack."""
    held, wanted = (_ranges(placement, size, len(group)) for placement in (old, new))
    made = exchange(emitter, x, group, old.dim, held, wanted)
    return block(x, old.dim, 0, 0) if made is None else made


def _ranges(placement: Shard, size: int, n: int) -> list[tuple[int, int]]:
    """Where the parts of an axis begin and end."""
    parts = [part_of(placement, size, n, part) for part in range(n)]
    return [(start, start + length) for start, length in parts]


def _pad_parts(x: Value, axis: int, cut: Shard, size: int, n: int) -> Value:
    """``x``, of which ``axis`` has ``size`` elements, with each of the ``n`` parts padded to the largest."""
    largest = largest_part(cut, size, n)
    if cut.sizes is None:
        return pad_terms(x, axis, 0, n * largest - size)
    parts = [block(x, axis, start, length) for start, length in (part_of(cut, size, n, part) for part in range(n))]
    made: Value = prim.concat(*[pad_terms(y, axis, 0, largest - shape_of(y)[axis]) for y in parts], axis=axis)
    return made


def _join_parts(x: Value, axis: int, cut: Shard, size: int, n: int) -> Value:
    """What :func:`_pad_parts` pads, without that."""
    if cut.sizes is None:
        return block(x, axis, 0, size)
    largest = max(cut.sizes)
    parts = [block(x, axis, part * largest, length) for part, length in enumerate(cut.sizes) if length]
    made: Value = prim.concat(*parts, axis=axis) if parts else block(x, axis, 0, 0)
    return made


def _part_of_blocks(x: Value, new: Shard, size: int, parts: int, part: int) -> Value:
    """Part ``part`` of ``parts`` of each block of an axis of ``size`` elements."""
    start, length = part_of(new, size // new.split_factor, parts, part)
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
        x = _of_blocks(x, axis, blocks, lambda y, at: _pad_parts(y, at, new, size, n))
        if blocks > 1:
            x = _exchange_blocks(x, axis, blocks, n)
        made = emitter.collect("reduce_scatter", x, layout, shape, dim, axis=axis, kind=kind)
        made = _of_blocks(made, axis, blocks, lambda y, at: block(y, at, 0, part_of(new, size, n, me)[1]))
    else:
        made = emitter.collect("all_reduce", x, layout, shape, dim, kind=kind)
    return prim.cast(made, dtype=dtype) if dtype == "bool" else made
