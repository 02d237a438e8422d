"""What plans depend on of a distributed tensor, as one object: equal kinds are the same object, found by identity."""

from __future__ import annotations

from weakref import WeakValueDictionary

from argosy_autoparallel.tensor_layout import Layout
from argosy_tensorcore.dtype import DType

__all__ = ["Kind", "kind_of"]


class Kind:
    """Global ``shape``, ``dtype`` and ``layout`` of a tensor. Immutable; made by :func:`kind_of` alone."""

    __slots__ = ("__weakref__", "dtype", "layout", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: DType, layout: Layout) -> None:
        self.shape = shape
        self.dtype = dtype
        self.layout = layout


_KINDS: WeakValueDictionary[tuple[tuple[int, ...], DType, Layout], Kind] = WeakValueDictionary()


def kind_of(shape: tuple[int, ...], dtype: DType, layout: Layout) -> Kind:
    """The one kind of these. (Two threads at once may make two of them: plans are then made twice, nothing worse.)"""
    key = shape, dtype, layout
    found = _KINDS.get(key)
    return _KINDS.setdefault(key, Kind(*key)) if found is None else found
