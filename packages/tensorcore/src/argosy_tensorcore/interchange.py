"""Zero-copy exchange with numpy and with other frameworks through DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy_tensorcore.conversion import host_array
from argosy_tensorcore.storage import Array, StridedArray
from argosy_tensorcore.tensor import Tensor


def to_numpy(tensor: Tensor) -> Array:
    """The tensor's data as an ndarray that shares its memory (bfloat16 and float8 as ml_dtypes' types)."""
    return host_array(tensor, "to_numpy()")


def from_numpy(array: Array) -> Tensor:
    """A tensor that shares the array's memory, or a copy where ``StridedArray.from_array`` must copy."""
    if not isinstance(array, (np.ndarray, np.generic)):
        raise TypeError(f"from_numpy takes an ndarray, not {type(array).__name__}; see to_tensor")
    return Tensor._wrap(StridedArray.from_array(array))


def from_dlpack(producer: Any) -> Tensor:
    """A tensor that shares the memory of any host array with ``__dlpack__`` (numpy, torch, jax)."""
    if isinstance(producer, Tensor):
        return producer.detach()
    if not hasattr(producer, "__dlpack__"):
        raise TypeError(
            f"from_dlpack takes an object that has __dlpack__ and its device, not {type(producer).__name__}"
        )
    return Tensor._wrap(StridedArray.from_array(np.from_dlpack(producer)))
