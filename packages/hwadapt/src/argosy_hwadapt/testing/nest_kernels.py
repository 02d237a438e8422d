"""The kit's kernels as text of form ``nest``, which has sizes and numbers in the place of scalar arguments."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from argosy_hwadapt.kernel import Scalar

_TYPES = {"float32": "f", "float64": "d", "int32": "i", "int64": "q"}
_AFFINE = """
%0 = {T} load b0[i0]
%1 = {T} constant {0}
%2 = {T} mul %0 %1
%3 = {T} constant {1}
%4 = {T} add %2 %3
store each {T} b1[i0] = %4"""
_MAPS = {
    **{f"affine_{dtype}": _AFFINE.replace("{T}", dtype) for dtype in _TYPES},
    "relu": """
%0 = float32 load b0[i0]
%1 = float32 constant 0x00000000
%2 = float32 maximum %0 %1
store each float32 b1[i0] = %2""",
    "relu_backward": """
%0 = float32 load b0[i0]
%1 = float32 constant 0x00000000
%2 = bool gt %0 %1
%3 = float32 load b1[i0]
%4 = float32 select %2 %3 %1
store each float32 b2[i0] = %4""",
    "axpby": """
%0 = float32 load b0[i0]
%1 = float32 constant {0}
%2 = float32 mul %0 %1
%3 = float32 load b1[i0]
%4 = float32 constant {1}
%5 = float32 mul %3 %4
%6 = float32 add %2 %5
store each float32 b2[i0] = %6""",
    "sum_squares": """
%0 = float32 load b0[i0]
%1 = float32 mul %0 %0
%2 = float32 reduce sum %1
store row float32 b1[0] = %2""",
}
ENTRIES = frozenset({*_MAPS, "matmul"})
"""Kernels that there are in this form: no grid is seen by any, nor scalars."""


def nest_source(entry: str, scalars: Sequence[Scalar]) -> bytes:
    """The text of a kernel for these scalar arguments."""
    if entry == "matmul":
        return _matmul(*[int(s.value) for s in scalars])
    *numbers, count = scalars
    body = _MAPS[entry].format(*["0x" + struct.pack("<" + s.code, s.value).hex() for s in numbers])
    dtype = entry.partition("_")[2] if entry.startswith("affine") else "float32"
    buffers = body.count("load b") + 1
    sizes = [1 if entry == "sum_squares" and i == 1 else count.value for i in range(buffers)]
    types = " ".join([f"{dtype}[{n}]" for n in sizes])
    return f"kernel {entry} {types}\nnest outer sequential inner i0:{count.value}{body}\nend\n".encode()


def _matmul(m: int, n: int, k: int, ta: int, tb: int) -> bytes:
    left, right = (1, m) if ta else (k, 1), (k, 1) if tb else (1, n)
    return f"""kernel matmul float32[{m * k}] float32[{k * n}] float32[{m * n}]
product batch rows i0:{m} columns i1:{n} depth {k} types float32 float32
left float32 b0 offset 0 batch step {left[0]} depth {left[1]}
right float32 b1 offset 0 batch step {right[0]} depth {right[1]}
%0 = float32 cell
store each float32 b2[{n}*i0 + i1] = %0
end
""".encode()
