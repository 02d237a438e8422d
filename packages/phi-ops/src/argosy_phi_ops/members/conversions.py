"""Methods that give a tensor another dtype or place, and new tensors like it."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import finalize

import numpy as np

from argosy_phi_ops.capture.device_copies import copy_to_place
from argosy_phi_ops.capture.tracer import active_tracer
from argosy_phi_ops.declare.operator import get_operator as op
from argosy_phi_ops.eager.creation import creation_device
from argosy_phi_ops.eager.recording import record_results
from argosy_phi_ops.errors import CaptureError
from argosy_tensorcore.dtype import DType, as_dtype
from argosy_tensorcore.place import CPU, Place, as_place
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["MEMBERS"]

_CASTS = {
    "bfloat16": "bfloat16", "bool": "bool", "byte": "uint8", "cdouble": "complex128", "cfloat": "complex64",
    "char": "int8", "complex128": "complex128", "complex64": "complex64", "double": "float64", "float": "float32",
    "float16": "float16", "float32": "float32", "float64": "float64", "half": "float16", "int": "int32",
    "int16": "int16", "int32": "int32", "int64": "int64", "int8": "int8", "long": "int64", "short": "int16",
    "uint8": "uint8",
}  # fmt: skip


def _cast_method(name: str, dtype: str) -> Callable[[Tensor], Tensor]:
    def method(self: Tensor) -> Tensor:
        return self if self.dtype.name == dtype else op("cast")(self, dtype)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The elements as {dtype}; the tensor itself if they are."
    return method


def _wanted_dtype(value: Any) -> DType | None:
    if isinstance(value, Tensor):
        return value.dtype
    try:
        return as_dtype(value)
    except (TypeError, ValueError):
        return None


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor on another place, of another dtype, or both as those of another tensor.

    ``to(dtype)``, ``to(device, dtype=None, blocking=None)``, ``to(other)``; the tensor itself where nothing changes,
    but a copy for a dtype that is given as text, as in Paddle.
    Raises ``DeviceNotFound`` for a place that is not there.
    """
    given = [v for v in args if v is not None and not isinstance(v, bool)]
    dtype, place = kwargs.get("dtype"), kwargs.get("device", kwargs.get("place"))
    text = isinstance(dtype, str)
    other = kwargs.get("other")
    unknown = kwargs.keys() - {"dtype", "device", "place", "other", "blocking", "non_blocking", "copy"}
    if unknown:
        raise TypeError(f"Tensor.to() has no argument {sorted(unknown)}")
    for value in [*given, *([] if other is None else [other])]:
        found = _wanted_dtype(value)
        if found is not None:
            dtype, text = found, isinstance(value, str)
        else:
            place = value
    if place is not None:
        self = _on_place(self, as_place(place))
    result = self if dtype is None or self.dtype is as_dtype(dtype) else op("cast")(self, as_dtype(dtype).name)
    return op("assign")(result) if result is self and (text or kwargs.get("copy")) else result


def _to(
    self: Tensor, device: Any = None, dtype: Any = None, blocking: bool | None = None, copy_tensor: bool | None = None
) -> Tensor:
    """:func:`to` as libraries call it that keep Paddle's own under this name."""
    return to(self, device=device, dtype=dtype, copy=copy_tensor)


def cpu(self: Tensor) -> Tensor:
    """The tensor on the host: itself where it is there, else a copy, through which gradients go back."""
    payload = self.payload
    if payload.is_traced:
        return _copy_traced(self, CPU)
    if type(payload) is not StridedArray or payload.host_owned or payload.device.is_host:
        return self
    if active_tracer() is not None:
        return _copy_traced(self, CPU)
    copy = Tensor._wrap(StridedArray(payload.to_host()))
    record_results(op("assign"), [self], {}, (copy,))
    return copy


def _on_place(self: Tensor, place: Place) -> Tensor:
    """The tensor at a place: itself where it is there, else a copy, through which gradients go back."""
    if place.is_cpu_place():
        return cpu(self)
    device, payload = place.device(), self.payload
    if payload.is_traced or (type(payload) is StridedArray and active_tracer() is not None):
        return _copy_traced(self, place)
    if type(payload) is not StridedArray:
        raise NotImplementedError(f"a copy to {place!r} of a tensor of {type(payload).__name__}: bring its parts there")
    if payload.array_type.device is device:
        return self
    copy = Tensor._wrap(StridedArray.from_array(payload.to_host(), device))
    record_results(op("assign"), [self], {}, (copy,))
    return copy


def _copy_traced(x: Tensor, place: Place) -> Tensor:
    """:func:`_on_place` for tensors of a program that is being captured."""
    tracer = active_tracer()
    if tracer is None:
        raise CaptureError("a traced tensor was used after its capture had ended")
    return copy_to_place(tracer, x, place)


def cuda(self: Tensor, device_id: int | None = None, blocking: bool = True) -> Tensor:
    """The tensor on a GPU. Raises ``DeviceNotFound`` where there is none."""
    return _on_place(self, Place("gpu", device_id or 0))


def pin_memory(self: Tensor, blocking: bool = True) -> Tensor:
    """A copy in host memory from which the current device copies fast. Raises ``NotImplementedError`` where the host is
    the current device."""
    device = creation_device()
    if device is None or device.is_host:
        raise NotImplementedError("Tensor.pin_memory: memory is pinned for a device, and set_device() has set none")
    array = cpu(self).payload.array()
    memory = device.call("pinned_alloc", array.nbytes)
    held = np.frombuffer(memory, np.uint8, array.nbytes)
    finalize(held, device.call, "pinned_free", memory)
    pinned = held.view(array.dtype).reshape(array.shape)
    pinned[...] = array
    copy = Tensor._wrap(StridedArray(pinned))
    record_results(op("assign"), [self], {}, (copy,))
    return copy


def astype(self: Tensor, dtype: Any) -> Tensor:
    """The elements converted to ``dtype``; the tensor itself where they are of it."""
    return self if self.dtype is as_dtype(dtype) else op("astype")(self, dtype)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The elements in the dtype of ``other``."""
    if not hasattr(other, "dtype"):
        raise TypeError(f"type_as(): argument 'other' must be a Tensor, got {type(other).__name__}")
    return to(self, other.dtype)


def contiguous(self: Tensor) -> Tensor:
    """The tensor with its elements in row-major order: itself if they are, else a copy."""
    if self.payload.is_traced or self.is_contiguous():
        return self
    return op("assign")(self)


def _size(size: Any) -> list[int]:
    if not isinstance(size, int) and (isinstance(size, str) or not hasattr(type(size), "__iter__")):
        raise TypeError(f"argument 'size' must be an integer or a sequence of integers, got {size!r:.60}")
    return [size] if isinstance(size, int) else list(size)


def _create(
    var: Tensor, name: str, values: tuple[Any, ...], dtype: Any, device: Any, requires_grad: bool, pin_memory: bool
) -> Tensor:
    """What the operator ``name`` makes in the dtype of ``var`` and where that is, unless told otherwise."""
    kind = var.dtype.name if dtype is None else as_dtype(dtype).name
    place = device if device is not None or var.place.is_cpu_place() else var.place
    return op(name)(*values, kind, device=place, requires_grad=requires_grad, pin_memory=pin_memory)


def new_full(
    var: Tensor,
    size: int | Sequence[int],
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of that size full of ``fill_value``, in the dtype of ``var`` and where that is unless told."""
    return _create(var, "full", (_size(size), fill_value), dtype, device, requires_grad, pin_memory)


def _creation_method(name: str) -> Callable[..., Tensor]:
    def method(
        var: Tensor,
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Tensor:
        sizes = _size(size[0]) if len(size) == 1 else list(size)
        return _create(var, name, (sizes,), dtype, device, requires_grad, pin_memory)

    method.__name__ = method.__qualname__ = f"new_{name}"
    method.__doc__ = f"A tensor of those sizes (or that list of them) by ``{name}``, by default in ``var``'s dtype."
    return method


def _flip(var: Tensor) -> Tensor:
    """All axes in reverse order. A view."""
    return op("transpose")(var, list(range(var.ndim))[::-1])


def _flip_matrix(var: Tensor) -> Tensor:
    """The last two axes exchanged. A view."""
    return op("matrix_transpose")(var)


MEMBERS: dict[str, Any] = {
    **{name: _cast_method(name, dtype) for name, dtype in _CASTS.items()},
    "astype": astype,
    "to": to,
    "_to": _to,
    "cpu": cpu,
    "cuda": cuda,
    "pin_memory": pin_memory,
    "type_as": type_as,
    "contiguous": contiguous,
    "new_full": new_full,
    "new_empty": _creation_method("empty"),
    "new_ones": _creation_method("ones"),
    "new_zeros": _creation_method("zeros"),
    "T": property(_flip),
    "mT": property(_flip_matrix),
}
"""Name -> method or property."""
