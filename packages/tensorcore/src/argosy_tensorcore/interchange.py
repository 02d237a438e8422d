"""Zero-copy exchange with numpy and with other frameworks through DLPack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_tensorcore.conversion import host_array
from argosy_tensorcore.storage import Array, Strided

if TYPE_CHECKING:
    from argosy_tensorcore.tensor import Tensor

_CPU_DEVICE = (1, 0)  # DLPack's kDLCPU


def to_numpy(tensor: Tensor) -> Array:
    """The tensor's data as an ndarray that shares its memory (bfloat16 and float8 as ml_dtypes' types)."""
    return host_array(tensor, "to_numpy()")


def from_numpy(array: Array) -> Tensor:
    """A tensor that shares the array's memory, or a copy where ``Strided.from_array`` must copy."""
    from argosy_tensorcore.tensor import Tensor

    if not isinstance(array, (np.ndarray, np.generic)):
        raise TypeError(f"from_numpy takes an ndarray, not {type(array).__name__}; see to_tensor")
    return Tensor._wrap(Strided.from_array(array))


def from_dlpack(producer: Any) -> Tensor:
    """A tensor that shares the memory of any host array with ``__dlpack__`` (numpy, torch, jax)."""
    from argosy_tensorcore.tensor import Tensor

    if isinstance(producer, Tensor):
        return producer.detach()
    if not hasattr(producer, "__dlpack__"):
        raise TypeError(
            f"from_dlpack takes an object that has __dlpack__ and its device, not {type(producer).__name__}"
        )
    return Tensor._wrap(Strided.from_array(np.from_dlpack(producer)))


def dlpack_device(tensor: Tensor) -> tuple[int, int]:
    """DLPack's (device type, index) of the memory. Raises BufferError when the host cannot see it."""
    if not tensor.place.is_cpu_place():
        raise BufferError(
            f"only host memory is offered through DLPack; this tensor is on {tensor.place}: copy it to cpu"
        )
    return _CPU_DEVICE


def to_dlpack(tensor: Tensor, **request: Any) -> Any:
    """The DLPack capsule of a tensor; request: max_version, dl_device, copy of the array API standard."""
    if not tensor.stop_gradient:
        raise BufferError("a tensor that needs gradients is not offered through DLPack; detach() it first")
    dlpack_device(tensor)
    wanted = {key: value for key, value in request.items() if value is not None}
    array = host_array(tensor, "__dlpack__()")
    if not tensor.dtype.in_numpy:
        raise BufferError(f"numpy, which makes the capsule, cannot offer {tensor.dtype.name} through DLPack")
    return array.__dlpack__(**wanted)
