"""Building and running one product, for the tests of this folder."""

from functools import cached_property

import numpy as np
import pytest

from argosy_cinn.contraction import Cells, Contraction, Matrix, emit, grid, store_rows
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import I64, PTR, lanes_of
from argosy_cinn.runtime import entry, load, parallel_for
from argosy_cinn.target import Target

AMX = ("amx-tile", "amx-bf16", "amx-int8")
DTYPES = {"float": np.float32, "double": np.float64, "i32": np.int32, "i64": np.int64}


class Product:
    """C = A B of one layout. ``kind``: two letters, n (row-major), t (transposed) or s (strided) for A and B;
    ``dynamic``: sizes are known at run time only; ``change(b, problem, pointers)`` may replace parts of the
    problem; ``module``: where its code goes, if not to one of its own, under a name that begins with ``name``."""

    def __init__(
        self,
        m,
        n,
        k,
        kind="nn",
        dynamic=False,
        batch=(),
        element="float",
        compute=None,
        target=None,
        change=None,
        narrow=False,
        unsigned=(False, False),
        module=None,
        name="",
    ):
        self.m, self.n, self.k, self.kind, self.dynamic, self.batch = m, n, k, kind, dynamic, batch
        self.element, self.compute, self.narrow = element, compute or element, narrow
        self.change, self.unsigned = change, unsigned
        module = self.module = module or Module(target or Target.host())
        kernel = f"{name}kernel"
        with module.function(kernel, [("ptr", "argument"), ("i64", "chunk"), ("i64", "chunks")], export=False) as b:
            emit(b, self.problem(b, b.arguments[0]), *b.arguments[1:])
        with module.function(f"{name}run", [("ptr", "addresses"), ("ptr", "dims")]) as b:
            parallel_for(b, kernel, b.arguments[0], grid(b, self.problem(b, b.arguments[0])))

    @cached_property
    def text(self):
        """The LLVM assembly of the module."""
        return self.module.text()

    @cached_property
    def call(self):
        """The native function."""
        return entry(load(self.text, self.module.exports, self.module.target))

    def problem(self, b, table):
        """The problem, with values of function ``b``: pointers at the front of the table, then sizes."""
        pointers = [b.load(PTR, b.gep(table, i, PTR)) for i in range(6)]
        m, n, k = self.m, self.n, self.k
        if self.dynamic:
            m, n, k = (b.load(I64, b.gep(table, 6 + i, I64)) for i in range(3))
        a = self.matrix(b, self.kind[0], pointers[0], m, k)
        w = self.matrix(b, self.kind[1], pointers[1], k, n)
        a.unsigned, w.unsigned = self.unsigned
        store = store_rows(pointers[2], n, self.steps(b, b.mul(m, n)), self.compute)
        problem = Contraction(m, n, k, a, w, store, self.batch, self.compute, self.narrow)
        if self.change is not None:
            self.change(b, problem, pointers)
        return problem

    def matrix(self, b, kind, pointer, rows, columns):
        size = b.mul(rows, columns)
        if kind == "n":
            return Matrix(pointer, columns, 1, self.element, self.steps(b, size))
        if kind == "t":
            return Matrix(pointer, 1, rows, self.element, self.steps(b, size))
        return Matrix(pointer, b.mul(columns, 6), 3, self.element, self.steps(b, b.mul(size, 6)))

    def steps(self, b, size):
        out = []
        for extent in reversed(self.batch):
            out.insert(0, size)
            size = b.mul(size, extent)
        return tuple(out)

    def __call__(self, a, w, *others):
        """C for A [batch, m, k] and B [batch, k, n] as numpy arrays in logical order; ``others`` are further
        tables.
        """
        a, w = self.lay_out(self.kind[0], a), self.lay_out(self.kind[1], w)
        guard = 64
        flat = np.full(int(np.prod(self.batch)) * self.m * self.n + guard, 77, DTYPES[self.compute])
        pointers = [a.ctypes.data, w.ctypes.data, flat.ctypes.data, *(x.ctypes.data for x in others)]
        table = np.array([*pointers, *[0] * (6 - len(pointers)), self.m, self.n, self.k], np.int64)
        self.call(table.ctypes.data, 0)
        assert (flat[-guard:] == 77).all(), "wrote behind the end"
        return flat[:-guard].reshape(*self.batch, self.m, self.n)

    @staticmethod
    def lay_out(kind, x):
        if kind == "n":
            return np.ascontiguousarray(x)
        if kind == "t":
            return np.ascontiguousarray(np.swapaxes(x, -1, -2))
        rows, columns = x.shape[-2:]
        wide = np.zeros((*x.shape[:-2], rows * 2, columns * 3), x.dtype)
        wide[..., ::2, ::3] = x
        return wide


def machine(name):
    """A target by name: "host", the host in "vectors" alone, or an x86-64 level; skips what cannot run here."""
    host = Target.host()
    if name == "host":
        return host
    if name == "vectors":
        return host.without_features(*AMX)
    if not host.is_x86:
        pytest.skip("x86 levels")
    return Target.from_name(name)


def operands(product, seed=0):
    """Random A and B of a product, small integers for integer types."""
    rng = np.random.default_rng(seed)
    dtype = DTYPES.get(product.element, np.float32)
    shapes = ((*product.batch, product.m, product.k), (*product.batch, product.k, product.n))
    if np.issubdtype(dtype, np.integer):
        return [rng.integers(-1000, 1000, shape).astype(dtype) for shape in shapes]
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def assert_close(got, want, terms, dtype=np.float32):
    """Equal up to the rounding of a sum of ``terms`` products of unit size."""
    bound = 8 * np.finfo(dtype).eps * max(terms, 1) ** 0.5 * 4
    assert got.shape == want.shape
    assert np.abs(got - want).max(initial=0) <= bound * max(1.0, np.abs(want).max(initial=0)) ** 0.5 + bound


def bias_relu(b, problem, pointers):
    """relu(x + bias[column]) + residual[row, column], stored."""
    store = problem.epilogue

    def epilogue(b, cells):
        values = []
        for v, (value, mask) in enumerate(zip(cells.values, cells.masks, strict=True)):
            column = b.add(cells.column, v * lanes_of(value.type))
            value = b.fadd(value, b.masked_load(value.type, b.gep(pointers[3], column), mask))
            value = b.fmax(value, 0.0)
            place = b.gep(pointers[4], b.add(b.mul(cells.row, problem.n), column))
            values.append(b.fadd(value, b.masked_load(value.type, place, mask)))
        store(b, Cells(cells.batch, cells.row, cells.column, values, cells.masks))

    problem.epilogue = epilogue
    problem.touched = (Matrix(pointers[4], problem.n, 1),)
