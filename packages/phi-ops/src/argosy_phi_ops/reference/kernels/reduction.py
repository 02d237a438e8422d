"""Reductions and cumulations. Narrow floats accumulate in float32 and are rounded once; integers keep their
dtype.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_phi_ops.reference.kernels.registry import (
    Array,
    Kernel,
    as_array,
    kernel,
    numpy_dtype,
    quiet,
    round_narrow,
    widen,
)


def _reduction(ufunc: Any) -> Kernel:
    def call(x: Array, *, axes: Sequence[int]) -> Array:
        wide = widen(x)
        return round_narrow(quiet.run(ufunc.reduce, wide, axis=tuple(axes), dtype=wide.dtype), x.dtype)

    call.__name__ = call.__qualname__ = f"reduce_{ufunc.__name__}"
    return call


kernel("reduce_sum")(_reduction(np.add))
kernel("reduce_prod")(_reduction(np.multiply))
kernel("reduce_and")(_reduction(np.logical_and))
kernel("reduce_or")(_reduction(np.logical_or))


def _extreme(x: Array, least: bool) -> Any:
    """The identity of maximum (`least`) or minimum over the dtype of `x`."""
    if x.dtype.kind == "b":
        return not least
    if x.dtype.kind in "iu":
        return np.iinfo(x.dtype).min if least else np.iinfo(x.dtype).max
    return -np.inf if least else np.inf


def _extremum(ufunc: Any, least: bool) -> Kernel:
    def call(x: Array, *, axes: Sequence[int]) -> Array:
        wide = widen(x)
        return round_narrow(ufunc.reduce(wide, axis=tuple(axes), initial=_extreme(wide, least)), x.dtype)

    call.__name__ = call.__qualname__ = f"reduce_{ufunc.__name__}"
    return call


kernel("reduce_max")(_extremum(np.maximum, least=True))
kernel("reduce_min")(_extremum(np.minimum, least=False))


@kernel("argmax")
def argmax(x: Array, *, axis: int, dtype: str = "int64") -> Array:
    """The first index of the maximum (of the first NaN, if there is one) along `axis`, which disappears."""
    return as_array(widen(x).argmax(axis)).astype(numpy_dtype(dtype), copy=False)


@kernel("argmin")
def argmin(x: Array, *, axis: int, dtype: str = "int64") -> Array:
    """The first index of the minimum (of the first NaN, if there is one) along `axis`, which disappears."""
    return as_array(widen(x).argmin(axis)).astype(numpy_dtype(dtype), copy=False)


_CUMULATIONS = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "logsumexp": np.logaddexp,
}


@kernel("cumulative")
def cumulative(x: Array, *, axis: int, kind: str, reverse: bool = False) -> Array:
    """The running sum, prod, max, min or logsumexp along `axis`, from the end when `reverse`."""
    wide = widen(x)
    if reverse:
        wide = np.flip(wide, axis)
    result = quiet.run(_CUMULATIONS[kind].accumulate, wide, axis, wide.dtype)
    if reverse:
        result = np.flip(result, axis)
    return round_narrow(result, x.dtype)
