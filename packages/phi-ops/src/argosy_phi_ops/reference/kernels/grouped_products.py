"""`grouped_dot` and `grouped_outer`: one product after the other."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from argosy_phi_ops.reference.kernels.registry import Array, kernel, quiet, round_narrow, widen


@kernel("grouped_dot")
def grouped_dot(lhs: Array, rhs: Array, starts: Array, *, transposed: bool = False) -> Array:
    """[n, m]: see the primitive."""
    matrices = widen(rhs.swapaxes(1, 2) if transposed else rhs)
    result = np.zeros((lhs.shape[0], matrices.shape[2]), matrices.dtype)
    for group, rows in enumerate(_groups(starts, len(lhs))):
        result[rows] = quiet.run(np.matmul, widen(lhs[rows]), matrices[group])
    return round_narrow(result, lhs.dtype)


@kernel("grouped_outer")
def grouped_outer(lhs: Array, rhs: Array, starts: Array) -> Array:
    """[e, k, m]: see the primitive."""
    products = [quiet.run(np.matmul, widen(lhs[rows]).T, widen(rhs[rows])) for rows in _groups(starts, len(lhs))]
    shape = (len(starts) - 1, lhs.shape[1], rhs.shape[1])
    return round_narrow(np.stack(products) if products else np.zeros(shape, widen(lhs[:0]).dtype), lhs.dtype)


def _groups(starts: Array, rows: int) -> Iterator[slice]:
    bounds = starts.clip(0, rows).tolist()
    return (slice(first, max(first, behind)) for first, behind in pairwise(bounds))
