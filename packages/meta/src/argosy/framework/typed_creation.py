"""Makers of tensors of one dtype, as ``FloatTensor([1, 2])`` or ``FloatTensor(2, 3)``, and their relatives."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import argosy.runtime  # noqa: F401  (operators and the tape come with the first tensor)
from argosy_phi_ops.declare.operator import get_operator
from argosy_tensorcore import naming
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.place import as_place
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "asarray", "create_tensor",
]  # fmt: skip


def _maker(name: str, dtype: str) -> Callable[..., Tensor]:
    def make(*args: Any) -> Tensor:
        if all(type(v) is int for v in args):
            return get_operator("empty")(list(args) or [0], dtype)
        if len(args) != 1:
            raise TypeError(f"{name} takes data or sizes, got {[type(v).__name__ for v in args]}")
        return Tensor(args[0], dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A {dtype} tensor of the data given, or uninitialised of the sizes given."
    return make


FloatTensor = _maker("FloatTensor", "float32")
DoubleTensor = _maker("DoubleTensor", "float64")
HalfTensor = _maker("HalfTensor", "float16")
BFloat16Tensor = _maker("BFloat16Tensor", "bfloat16")
ByteTensor = _maker("ByteTensor", "uint8")
CharTensor = _maker("CharTensor", "int8")
ShortTensor = _maker("ShortTensor", "int16")
IntTensor = _maker("IntTensor", "int32")
LongTensor = _maker("LongTensor", "int64")
BoolTensor = _maker("BoolTensor", "bool")


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """``obj`` as a tensor without a past, on ``device``; it shares memory with one of that dtype there unless a
    ``copy`` is wanted."""
    if obj is None:
        raise TypeError("asarray(): argument 'obj' should be a number, nested lists, an array or a tensor, got None")
    wanted, place = None if dtype is None else as_dtype(dtype), None if device is None else as_place(device)
    here = isinstance(obj, Tensor) and (place is None or obj.place == place)
    if here and not copy and (wanted is None or obj.dtype is wanted):
        result = obj if obj.stop_gradient else obj.detach()
    elif copy is False:
        raise ValueError("asarray: copy=False, but the data must be copied to become this tensor")
    else:
        result = Tensor(obj, wanted, place)
    if requires_grad:
        result.stop_gradient = False
    return result


def create_tensor(dtype: Any, name: str | None = None, persistable: bool = False) -> Tensor:
    """A tensor without elements, to be filled later."""
    made: Tensor = get_operator("empty")([0], as_dtype(dtype).name)
    made.name, made.persistable = name or naming.generate("create_tensor"), persistable
    return made
