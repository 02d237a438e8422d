"""One matrix product, alone on memory of its own, in a given blocking: what tuning measures."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from argosy_cinn.contraction.blocking import Blocking
from argosy_cinn.contraction.gemm import emit, grid
from argosy_cinn.contraction.problem import Contraction, Matrix, store_rows
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import PTR, Value, bytes_of
from argosy_cinn.runtime.loading import load
from argosy_cinn.target import Target

#: The number 1 of an element type, as bytes: sums of it are exact, and no product is slow.
_ONES = {
    "float": b"\0\0\x80\x3f", "double": b"\0\0\0\0\0\0\xf0\x3f", "bfloat": b"\x80\x3f", "half": b"\0\x3c",
    "i8": b"\1", "i16": b"\1\0", "i32": b"\1\0\0\0", "i64": b"\1\0\0\0\0\0\0\0",
}  # fmt: skip
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Shape:
    """What the time of a product depends on: sizes, and for A and B (row stride, column stride, element, unsigned)."""

    m: int
    n: int
    k: int
    a: tuple[int, int, str, bool]
    b: tuple[int, int, str, bool]
    compute: str
    narrow: bool

    @staticmethod
    def from_problem(problem: Contraction) -> Shape | None:
        """The shape of a product; None where something is known at run time only, or computed as operands are read."""
        a, b = problem.a, problem.b
        numbers = (problem.m, problem.n, problem.k, a.row, a.column, b.row, b.column)
        known = all(isinstance(x, int) and x >= 0 for x in numbers)
        if problem.run or b.window is not None:
            return None
        if not known or a.prologue or b.prologue or problem.column_sums is not None or problem.siblings:
            return None
        m, n, k, *strides = (x for x in numbers if isinstance(x, int))
        left = (strides[0], strides[1], a.element, a.unsigned)
        right = (strides[2], strides[3], b.element, b.unsigned)
        made = Shape(m, n, k, left, right, problem.compute, problem.narrow)
        return made if max(made.sizes()) <= _MOST_BYTES else None

    def sizes(self) -> tuple[int, int, int]:
        """Bytes that A, B and C span."""
        spans = [
            ((rows - 1) * x[0] + (columns - 1) * x[1] + 1) * bytes_of(x[2])
            for x, rows, columns in ((self.a, self.m, self.k), (self.b, self.k, self.n))
        ]
        return spans[0], spans[1], self.m * self.n * bytes_of(self.compute)

    def problem(self, addresses: tuple[Value, Value, Value] | None) -> Contraction:
        """The plain product of this shape."""
        a, b, c = addresses or (Value(PTR, "null"),) * 3
        left, right = (Matrix(p, x[0], x[1], x[2], unsigned=x[3]) for p, x in ((a, self.a), (b, self.b)))
        store = store_rows(c, self.n, (), self.compute)
        return Contraction(self.m, self.n, self.k, left, right, store, (), self.compute, self.narrow)

    def __str__(self) -> str:
        layout = "".join("n" if x[1] == 1 else "t" if x[0] == 1 else "s" for x in (self.a, self.b))
        narrow = " as bfloat16" if self.narrow else ""
        return f"{self.m} x {self.n} x {self.k} {layout} {self.a[2]} {self.b[2]}{narrow}"


def product_call(shape: Shape, blocking: Blocking, target: Target) -> Callable[[], None]:
    """A callable that computes the product once, on the calling thread."""
    module = Module(target)

    def problem(b: Function, table: Value) -> Contraction:
        a, w, c = (b.load(PTR, b.gep(table, i, PTR)) for i in range(3))
        return shape.problem((a, w, c))

    with module.function("product", [("ptr", "table"), ("i64", "chunk"), ("i64", "chunks")], export=False) as b:
        pointers, chunk, count = b.arguments
        emit(b, problem(b, pointers), chunk, count, blocking)
    with module.function("run", [("ptr", "table")]) as b:
        chunks = grid(b, problem(b, b.arguments[0]), blocking)
        with b.loop(0, chunks) as i:
            b.call("product", "void", b.arguments[0], i.index, b.index(chunks))
    library = load(module.text(), module.exports, target)
    operands = [_ones(size, x[2]) for size, x in zip(shape.sizes(), (shape.a, shape.b), strict=False)]
    result = np.empty(shape.sizes()[2], np.uint8)
    table = np.array([x.ctypes.data for x in (*operands, result)], np.int64)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("run"))

    def call(kept: tuple[object, ...] = (library, operands, result)) -> None:
        run(table.ctypes.data)

    return call


def _ones(size: int, element: str) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    one = np.frombuffer(_ONES[element], np.uint8)
    return np.tile(one, size // len(one))
