"""Where operands are: the device of an application, and copies of what may go anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_hwadapt.registry import limit_names
from argosy_phi_ops.errors import DeviceMismatch
from argosy_phi_ops.settings import DEVICES
from argosy_tensorcore.storage import ArrayType, StridedArray
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_hwadapt import Device

__all__ = ["accelerator_of", "copy_elements", "device_of", "goes_anywhere", "send"]


limit_names(lambda: DEVICES.read().replace(" ", "").split(",") if DEVICES.is_set else None, DEVICES.name)


def accelerator_of(x: Any) -> Device | None:
    """The device of a tensor whose memory the host cannot see; None for anything else."""
    payload = x.payload if type(x) is Tensor else None
    return payload.array_type.device if type(payload) is StridedArray else None


def goes_anywhere(kind: ArrayType) -> bool:
    """Whether host arrays of this type are brought to a device without being asked: numbers, states of random draws."""
    return not kind.ndim or (kind.shape == (2,) and kind.dtype.name == "uint64")


def device_of(name: str, operands: Sequence[Any]) -> Device | None:
    """The device of the operands of an application of the operator ``name``; None where they are host arrays.

    Raises :class:`DeviceMismatch` for operands on two devices, unless they are on the host and go anywhere.
    """
    found: Device | None = None
    elsewhere: ArrayType | None = None
    for x in operands:
        known = getattr(x.payload, "array_type", None) if type(x) is Tensor else None
        if type(known) is not ArrayType:
            continue
        if known.device is None:
            elsewhere = elsewhere if goes_anywhere(known) else known
        elif found is None:
            found = known.device
        elif found is not known.device:
            raise DeviceMismatch(f"{name}: operands are on {found} and on {known.device}; bring them to one device")
    if found is not None and elsewhere is not None:
        raise DeviceMismatch(
            f"{name}: operands are on {found} and on cpu (of shape {list(elsewhere.shape)}); bring them to one device"
        )
    return found


def copy_elements(target: StridedArray, source: StridedArray) -> None:
    """`StridedArray.copy_from`. What goes through the host though neither came from there, because its elements are not
    adjacent in memory, is counted."""
    device = target.device
    if not device.is_host and not (target.contiguous and (source.contiguous or source.device is not device)):
        from argosy_phi_ops.eager.fallback import note_fallback  # who sets no device does without

        nbytes = target.nbytes + source.nbytes
        note_fallback("a write in place", device, "elements are not adjacent in memory", nbytes)
    target.copy_from(source)


def send(payload: StridedArray, device: Device) -> StridedArray:
    """A copy on ``device`` of what nobody changes before it has arrived, such as a number or a fresh result."""
    there = StridedArray.empty(payload.shape, payload.dtype, device)
    source = np.ascontiguousarray(payload.to_host())
    if source.nbytes:
        device.copy(there.storage.buffer, source.reshape(-1).view(np.uint8))
    return there
