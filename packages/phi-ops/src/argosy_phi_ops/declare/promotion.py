"""Dtype promotion of operands by Paddle's rules.

Tensors of one rank class (both with axes, or both 0-D) promote only between floating dtypes and from real to complex. A
0-D tensor against one with axes acts like a Python number of its kind, unless one of them is complex; operators that
Paddle leaves out of this rule (policy ``widest``) take the wider dtype of one kind. A Python number adapts to a tensor
unless its kind is higher. Kinds are ordered bool < integer < floating < complex.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argosy_phi_ops.errors import DTypeError, OperatorError
from argosy_pir.types import TensorType
from argosy_pir.values import Value
from argosy_tensorcore.dtype import as_dtype, default_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["POLICIES", "Operand", "conversions", "describe", "promote"]

Operand = tuple[str, bool]
"""Dtype name (``""`` kind names ``bool int float complex`` for Python numbers) and whether it has axes."""

_PYTHON = {"python bool": 0, "python int": 1, "python float": 2, "python complex": 3}
_BITS = {"float8_e4m3fn": 8, "float8_e5m2": 8, "float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}


def describe(x: Any) -> Operand:
    """Dtype and whether there are axes, of an IR value, a payload, a tensor or a Python number."""
    if isinstance(x, (bool, int, float, complex)):
        kind = next(kind for kind in (bool, int, float, complex) if isinstance(x, kind))  # numpy's float64 is a float
        return f"python {kind.__name__}", False
    if isinstance(x, Value):
        if not isinstance(x.type, TensorType):
            raise OperatorError(f"operators take tensors, got a value of type {x.type}")
        return x.type.dtype, bool(x.type.shape)
    return x.dtype.name, x.ndim > 0


def kind_of(dtype: str) -> int:
    """0 bool, 1 integer, 2 floating, 3 complex."""
    if dtype in _PYTHON:
        return _PYTHON[dtype]
    if dtype in _BITS:
        return 2
    return 3 if dtype.startswith("complex") else 0 if dtype == "bool" else 1


def promote(policy: str, name: str, operands: Sequence[Operand]) -> tuple[str, ...]:
    """The dtype each operand is converted to. Raises :class:`DTypeError` naming the operator ``name`` and the
    dtypes.
    """
    return POLICIES[policy](name, operands)


def conversions(policy: str, name: str, operands: Sequence[Any]) -> tuple[tuple[str, ...], tuple[Any, ...] | None]:
    """The dtype of each operand (tensors and numbers) after promotion; and what numpy converts each to first, None
    where nothing is, or None altogether."""
    described = [describe(x.payload if type(x) is Tensor else x) for x in operands]
    targets = promote(policy, name, described)
    dtypes = [None if t == old else as_dtype(t).numpy for t, (old, _) in zip(targets, described, strict=True)]
    return targets, tuple(dtypes) if any(dtypes) else None


def _none(name: str, operands: Sequence[Operand]) -> tuple[str, ...]:
    return tuple(_number(dtype) for dtype, _ in operands)


def _binary(name: str, operands: Sequence[Operand]) -> tuple[str, ...]:
    common = operands[0]
    for operand in operands[1:]:
        common = _pair(name, common, operand)
    return (_number(common[0]),) * len(operands)


def _widest(name: str, operands: Sequence[Operand]) -> tuple[str, ...]:
    tensors = [dtype for dtype, _ in operands if dtype not in _PYTHON]
    kinds = {kind_of(dtype) for dtype in tensors}
    if len({axes for dtype, axes in operands if dtype not in _PYTHON}) > 1 and len(kinds) == 1 and kinds <= {1, 2}:
        common = tensors[0]
        for dtype in tensors[1:]:
            common = common if common == dtype else _tensors(name, common, dtype, kinds == {2})
        operands = [(dtype if dtype in _PYTHON else common, axes) for dtype, axes in operands]
    return _binary(name, operands)


def _same_dtypes(name: str, operands: Sequence[Operand]) -> tuple[str, ...]:
    dtypes = {dtype for dtype, _ in operands if dtype not in _PYTHON}
    if len(dtypes) > 1:
        raise DTypeError(f"{name}: dtypes must agree, got {', '.join(d for d, _ in operands)}")
    common = dtypes.pop() if dtypes else ""
    return tuple(common or _number(dtype) for dtype, _ in operands)


def _float(name: str, operands: Sequence[Operand]) -> tuple[str, ...]:
    return tuple(default_dtype().name if kind_of(d) < 2 else d for d in _binary(name, operands))


def _widest_float(name: str, operands: Sequence[Operand]) -> tuple[str, ...]:
    return tuple(default_dtype().name if kind_of(d) < 2 else d for d in _widest(name, operands))


def _wide_float(name: str, operands: Sequence[Operand]) -> tuple[str, ...]:
    return tuple("float64" if kind_of(d) < 2 else d for d in _widest(name, operands))


def _true_division(name: str, operands: Sequence[Operand]) -> tuple[str, ...]:
    return tuple("float32" if kind_of(d) < 2 else d for d in _binary(name, operands))


def _like_first(name: str, operands: Sequence[Operand]) -> tuple[str, ...]:
    first = _number(operands[0][0])
    fits = [dtype in _PYTHON and kind_of(dtype) <= kind_of(first) for dtype, _ in operands]
    return tuple(first if fit else _number(dtype) for fit, (dtype, _) in zip(fits, operands, strict=True))


def _condition_first(name: str, operands: Sequence[Operand]) -> tuple[str, ...]:
    return (operands[0][0], *_widest(name, operands[1:]))


POLICIES: dict[str, Callable[[str, Sequence[Operand]], tuple[str, ...]]] = {
    "none": _none,
    "same": _same_dtypes,
    "binary": _binary,
    "widest": _widest,
    "float": _float,
    "widest float": _widest_float,
    "wide": _wide_float,
    "divide": _true_division,
    "where": _condition_first,
    "first": _like_first,
}
"""none: as they are; same: must agree; binary: Paddle's promotion; widest: that, but that a 0-D tensor's width counts;
float: binary, then integers become the default dtype; widest float: the same after widest; wide: widest, then integers
become float64; divide: binary, then integers become float32; where: a condition, and the others by widest; first:
numbers take the dtype of the first operand unless their kind is higher, tensors stay as they are."""


def _number(dtype: str) -> str:
    if dtype not in _PYTHON:
        return dtype
    return ("bool", "int64", default_dtype().name, "complex64")[_PYTHON[dtype]]


def _pair(name: str, x: Operand, y: Operand) -> Operand:
    if x[0] == y[0]:
        return (x[0], x[1] or y[1])
    if x[0] in _PYTHON or y[0] in _PYTHON:
        weak, strong = (x, y) if x[0] in _PYTHON and y[0] not in _PYTHON else (y, x)
        return (_weak(weak[0], strong[0]), strong[1])
    if x[1] != y[1]:
        if 3 in (kind_of(x[0]), kind_of(y[0])):  # no axes, but a width: complex64 and a 0-D float64 are complex128
            return (_tensors(name, x[0], y[0], True), True)
        weak, strong = (x, y) if y[1] else (y, x)
        return (_weak(weak[0], strong[0]), True)
    return (_tensors(name, x[0], y[0], x[1]), x[1])


def _weak(weak: str, strong: str) -> str:
    """The dtype of ``strong`` unless the kind of ``weak`` is higher."""
    if kind_of(weak) <= kind_of(strong):
        return strong
    if kind_of(weak) == 3:
        wide = strong == "float64" or (weak == "complex128" and kind_of(strong) < 2)
        return "complex128" if wide else "complex64"
    return _number(weak)


def _tensors(name: str, x: str, y: str, axes: bool) -> str:
    kinds = kind_of(x), kind_of(y)
    if kinds == (2, 2):
        if _BITS[x] == _BITS[y]:
            return "float32"
        return x if _BITS[x] > _BITS[y] else y
    if 3 in kinds:
        return "complex128" if {"complex128", "float64"} & {x, y} else "complex64"
    if not axes:
        return x if kinds[0] > kinds[1] or (kinds[0] == kinds[1] and _size(x) >= _size(y)) else y
    raise DTypeError(f"{name}: no promotion of {x} and {y}; convert one of them with astype()")


def _size(dtype: str) -> int:
    digits = "".join(c for c in dtype if c.isdigit())
    return int(digits) if digits else 1
