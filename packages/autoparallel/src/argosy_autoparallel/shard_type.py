"""The type of a distributed tensor's payload: what plans depend on, as one object that is found by identity."""

from __future__ import annotations

from weakref import WeakValueDictionary

from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops.context import context
from argosy_tensorcore.dtype import DType

__all__ = ["ShardType", "shard_type_of"]


class ShardType:
    """Global ``shape``, ``dtype`` and ``layout`` of a tensor, and whose part it is. Immutable; made by
    :func:`shard_type_of` alone.
    """

    __slots__ = ("__weakref__", "dtype", "layout", "rank", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: DType, layout: Layout, rank: int) -> None:
        self.shape = shape
        self.dtype = dtype
        self.layout = layout
        self.rank = rank


_KINDS: WeakValueDictionary[tuple[tuple[int, ...], DType, Layout, int, tuple[str, ...]], ShardType] = (
    WeakValueDictionary()
)


def shard_type_of(shape: tuple[int, ...], dtype: DType, layout: Layout) -> ShardType:
    """The calling rank's one kind of these. (Two threads at once may make two: plans are then made twice, no worse.)"""
    rank = context().rank
    key = shape, dtype, layout, rank, tuple(layout.mesh.dim_names)  # meshes are equal whatever their names
    found = _KINDS.get(key)
    return _KINDS.setdefault(key, ShardType(shape, dtype, layout, rank)) if found is None else found
