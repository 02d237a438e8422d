"""A batch cut along its first axis into the microbatches of a step."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from argosy_autoparallel.dist_tensor import ShardedArray
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["split_batch"]


def split_batch(entries: Sequence[Any], count: int, rows: int) -> list[list[Any]]:
    """``count`` microbatches of the tensors ``entries``; numbers and whatever else has no axis go to each.

    A batch is cut evenly, or, where that leaves a rest, into ``rows`` at a time with fewer in the last. Raises
    ValueError for a batch that neither divides, and for tensors with different numbers of rows.
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
    bounds = [(i * each, min((i + 1) * each, size)) for i in range(count)]
    return [[_part(x, begin, end) if _has_rows(x) else x for x in entries] for begin, end in bounds]


def _has_rows(x: Any) -> bool:
    return type(x) is Tensor and x.ndim > 0


def _part(x: Tensor, begin: int, end: int) -> Tensor:
    payload = x.payload
    if type(payload) is not ShardedArray:
        return Tensor._wrap(StridedArray(np.ascontiguousarray(payload.to_host()[begin:end])), x.stop_gradient)
    parts = prod(payload.mesh.shape[dim] for dim in payload.layout.sharding_dims(0))
    if begin % parts or end % parts:
        raise ValueError(
            f"rows {begin} to {end} of a batch that {parts} ranks share are a microbatch: each should have as many"
        )
    local = payload.local
    if payload.is_held:  # the same rows of each rank's part, whichever these are of the batch
        local = StridedArray(np.ascontiguousarray(local.to_host()[begin // parts : end // parts]))
    shape = (end - begin, *payload.shape[1:])
    return Tensor._wrap(ShardedArray(local, shape, payload.dtype, payload.layout), x.stop_gradient)
