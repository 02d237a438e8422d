"""Promotion by the array API standard: a table of dtypes of one kind, the same for tensors with and without axes.

Paddle's operators promote otherwise (a tensor without axes counts as a number; integers of two widths are refused), so
that functions of this namespace convert their operands first. :func:`standard_promotion` has Python's operators on
tensors do the same.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import argosy.runtime  # noqa: F401  (operators come with the first tensor)
from argosy_phi_ops.declare.composition import find_function
from argosy_phi_ops.declare.operator import Operator, get_operator
from argosy_phi_ops.eager.dispatch import Interpreter, layer
from argosy_tensorcore.dtype import DType, as_dtype, default_dtype
from argosy_tensorcore.tensor import Tensor

__all__ = ["apply", "as_tensor", "convert", "promote_operands", "result_type", "standard_promotion"]

Scalar = builtins.int | builtins.float | builtins.complex | builtins.bool
Operand = Tensor | Scalar

_ORDER = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_SCALAR_ORDER = {builtins.bool: 0, builtins.int: 1, builtins.float: 2, builtins.complex: 3}
_SIGNED = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}


def result_type(*arrays_and_dtypes: Tensor | DType | Scalar) -> DType:
    """The dtype that arrays, dtypes and Python numbers (at least one of the first two) promote to.

    Beyond the standard, a floating dtype beside an integer one gives the floating one. Raises TypeError for uint64
    beside a signed integer, which no integer dtype holds.
    """
    strong = [_dtype_of(x) for x in arrays_and_dtypes if type(x) not in _SCALAR_ORDER]
    if not strong:
        raise TypeError("result_type() needs an array or a dtype among its arguments, got Python numbers alone")
    found = strong[0]
    for dtype in strong[1:]:
        found = _pair(found, dtype)
    weak = max((_SCALAR_ORDER[type(x)] for x in arrays_and_dtypes if type(x) in _SCALAR_ORDER), default=0)
    return found if weak <= _ORDER[found.kind] else _promoted_dtype(found, weak)


def _dtype_of(x: Any) -> DType:
    return x.dtype if isinstance(x, Tensor) else as_dtype(x)


def _pair(x: DType, y: DType) -> DType:
    if x is y:
        return x
    low, high = sorted((x, y), key=lambda dtype: (_ORDER[dtype.kind], dtype.itemsize))
    if high.kind == "c" and low.kind == "f":
        return as_dtype("complex128") if low.itemsize == 8 else high
    if _ORDER[low.kind] != _ORDER[high.kind] or low.kind == high.kind != "f":
        return high
    if low.kind == "f":
        return high if high.itemsize > low.itemsize else as_dtype("float32")  # float16 and bfloat16
    return _mixed_signs(x, y)


def _mixed_signs(x: DType, y: DType) -> DType:
    unsigned, signed = (x, y) if x.kind == "u" else (y, x)
    needed = max(signed.itemsize, 2 * unsigned.itemsize)
    if needed > 8:
        raise TypeError(f"{x.name} and {y.name} do not promote: no integer dtype holds both; convert one with astype()")
    return as_dtype(_SIGNED[needed])


def _promoted_dtype(dtype: DType, weak: builtins.int) -> DType:
    """The dtype beside a Python number of a higher kind."""
    if weak == 3:
        return as_dtype("complex128" if dtype.name == "float64" else "complex64")
    return default_dtype() if weak == 2 else as_dtype("int64")


def apply(name: str, *args: Any, **kwargs: Any) -> Any:
    """The operator or composed function ``name`` of the library, applied."""
    function: Any = find_function(name)
    return function(*args, **kwargs)


def convert(x: Tensor, dtype: DType) -> Tensor:
    """``x`` in ``dtype``, itself where it is."""
    found: Tensor = x if x.dtype is dtype else get_operator("cast")(x, dtype.name)
    return found


def as_tensor(x: Operand, dtype: DType) -> Tensor:
    """A tensor or a Python number as a tensor of ``dtype``."""
    return convert(x, dtype) if isinstance(x, Tensor) else Tensor(x, dtype)


def promote_operands(function: str, *operands: Operand) -> tuple[Tensor, ...]:
    """The operands as tensors of one dtype. Raises TypeError for what is neither a tensor nor a number."""
    for x in operands:
        if not isinstance(x, (Tensor, *_SCALAR_ORDER)):
            raise TypeError(f"{function}() takes arrays and Python numbers, got {type(x).__name__}")
    dtype = result_type(*operands)
    return tuple([as_tensor(x, dtype) for x in operands])


_BINARY = frozenset({
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "matmul", "bitwise_and", "bitwise_or",
    "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "less_than", "less_equal", "greater_than",
    "greater_equal", "equal", "not_equal",
})  # fmt: skip


class _StandardPromotion(Interpreter):
    """The layer of operators: it converts tensors of two dtypes to the one that the standard says."""

    def process(
        self, op: Operator, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]
    ) -> Any:
        """``op`` with operands of one dtype."""
        if op.name in _BINARY and len(operands) == 2:
            x, y = operands
            if type(x) is Tensor and type(y) is Tensor and x.payload.dtype is not y.payload.dtype:
                dtype = result_type(x, y)
                operands = [self._convert(each, dtype, below) for each in operands]
        return below(op, operands, attributes)

    @staticmethod
    def _convert(x: Tensor, dtype: DType, below: Callable[..., Any]) -> Any:
        return x if x.payload.dtype is dtype else below(get_operator("cast"), (x,), {"dtype": dtype.name})


@contextmanager
def _push_layer() -> Iterator[None]:
    with layer(_StandardPromotion()):
        yield


def standard_promotion() -> AbstractContextManager[None]:
    """A block within which Python's operators on tensors (``x + y``) promote as the functions here do."""
    return _push_layer()
