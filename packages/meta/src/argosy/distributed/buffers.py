"""Tensors as operands of collectives: contiguous host arrays, or buffers of devices, to read from and to write to.

A communicator says of which devices it takes buffers. What lies on another one passes through pinned memory of the
host, counted by collective.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_hwadapt.device_operand import DeviceOperand
from argosy_phi_ops.eager.staging import note_staged, pinned, staged
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

if TYPE_CHECKING:
    from argosy_hwadapt import Communicator

__all__ = [
    "Array", "Operand", "assign", "deliver", "empty_like", "is_direct", "read_operand", "read_values", "row_parts",
    "stack_operands", "staged", "write_operand",
]  # fmt: skip

Array = np.ndarray[Any, Any]
Operand = Any  #: an Array, or a DeviceOperand where the communicator takes it


def is_direct(communicator: Communicator, kind: str, *tensors: Tensor) -> bool:
    """Whether an operation's operands go to the communicator as they are in a device's memory: it takes buffers of that
    device, all are there, and their elements are adjacent.
    """
    payloads = [_payload(tensor, kind) for tensor in tensors]
    device = payloads[0].array_type.device if payloads else None
    if device is None or any(p.array_type.device is not device or not p.contiguous for p in payloads):
        return False
    return communicator.takes_device_buffers(device)


def read_values(tensor: Tensor, kind: str) -> Array:
    """The values of a local tensor on the host, contiguous; shared where they are so already.

    Raises TypeError for what is no local tensor.
    """
    payload = _payload(tensor, kind)
    if payload.array_type.device is None:
        return np.ascontiguousarray(payload.to_host()).reshape(tensor.shape)
    with _pinned_copy(payload, kind) as array:
        return array.copy()


@contextmanager
def read_operand(tensor: Tensor, kind: str, direct: bool) -> Iterator[Operand]:
    """A tensor as an operand that is read: in its device's memory where ``direct`` says so, else on the host."""
    payload = _payload(tensor, kind)
    if direct:
        yield _device_operand(payload)
    elif payload.array_type.device is None:
        yield read_values(tensor, kind)
    else:
        with _pinned_copy(payload, kind) as array:
            yield array


@contextmanager
def write_operand(tensor: Tensor, kind: str, direct: bool) -> Iterator[Operand]:
    """An operand with the tensor's values; what is written to it is the tensor's when the block ends well."""
    payload = _payload(tensor, kind)
    if direct:
        yield _device_operand(payload)
    elif payload.array_type.device is not None:
        with _pinned_copy(payload, kind) as array:
            yield array
            _upload(payload, array)
    else:
        held = payload.to_host()
        array = held if held.flags.c_contiguous and held.flags.writeable else np.array(held, order="C")
        yield array
        if array is not held:
            payload.fill_from(array)
    payload.bump_version()


def empty_like(operand: Operand, shape: Sequence[int]) -> Operand:
    """Room for a result of another shape where an operand is."""
    if isinstance(operand, DeviceOperand):
        return _device_operand(StridedArray.empty(shape, operand.dtype, operand.device))
    return np.empty(shape, operand.dtype)


def row_parts(operand: Operand, sizes: Sequence[int] | None = None) -> list[Operand]:
    """An operand cut along its first dimension; without sizes into its rows, which lack that dimension."""
    bounds = np.cumsum([0, *(sizes if sizes is not None else [1] * operand.shape[0])])
    if not isinstance(operand, DeviceOperand):
        return list(operand) if sizes is None else np.split(operand, bounds[1:-1])
    rest, heads = operand.shape[1:], [()] * operand.shape[0] if sizes is None else [(n,) for n in sizes]
    row = prod(rest) * operand.itemsize
    return [
        DeviceOperand(operand.buffer, operand.offset + int(at) * row, operand.dtype, (*head, *rest))
        for at, head in zip(bounds, heads, strict=False)
    ]


@contextmanager
def _pinned_copy(payload: StridedArray, kind: str, fetch: bool = True) -> Iterator[Array]:
    """A copy of a device's tensor in pinned memory, for the length of a block; only room for one without ``fetch``."""
    device = payload.device
    note_staged(kind, device, payload.nbytes)
    with pinned(device, payload.nbytes) as memory:
        array = np.frombuffer(memory, payload.dtype.numpy, payload.size).reshape(payload.shape)
        if fetch and payload.contiguous:
            _fetch(_device_operand(payload), array)
        elif fetch:
            array[...] = payload.to_host()
        yield array


def _upload(payload: StridedArray, array: Array) -> None:
    """Overwrite a device's tensor by an array in pinned memory."""
    if not payload.contiguous:
        payload.fill_from(array)
        return
    device = payload.device
    device.copy(payload.storage.buffer, array, payload.nbytes, payload.offset * payload.dtype.itemsize)
    device.synchronize()  # the array goes away


def _fetch(operand: DeviceOperand, into: Array) -> None:
    operand.device.copy(into, operand.buffer, operand.nbytes, 0, operand.offset)
    operand.device.synchronize()


def _device_operand(payload: StridedArray) -> DeviceOperand:
    element = payload.dtype
    return DeviceOperand(payload.storage.buffer, payload.offset * element.itemsize, element.numpy, payload.shape)


def deliver(parts: Sequence[Operand], into: list[Tensor], kind: str, like: Tensor) -> None:
    """Put one result for each rank into a list: appended when it is empty, on the device of ``like``, else written into
    its tensors.

    Raises ValueError when the list has another number of tensors.
    """
    if not into:
        made = [StridedArray.empty(part.shape, like.dtype, like.payload.array_type.device) for part in parts]
        into.extend(Tensor._wrap(payload) for payload in made)
    if len(into) != len(parts):
        raise ValueError(f"{kind}: the list of results has {len(into)} tensors; expected none or {len(parts)}")
    for tensor, part in zip(into, parts, strict=True):
        assign(tensor, part, kind)


def assign(tensor: Tensor, part: Operand, kind: str) -> None:
    """Overwrite a tensor by a result of as many elements, on its device without the host if that is where both are."""
    payload = _payload(tensor, kind)
    device = payload.array_type.device
    if payload.size != part.size:
        raise ValueError(f"{kind}: {list(part.shape)} does not fit a result of shape {list(payload.shape)}")
    if isinstance(part, DeviceOperand) and device is part.device and payload.contiguous:
        mine = _device_operand(payload)
        device.copy(mine.buffer, part.buffer, part.nbytes, mine.offset, part.offset)
    else:
        array = _host_array(part).reshape(payload.shape)
        payload.fill_from(array) if device is None else _stage(payload, array, kind)
    payload.bump_version()


def _host_array(part: Operand) -> Array:
    if not isinstance(part, DeviceOperand):
        return part  # type: ignore[no-any-return]
    array = np.empty(part.shape, part.dtype)
    _fetch(part, array)
    return array


def _stage(payload: StridedArray, array: Array, kind: str) -> None:
    with _pinned_copy(payload, kind, fetch=False) as pinned:
        pinned[...] = array
        _upload(payload, pinned)


def stack_operands(tensors: Sequence[Tensor], count: int, kind: str, direct: bool) -> Operand:
    """The tensors as one operand ``[count, *shape]``. Raises ValueError for another number or unequal shapes."""
    parts: list[Operand] = [_device_operand(t.payload) if direct else read_values(t, kind) for t in tensors]
    shapes = {(part.shape, part.dtype.name) for part in parts}
    if len(parts) != count or len(shapes) != 1:
        raise ValueError(
            f"{kind}: expected {count} tensors of one shape and dtype, one for each rank; got {len(parts)}: "
            f"{[(list(part.shape), part.dtype.name) for part in parts]}"
        )
    if not direct:
        return np.stack(parts)
    whole = empty_like(parts[0], (count, *parts[0].shape))
    for row, part in zip(row_parts(whole), parts, strict=True):
        part.device.copy(row.buffer, part.buffer, part.nbytes, row.offset, part.offset)
    return whole


def _payload(tensor: Any, kind: str) -> StridedArray:
    payload = getattr(tensor, "payload", None)
    if type(payload) is StridedArray:
        return payload
    if payload is None:
        raise TypeError(f"{kind}: expected a tensor, got {type(tensor).__name__}")
    if getattr(payload, "is_traced", False):
        payload.concretize(kind)  # its capture has ended: an error that says so
    raise TypeError(f"{kind}: takes a local tensor, got a distributed one; use reshard, or its _local_value()")
