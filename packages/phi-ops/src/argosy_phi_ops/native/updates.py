"""Writing tensors in place by native kernels that take all arrays of an update at once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.native.start import native
from argosy_tensorcore.dtype import DType
from argosy_tensorcore.storage import Strided
from argosy_tensorcore.tensor import Tensor

__all__ = ["numbers", "update"]

_functions: dict[tuple[str, DType], Callable[..., None]] = {}
_NUMBERS = {"float32": ctypes.c_float, "float64": ctypes.c_double}


def numbers(*tensors: Tensor) -> list[Any] | None:
    """The values of tensors of one element as numpy scalars; None where one is no array on the host."""
    payloads = [x.payload for x in tensors]
    if all([type(p) is Strided and p.host_owned and p.size == 1 for p in payloads]):
        return [p.ndarray.reshape(())[()] for p in payloads]
    return None


def update(rule: str, tensors: Sequence[Tensor], scalars: Sequence[float], written: Sequence[int]) -> bool:
    """Run the native kernel of an optimizer's rule over ``tensors`` of one shape and dtype, those at ``written`` in
    place, with ``scalars`` rounded to their dtype. False, with nothing done, where there is no such kernel, a layer is
    active, gradients are recorded, or a tensor is no contiguous array on the host."""
    if not AMBIENT.word or context().grad_enabled or context().layers:
        return False
    payloads = [x.payload for x in tensors]
    first = payloads[0]
    if not all([_simple(x, first) for x in tensors]):
        return False
    kernel = _kernel(rule, first.dtype, len(payloads))
    if kernel is None:
        return False
    rounded = _NUMBERS[first.dtype.name] * len(scalars)
    kernel(*[p.address for p in payloads], rounded(*scalars), first.size)
    for i in written:
        payloads[i].bump_version()
    return True


def _simple(x: Tensor, first: Strided) -> bool:
    """Whether a tensor is no result of the graph, and a contiguous array like the one of ``first``."""
    payload = x.payload
    if type(payload) is not Strided or not payload.host_owned or x._node is not None:
        return False
    if payload.dtype is not first.dtype or payload.shape != first.shape:
        return False
    flags = payload.ndarray.flags
    return bool(flags.c_contiguous and flags.behaved)


def _kernel(rule: str, dtype: DType, count: int) -> Callable[..., None] | None:
    found = _functions.get((rule, dtype))
    if found is None:
        made = native()
        name = f"{rule}_{dtype.name}"
        if made is None or name not in made.addresses:
            return None
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (count + 1), ctypes.c_int64)
        found = _functions[rule, dtype] = prototype(made.addresses[name])
    return found
