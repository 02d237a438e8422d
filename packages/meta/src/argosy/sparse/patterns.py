"""Where the elements of sparse tensors lie: arithmetic on indices, on the host.

How many positions two patterns have together, or a convolution reaches, depends on values, so what is here reads them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["distinct", "join_keys", "keys_of", "positions_of", "row_pointers"]

Indices = np.ndarray[Any, Any]


def keys_of(indices: Indices, sizes: Sequence[int]) -> Indices:
    """The row-major numbers [n] of positions ``indices`` [axes, n] in a grid of these sizes.

    Raises ValueError where the grid has more than 2**63 - 1 positions.
    """
    if math.prod(sizes) > np.iinfo(np.int64).max:
        raise ValueError(f"a sparse tensor of shape {list(sizes)} has more positions than 64 bits can number")
    keys = np.zeros(indices.shape[1], np.int64)
    for row, size in zip(indices, sizes, strict=True):
        keys = keys * size + row
    return keys


def positions_of(keys: Indices, sizes: Sequence[int], dtype: Any = np.int64) -> Indices:
    """The positions [axes, n] of which :func:`keys_of` gives ``keys``."""
    rows = []
    for size in reversed(sizes):
        keys, row = np.divmod(keys, max(size, 1))
        rows.append(row)
    return np.stack(rows[::-1]).astype(dtype)


def distinct(keys: Indices) -> tuple[Indices, Indices]:
    """The keys in rising order without repetition, and for each given key its place among them."""
    found, places = np.unique(keys, return_inverse=True)
    return found, places.reshape(-1)


def join_keys(first: Indices, second: Indices) -> tuple[Indices, Indices, Indices]:
    """The keys of two patterns together, in rising order, and where those of each stand among them."""
    union = np.union1d(first, second)
    return union, np.searchsorted(union, first), np.searchsorted(union, second)


def row_pointers(rows: Indices, shape: Sequence[int]) -> Indices:
    """The row pointers of sorted elements in ``rows``, which are numbered through all matrices of a batch.

    shape: [..., rows, columns]; for each matrix of the batch its rows + 1 pointers, one matrix after another.
    """
    counts = np.bincount(rows, minlength=math.prod(shape[:-1])).reshape(-1, shape[-2])
    pointers = np.zeros((len(counts), shape[-2] + 1), np.int64)
    np.cumsum(counts, axis=1, out=pointers[:, 1:])
    return pointers.reshape(-1)
