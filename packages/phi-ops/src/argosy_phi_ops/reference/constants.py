"""Constants of programs as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_phi_ops.reference.symbols import Symbols, evaluate_shape
from argosy_pir.attributes import Dense

Array = np.ndarray[Any, Any]


def constant_array(dense: Dense, symbols: Symbols) -> Array:
    """The elements of a constant as a read-only array; a splat is one element seen everywhere."""
    shape = evaluate_shape(dense.type.shape, symbols)
    stored = np.frombuffer(dense.data, numpy_dtype(dense.type.dtype))
    return np.broadcast_to(stored[0], shape) if dense.is_splat else stored.reshape(shape)
