"""Writing tensors in place by native kernels that take all arrays of an update at once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.eager.native.loading import native_library
from argosy_tensorcore.dtype import DType
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

__all__ = ["may_update", "numbers", "update"]

_NUMBERS = {"float32": ctypes.c_float, "float64": ctypes.c_double}


def may_update() -> bool:
    """Whether updates may be native now: no layer is active, and nothing is recorded."""
    return bool(AMBIENT.word) and not context().grad_enabled and not context().layers


def numbers(*tensors: Tensor) -> list[Any] | None:
    """The values of tensors of one element as numpy scalars; None where one is no array on the host."""
    payloads = [x.payload for x in tensors]
    if all([type(p) is StridedArray and p.host_owned and p.size == 1 for p in payloads]):
        return [p.ndarray.reshape(())[()] for p in payloads]
    return None


def update(
    rule: str, tensors: Sequence[Tensor], scalars: Sequence[float], written: Sequence[int], arrays: int | None = None
) -> bool:
    """Run the native kernel of an optimizer's rule over ``tensors`` of one shape and dtype, those at ``written`` in
    place, with ``scalars`` rounded to their dtype; or, for more parameters at once, over each ``arrays`` of them.
    False, with nothing done, where there is no such kernel, a layer is active, gradients are recorded, or a tensor is
    no contiguous array on the host."""
    if not tensors or not may_update():
        return False
    dtype = tensors[0].payload.dtype
    found = _find(rule, dtype)
    count = len(tensors) if arrays is None else arrays
    if found is None or count != found.arrays:
        return False
    rounded = found.number * len(scalars)
    given = (found.address, count, sum(1 << i for i in written), dtype, ctypes.addressof(held := rounded(*scalars)))
    done = found.run(*given, list(tensors)) or (_prepare(tensors, count, written) and found.run(*given, list(tensors)))
    del held
    return bool(done)


def _prepare(tensors: Sequence[Tensor], count: int, written: Sequence[int]) -> bool:
    """Give arrays that will be written their storages, which count that; False where one has no memory on the host."""
    payloads = [x.payload for i, x in enumerate(tensors) if i % count in written]
    if not all([type(p) is StridedArray and p.host_owned for p in payloads]):
        return False
    return all([p.storage is not None for p in payloads])


class _Kernel(NamedTuple):
    run: Callable[..., bool]
    address: int
    arrays: int
    number: Any


_kernels: dict[tuple[str, DType], _Kernel] = {}


def _find(rule: str, dtype: DType) -> _Kernel | None:
    found = _kernels.get((rule, dtype))
    if found is None:
        made = native_library()
        name = f"{rule}_{dtype.name}"
        if made is None or name not in made.addresses:
            return None
        run = made.builtin("update_all")
        arrays, number = made.build.updates[rule], _NUMBERS[dtype.name]
        found = _kernels[rule, dtype] = _Kernel(run, made.addresses[name], arrays, number)
    return found
