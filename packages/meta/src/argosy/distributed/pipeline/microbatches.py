"""A batch cut along its first axis into the microbatches of a step."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from argosy_autoparallel.dist_tensor import ShardedArray
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["join_rows", "row_shares", "split_batch"]

Array = np.ndarray[Any, Any]


def split_batch(entries: Sequence[Any], count: int, rows: int) -> list[list[Any]]:
    """``count`` microbatches of the tensors ``entries``; numbers and whatever else has no axis go to each.

    A batch is cut evenly, or, where that leaves a rest, into ``rows`` at a time with fewer in the last. Where ranks
    share its rows, each microbatch has as many of each share. Raises ValueError for a batch that neither divides, and
    for tensors with different numbers of rows, or with shares that are not parts of each other.
    """
    sizes = {x.shape[0] for x in entries if _has_rows(x)}
    if len(sizes) != 1:
        raise ValueError(f"a batch is cut along the first axis of its tensors, which have {sorted(sizes)} rows")
    (size,) = sizes
    each = size // count if size % count == 0 else rows
    if not 0 < size - each * (count - 1) <= each:
        raise ValueError(
            f"a batch of {size} is not {count} microbatches: its size should be a multiple of accumulate_steps={count},"
            f" or micro_batch_size={rows} leave some for the last"
        )
    shares = row_shares(entries)
    bounds = [(i * each, min((i + 1) * each, size)) for i in range(count)]
    return [[_part(x, begin, end, shares) if _has_rows(x) else x for x in entries] for begin, end in bounds]


def row_shares(entries: Sequence[Any]) -> int:
    """Into how many parts ranks have cut the rows of a batch. Raises ValueError where its tensors are cut in ways of
    which none is finer than the others."""
    found = {_shares_of(x) for x in entries if _has_rows(x)}
    finest = max(found, default=1)
    if any(finest % each for each in found):
        raise ValueError(f"the rows of a batch's tensors are cut into {sorted(found)} parts, which do not fit together")
    return finest


def join_rows(parts: Sequence[Array], shares: int) -> Array:
    """What microbatches of a batch have given, in the order of the batch's rows. What has other rows than these, one
    behind the other."""
    if shares == 1 or any(part.shape[0] % shares for part in parts):
        return np.concatenate(parts)
    cut = [np.split(part, shares) for part in parts]
    return np.concatenate([each[share] for share in range(shares) for each in cut])


def _has_rows(x: Any) -> bool:
    return type(x) is Tensor and x.ndim > 0


def _shares_of(x: Tensor) -> int:
    payload = x.payload
    if type(payload) is not ShardedArray:
        return 1
    return prod(payload.mesh.shape[dim] for dim in payload.layout.sharding_dims(0))


def _part(x: Tensor, begin: int, end: int, shares: int) -> Tensor:
    """The rows of a microbatch, which has as many of each share."""
    payload = x.payload
    if begin % shares or end % shares:
        raise ValueError(
            f"rows {begin} to {end} of a batch that {shares} ranks share are a microbatch: each should have as many"
        )
    own, rows = shares // _shares_of(x), slice(begin // shares, end // shares)
    if type(payload) is not ShardedArray:
        return Tensor._wrap(StridedArray(_rows_of_each(payload.to_host(), own, rows)), x.stop_gradient)
    local = payload.local
    if payload.is_held:
        local = StridedArray(_rows_of_each(local.to_host(), own, rows))
    shape = (end - begin, *payload.shape[1:])
    return Tensor._wrap(ShardedArray(local, shape, payload.dtype, payload.layout), x.stop_gradient)


def _rows_of_each(array: Array, shares: int, rows: slice) -> Array:
    """These rows of each of so many parts of an array."""
    if shares == 1:
        return np.ascontiguousarray(array[rows])
    return np.concatenate([part[rows] for part in np.split(array, shares)])
