"""Arrays in the dtype that somebody asks for, where their values fit it."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_tensorcore.conversion import DataError
from argosy_tensorcore.dtype import DType, as_dtype

__all__ = ["cast_exactly"]

Array = np.ndarray[Any, Any]


def cast_exactly(array: Array, dtype: DType) -> Array:
    """``array`` in ``dtype``: integers and truth values in any dtype of numbers that holds their values, floats in
    floats and complex numbers, rounded. Raises :class:`DataError` naming the first value that does not fit, or for
    dtypes that do not go together."""
    given = as_dtype(array.dtype)
    if given is dtype:
        return array
    if _KINDS.index(given.kind) > _KINDS.index(dtype.kind) and not {given.kind, dtype.kind} <= {"i", "u"}:
        raise DataError(f"has dtype {given.name}, which {dtype.name} does not hold")
    with np.errstate(all="ignore"):
        made = array.astype(dtype.numpy)
        wrong = ~_keeps_values(array, made, given, dtype)
    if wrong.any():
        raise DataError(f"holds {array[wrong].flat[0]}, which {dtype.name} does not")
    return made


_KINDS = "buifc"


def _keeps_values(array: Array, made: Array, given: DType, dtype: DType) -> Array:
    """Where nothing is lost but what rounding of floats loses."""
    if given.kind in "fc":
        return np.isfinite(made) | ~np.isfinite(array)
    if given.kind == "b":
        return np.ones(array.shape, bool)
    if dtype.kind in "fc":
        back = made.astype(np.float64) if dtype.itemsize <= 2 else made.real
        return np.asarray(np.isfinite(back) & (back.astype(array.dtype) == array))
    return np.asarray((made.astype(array.dtype) == array) & ((made < 0) == (array < 0)))
