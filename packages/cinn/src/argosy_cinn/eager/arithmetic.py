"""Kernels ``void name(result, left, right, count)`` over contiguous elements; results are numpy's, bit by bit.

``name_number_right`` (and ``_left``) take a double on that side, which is rounded to the elements' dtype first.
"""

from __future__ import annotations

from argosy_cinn.eager.slot_offsets import OPERATORS
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import DOUBLE, FLOAT, I64, PTR, bytes_of, vector

__all__ = ["DTYPES", "SIDES", "add_kernels", "kernel_name"]

DTYPES = {"float32": FLOAT, "float64": DOUBLE}
SIDES = ("", "left", "right")
"""Where a number stands."""
_OPCODES = dict(zip(OPERATORS, ("fadd", "fsub", "fmul", "fdiv"), strict=True))
_BYTES = 32  # of a vector


def kernel_name(operator: str, dtype: str, number: str = "") -> str:
    """The exported name of a kernel."""
    return f"{operator}_{dtype}" + (f"_number_{number}" if number else "")


def add_kernels(module: Module) -> None:
    """Define the kernels of all operators and dtypes."""
    for operator, opcode in _OPCODES.items():
        for dtype, element in DTYPES.items():
            for number in SIDES:
                parameters = [(PTR, "result"), (PTR, "left"), (PTR, "right"), (I64, "count")]
                with module.function(kernel_name(operator, dtype, number), parameters) as f:
                    _loops(f, opcode, element, number)


def _loops(f: Function, opcode: str, element: str, number: str) -> None:
    """Whole vectors, then one by one."""
    result, left, right, count = f.arguments
    sides = {"left": left, "right": right}
    fixed = {}
    if number:
        given = f.load(DOUBLE, sides[number])
        fixed[number] = given if element == DOUBLE else f.op(element, f"fptrunc {given} to {element}")
    lanes = _BYTES // bytes_of(element)
    whole = f.binary("and", count, -lanes)
    for start, stop, width in ((0, whole, lanes), (whole, count, 1)):
        with f.loop(start, stop, width) as loop:
            x, y = (
                f.splat(fixed[side], width) if side in fixed
                else f.load(vector(element, width), f.gep(pointer, loop.index, element))
                for side, pointer in sides.items()
            )  # fmt: skip
            f.store(f.binary(opcode, x, y), f.gep(result, loop.index, element))
