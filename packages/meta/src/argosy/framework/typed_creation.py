"""Classes that make tensors of one dtype, as ``FloatTensor([1, 2])`` or ``FloatTensor(2, 3)``, and their relatives."""

# mypy: disable-error-code="no-any-return,index,operator"
from __future__ import annotations

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


def _factory(name: str, dtype: str) -> Any:
    """The class ``name``, whose calls make tensors of this dtype: a class, so that it also serves as an annotation
    (``LongTensor | None``)."""

    def __new__(cls: type, *args: Any) -> Tensor:
        if all(type(v) is int for v in args):
            return get_operator("empty")(list(args) or [0], dtype)
        if len(args) != 1:
            raise TypeError(f"{name}() takes sizes or one list of values, got {args!r}")
        return Tensor(args[0], dtype)

    text = (
        f"A {dtype} tensor: of the list of values, ``{name}([1, 2])``; of these sizes, to be overwritten, "
        f"``{name}(2, 3)``; of no elements, ``{name}()``. Raises TypeError for anything else."
    )
    return type(name, (), {"__new__": __new__, "__doc__": text, "__module__": __name__})


FloatTensor = _factory("FloatTensor", "float32")
DoubleTensor = _factory("DoubleTensor", "float64")
HalfTensor = _factory("HalfTensor", "float16")
BFloat16Tensor = _factory("BFloat16Tensor", "bfloat16")
ByteTensor = _factory("ByteTensor", "uint8")
CharTensor = _factory("CharTensor", "int8")
ShortTensor = _factory("ShortTensor", "int16")
IntTensor = _factory("IntTensor", "int32")
LongTensor = _factory("LongTensor", "int64")
BoolTensor = _factory("BoolTensor", "bool")


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
