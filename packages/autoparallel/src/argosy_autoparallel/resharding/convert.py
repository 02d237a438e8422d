"""A whole change of layout, on one mesh or between two."""

from __future__ import annotations

from argosy_autoparallel.placement import Replicate, Shard
from argosy_autoparallel.resharding.cross_mesh import emit_transfers
from argosy_autoparallel.resharding.emitter import Emitter
from argosy_autoparallel.resharding.path import layout_path
from argosy_autoparallel.resharding.steps import emit_step
from argosy_autoparallel.tensor_layout import Layout
from argosy_pir import Value
from argosy_tensorcore.dtype import as_dtype

__all__ = ["convert"]


def convert(
    emitter: Emitter,
    x: Value | None,
    source: Layout,
    target: Layout,
    shape: tuple[int, ...],
    dtype: str,
    ready: int | None = None,
) -> Value | None:
    """Emit the change from ``source`` to ``target``; ``x`` is this rank's part (None outside the source mesh), which
    exists since the emitter's clock was ``ready`` (None: since now)."""
    if source == target:
        return x
    if source.mesh == target.mesh:
        if not source.mesh.contains(emitter.rank):
            return None
        assert x is not None
        return _on_mesh(emitter, x, source, target, shape, dtype, ready)
    taken = target.cotangent()
    given = _departure_layout(source, taken, shape)
    x = convert(emitter, x, source, given, shape, dtype, ready)
    x = emit_transfers(emitter, x, given, taken, shape, dtype)
    return convert(emitter, x, taken, target, shape, dtype)


def _departure_layout(source: Layout, target: Layout, shape: tuple[int, ...]) -> Layout:
    """How a value leaves its mesh: sums are scattered along axes that nothing splits, those that ``target`` splits
    first, then the longest, so that each rank sends a part."""
    placements = list(source.placements)
    taken = {p.dim for p in placements if isinstance(p, Shard)}
    wanted = {p.dim for p in target.placements if isinstance(p, Shard)}
    sizes = {axis: n for axis, n in enumerate(shape) if type(n) is int}
    order = sorted(sizes, key=lambda axis: (axis not in wanted, -sizes[axis], axis))
    for dim, (placement, ranks) in enumerate(zip(placements, source.mesh.shape, strict=True)):
        if placement.is_partial():
            axis = next((axis for axis in order if axis not in taken and sizes[axis] >= ranks), None)
            placements[dim] = Replicate() if axis is None else Shard(axis)
            taken.add(-1 if axis is None else axis)
    return Layout(source.mesh, placements)


def _on_mesh(
    emitter: Emitter,
    x: Value,
    source: Layout,
    target: Layout,
    shape: tuple[int, ...],
    dtype: str,
    ready: int | None,
) -> Value:
    target.local_slice(shape, emitter.rank)  # raises for parts that there are not, before any is made
    at, emitter.terms = source, (ready, None)
    for dim, new in layout_path(source, target, shape, as_dtype(dtype).itemsize):
        before = len(emitter.notes)
        x = emit_step(emitter, x, at, shape, dim, new)
        at = at.with_placement(dim, new)
        emitter.terms = None, None if len(emitter.notes) == before else before
    return x
