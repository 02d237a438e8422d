"""Tensors as DLPack's capsules: memory that other frameworks read without copying it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argosy_tensorcore.conversion import host_array

if TYPE_CHECKING:
    from argosy_tensorcore.tensor import Tensor

_CPU_DEVICE = (1, 0)  # DLPack's kDLCPU


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
