"""Methods that overwrite a tensor's elements or change what memory it shows."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from argosy_phi_ops.declare.operator import get_operator as op
from argosy_phi_ops.eager.dispatch import is_recording, is_unwatched, rebind, write
from argosy_tensorcore.shape import contiguous_strides
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["MEMBERS"]


def fill_(self: Tensor, value: Any) -> Tensor:
    """Every element overwritten by ``value``, a number or a 0-D tensor."""
    if type(value) in (int, float) and (not value or self.dtype.kind == "f") and is_unwatched(self):
        return _fill(self, value)
    number = value if isinstance(value, Tensor) else op("full")([], value, self.dtype.name)
    everywhere = op("full")([], True, "bool")
    old = op("assign")(self)  # its gradient is zero, not missing
    write(self, op("masked_fill")(old, everywhere, number.astype(self.dtype)))
    return self


def zero_(self: Tensor) -> Tensor:
    """Every element overwritten by zero."""
    return _fill(self, 0) if is_unwatched(self) else fill_(self, 0)


def _fill(x: Tensor, value: float) -> Tensor:
    payload = x.payload
    payload.fill_from(value)
    payload.storage.version += 1
    return x


def apply(self: Tensor, func: Callable[[Tensor], Tensor]) -> Tensor:
    """``func`` of the tensor, which must not want gradients."""
    _check_unrecorded("apply", self)
    return func(self)


def apply_(self: Tensor, func: Callable[[Tensor], Tensor]) -> Tensor:
    """The tensor overwritten by ``func`` of it; it must not want gradients."""
    _check_unrecorded("apply_", self)
    write(self, func(self))
    return self


def _check_unrecorded(name: str, tensor: Tensor) -> None:
    if is_recording() and not tensor.stop_gradient:
        raise RuntimeError(f"Tensor.{name} of a tensor that wants gradients: they could not pass through the function")


def set_(
    x: Tensor,
    source: Tensor | None = None,
    shape: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
    offset: int = 0,
    name: str | None = None,
) -> Tensor:
    """``x`` shows the memory of ``source`` (of no element by default) with that shape, strides and offset in bytes."""
    if source is None:
        rebind(x, op("empty")([0] if shape is None else list(shape), x.dtype.name))
        return x
    if shape is None and stride is None and not offset:
        shown = source.payload
    else:
        sizes = list(source.shape) if shape is None else list(shape)
        steps = contiguous_strides(tuple(sizes)) if stride is None else stride
        shown = op("as_strided")(source.detach(), sizes, list(steps), offset).payload
    rebind(x, Tensor._wrap(shown))
    return x


def resize_(x: Tensor, shape: Sequence[int], fill_zero: bool = False, name: str | None = None) -> Tensor:
    """``x`` in another shape: its first elements in row-major order, then zeros where there are not enough.

    Without ``fill_zero`` what follows is undefined in Paddle; here it is zero, too.
    """
    if any(int(n) < 0 for n in shape):
        raise ValueError(f"resize_: shape {list(shape)} may not hold negative sizes")
    values = np.zeros(prod(shape), x.payload.dtype.numpy)
    flat = x.payload.to_host().reshape(-1)[: values.size]
    values[: flat.size] = flat
    rebind(x, Tensor._wrap(StridedArray(values.reshape(tuple(shape)))))
    return x


def detach_(self: Tensor) -> Tensor:
    """The tensor cut off from what it was computed from."""
    self._node = None
    self._slot = 0
    self.stop_gradient = True
    return self


def reconstruct_from_(self: Tensor, other: Tensor) -> None:
    """The tensor shows the data of ``other`` from now on."""
    detach_(self)
    rebind(self, other.detach())
    self.stop_gradient = other.stop_gradient


MEMBERS: dict[str, Any] = {
    "fill_": fill_,
    "zero_": zero_,
    "apply": apply,
    "apply_": apply_,
    "set_": set_,
    "resize_": resize_,
    "detach_": detach_,
    "reconstruct_from_": reconstruct_from_,
}
"""Name -> method."""
