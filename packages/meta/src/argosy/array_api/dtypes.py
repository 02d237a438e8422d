"""Data types of the array API standard: their names, limits and kinds."""

from __future__ import annotations

import builtins
from typing import NamedTuple

from argosy.array_api.promotion import apply, convert, result_type
from argosy_tensorcore import dtype as types
from argosy_tensorcore.dtype import DType, as_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = [
    "astype", "bool", "can_cast", "complex64", "complex128", "dtypes_of_kind", "finfo", "float32", "float64", "iinfo",
    "int8", "int16", "int32", "int64", "isdtype", "result_type", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip

bool = types.bool_
int8, int16, int32, int64 = types.int8, types.int16, types.int32, types.int64
uint8, uint16, uint32, uint64 = types.uint8, types.uint16, types.uint32, types.uint64
float32, float64 = types.float32, types.float64
complex64, complex128 = types.complex64, types.complex128

_ALL = (
    bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, complex64, complex128,
)  # fmt: skip
_KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
    "complex floating": "c", "numeric": "iufc",
}  # fmt: skip


class FloatLimits(NamedTuple):
    """Limits of a floating-point type, or of the parts of a complex one."""

    bits: builtins.int
    eps: builtins.float
    max: builtins.float
    min: builtins.float
    smallest_normal: builtins.float
    dtype: DType


class IntegerLimits(NamedTuple):
    """Limits of an integer type."""

    bits: builtins.int
    max: builtins.int
    min: builtins.int
    dtype: DType


def _dtype_of(x: DType | Tensor) -> DType:
    return x.dtype if isinstance(x, Tensor) else as_dtype(x)


def finfo(type: DType | Tensor, /) -> FloatLimits:
    """The limits of a floating-point or complex dtype, or of an array's. Raises TypeError for any other."""
    found = types.finfo(_dtype_of(type))
    return FloatLimits(found.bits, found.eps, found.max, found.min, found.smallest_normal, as_dtype(found.dtype))


def iinfo(type: DType | Tensor, /) -> IntegerLimits:
    """The limits of an integer dtype, or of an array's. Raises TypeError for any other."""
    found = types.iinfo(_dtype_of(type))
    return IntegerLimits(found.bits, found.max, found.min, as_dtype(found.dtype))


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> builtins.bool:
    """Whether ``dtype`` is one, or of a kind: "bool", "signed integer", "unsigned integer", "integral", "real
    floating", "complex floating" or "numeric"; of a tuple whether it is of any. Raises ValueError for other kinds."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, DType):
        return dtype is kind
    if kind not in _KINDS:
        raise ValueError(f"isdtype(): argument 'kind' should be a dtype or one of {', '.join(_KINDS)}, got {kind!r}")
    return dtype.kind in _KINDS[kind]


def dtypes_of_kind(kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
    """The dtypes of the standard by name; of one kind or several if given, see :func:`isdtype`."""
    return {dtype.name: dtype for dtype in _ALL if kind is None or isdtype(dtype, kind)}


def astype(x: Tensor, dtype: DType, /, *, copy: builtins.bool = True, device: object = None) -> Tensor:
    """``x`` in ``dtype``; itself where it is, unless ``copy``."""
    check_device("astype", device)
    wanted = as_dtype(dtype)
    return apply("assign", x) if copy and x.dtype is wanted else convert(x, wanted)


def can_cast(from_: DType | Tensor, to: DType, /) -> builtins.bool:
    """Whether promotion leads from a dtype (or an array's) to ``to``."""
    try:
        return result_type(_dtype_of(from_), to) is to
    except TypeError:
        return False


def check_device(function: str, device: object) -> None:
    """Refuse a place that functions of this namespace do not make arrays on: they use the cpu."""
    if device is not None and not str(device).startswith("cpu"):
        raise ValueError(f"{function}(): argument 'device' should be 'cpu' or None, got {device!r}")
