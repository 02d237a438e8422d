"""Kernels ``void name(result, left, right, count)`` over contiguous elements; results are numpy's, bit by bit."""

from __future__ import annotations

from argosy_cinn.eager.layout import OPERATORS
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import DOUBLE, FLOAT, I64, PTR, Value, bytes_of, vector

__all__ = ["DTYPES", "add_kernels", "kernel_name"]

DTYPES = {"float32": FLOAT, "float64": DOUBLE}
_OPCODES = dict(zip(OPERATORS, ("fadd", "fsub", "fmul", "fdiv"), strict=True))
_BYTES = 32  # of a vector


def kernel_name(operator: str, dtype: str) -> str:
    """The exported name of a kernel."""
    return f"{operator}_{dtype}"


def add_kernels(module: Module) -> None:
    """Define the kernels of all operators and dtypes."""
    for operator, opcode in _OPCODES.items():
        for dtype, element in DTYPES.items():
            parameters = [(PTR, "result"), (PTR, "left"), (PTR, "right"), (I64, "count")]
            with module.function(kernel_name(operator, dtype), parameters) as f:
                _loops(f, opcode, element)


def _loops(f: Function, opcode: str, element: str) -> None:
    """Whole vectors, then one by one."""
    count = f.arguments[3]
    lanes = _BYTES // bytes_of(element)
    whole = f.binary("and", count, -lanes)
    with f.loop(0, whole, lanes) as loop:
        _step(f, opcode, vector(element, lanes), element, loop.index)
    with f.loop(whole, count) as loop:
        _step(f, opcode, element, element, loop.index)


def _step(f: Function, opcode: str, type: str, element: str, index: Value) -> None:
    result, left, right, _ = f.arguments
    x, y = (f.load(type, f.at(pointer, index, element)) for pointer in (left, right))
    f.store(f.binary(opcode, x, y), f.at(result, index, element))
