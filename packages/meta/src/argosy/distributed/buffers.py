"""Tensors as operands of collectives: contiguous host arrays to read from and to write to.

Communicators take host memory: what lies on a device passes through pinned memory of the host, counted by collective.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from argosy_phi_ops.eager.placement import send
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["Array", "deliver", "read_values", "same_shapes", "staged", "write_values"]

Array = np.ndarray[Any, Any]
staged: dict[tuple[str, str], list[int]] = {}
"""Operands of collectives that lay on a device, by kind and device: how many, and their bytes."""


def read_values(tensor: Tensor, kind: str) -> Array:
    """The values of a local tensor, contiguous; shared where they are so already.

    Raises TypeError for what is no local tensor.
    """
    payload = _payload(tensor, kind)
    if payload.array_type.device is not None:
        _count(kind, payload)
    return np.ascontiguousarray(payload.to_host()).reshape(tensor.shape)


@contextmanager
def write_values(tensor: Tensor, kind: str) -> Iterator[Array]:
    """A contiguous array with the tensor's values; what is written to it is the tensor's when the block ends well."""
    payload = _payload(tensor, kind)
    if payload.array_type.device is not None:
        with _pinned_copy(payload, kind) as array:
            yield array
            payload.fill_from(array)
            payload.device.synchronize()
        payload.bump_version()
        return
    held = payload.to_host()
    array = held if held.flags.c_contiguous and held.flags.writeable else np.array(held, order="C")
    yield array
    if array is not held:
        payload.fill_from(array)
    payload.bump_version()


@contextmanager
def _pinned_copy(payload: StridedArray, kind: str) -> Iterator[Array]:
    """A copy of a device's tensor in pinned memory, for the length of a block."""
    device = payload.device
    _count(kind, payload)
    memory = device.call("pinned_alloc", max(payload.nbytes, 1))
    try:
        array = np.frombuffer(memory, payload.dtype.numpy, payload.size).reshape(payload.shape)
        array[...] = payload.to_host()
        yield array
    finally:
        device.call("pinned_free", memory)


def _count(kind: str, payload: StridedArray) -> None:
    counted = staged.setdefault((kind, str(payload.device)), [0, 0])
    counted[0] += 1
    counted[1] += payload.nbytes


def deliver(parts: Sequence[Array], into: list[Tensor], kind: str, like: Tensor) -> None:
    """Put one result for each rank into a list: appended when it is empty, on the device of ``like``, else written into
    its tensors.

    Raises ValueError when the list has another number of tensors.
    """
    if not into:
        device = like.payload.array_type.device
        made = [StridedArray(np.array(part)) for part in parts]
        into.extend(Tensor._wrap(part if device is None else send(part, device)) for part in made)
        return
    if len(into) != len(parts):
        raise ValueError(f"{kind}: the list of results has {len(into)} tensors; expected none or {len(parts)}")
    for tensor, part in zip(into, parts, strict=True):
        with write_values(tensor, kind) as array:
            if array.size != part.size:
                raise ValueError(f"{kind}: {list(part.shape)} does not fit a result of shape {list(array.shape)}")
            array[...] = part.reshape(array.shape)


def same_shapes(tensors: Sequence[Tensor], count: int, kind: str) -> Array:
    """The tensors as one array ``[count, *shape]``. Raises ValueError for another number or unequal shapes."""
    arrays = [read_values(t, kind) for t in tensors]
    shapes = {(a.shape, a.dtype.name) for a in arrays}
    if len(arrays) != count or len(shapes) != 1:
        raise ValueError(
            f"{kind}: expected {count} tensors of one shape and dtype, one for each rank; got {len(arrays)}: "
            f"{[(list(a.shape), a.dtype.name) for a in arrays]}"
        )
    return np.stack(arrays)


def _payload(tensor: Any, kind: str) -> StridedArray:
    payload = getattr(tensor, "payload", None)
    if type(payload) is StridedArray:
        return payload
    if payload is None:
        raise TypeError(f"{kind}: expected a tensor, got {type(tensor).__name__}")
    if getattr(payload, "is_traced", False):
        payload.concretize(kind)  # its capture has ended: an error that says so
    raise TypeError(f"{kind}: takes a local tensor, got a distributed one; use reshard, or its _local_value()")
