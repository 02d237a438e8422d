"""Tensors as parts of global ones: which part this rank has, its values, and overwriting them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from argosy.distributed.checkpoint.metadata import Box
from argosy_autoparallel.api import reshard
from argosy_autoparallel.dist_tensor import ShardedArray
from argosy_phi_ops.context import context
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["Array", "Part", "dtype_of", "overwrite", "parts_of", "settle_sums", "shape_of", "values_of"]

Array = np.ndarray[Any, Any]


def settle_sums(x: Any) -> Any:
    """``x`` with sums that are still to be made made: every rank of its mesh calls."""
    payload = getattr(x, "payload", None)
    if type(payload) is not ShardedArray or not payload.layout.is_partial:
        return x
    layout = payload.layout.cotangent()
    return reshard(x.detach(), layout.mesh, layout.placements)


def shape_of(x: Any) -> tuple[int, ...]:
    """The global shape."""
    return tuple(x.shape)


def dtype_of(x: Any) -> str:
    """The dtype's name."""
    return x.payload.dtype.name if isinstance(x, Tensor) else as_dtype(x.dtype).name


class Part(NamedTuple):
    """A box of a tensor that this rank has, and the slices that cut it out of its array."""

    box: Box
    slices: tuple[slice, ...]


def parts_of(x: Any) -> list[Part]:
    """This rank's parts of the tensor: all of an ordinary or partial one; several where an axis is split in blocks;
    none where it has nothing."""
    payload = getattr(x, "payload", None)
    if type(payload) is ShardedArray and not payload.is_held:
        return []
    if type(payload) is not ShardedArray or payload.layout.is_partial:
        shape = shape_of(x)
        return [Part(Box((0,) * len(shape), shape), tuple(map(slice, shape)))] if 0 not in shape else []
    boxes = payload.layout.local_boxes(payload.shape, context().rank)
    return [
        Part(Box(offset, shape), tuple([slice(start, start + n) for start, n in zip(place, shape, strict=True)]))
        for offset, shape, place in boxes
    ]


def values_of(x: Any) -> Array:
    """The values of this rank's part."""
    if not isinstance(x, Tensor):
        return np.asarray(x)
    payload = x.payload
    found: Array = payload.local.ndarray if type(payload) is ShardedArray else payload.to_host()
    return found


def overwrite(x: Any, values: Array) -> None:
    """Put ``values`` into this rank's array, in place."""
    if not isinstance(x, Tensor):
        x[...] = values
        return
    payload = x.payload
    whole = type(payload) is not ShardedArray or payload.layout.is_partial  # the first of the ranks takes a sum's value
    (payload if whole else payload.local).fill_from(values)
    payload.bump_version()
