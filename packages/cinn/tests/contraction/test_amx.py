"""Products in the tile registers of x86: valid IR on every machine, right numbers where there are such registers."""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from products import AMX, Product, assert_close, bias_relu, operands

from argosy_cinn.contraction import Contraction, Matrix, emit, store_rows
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import PTR
from argosy_cinn.runtime import set_threads
from argosy_cinn.runtime.jit import initialized_llvm
from argosy_cinn.target import Target
from argosy_hwadapt import request_tiles

SHAPES = [(1024, 64, 64), (33, 17, 31), (16, 200, 97), (12, 9, 1000), (100, 130, 0), (500, 40, 1700), (64, 64, 3)]

needs_tiles = pytest.mark.skipif(
    not Target.host().has("amx-bf16"), reason="no tile registers (amx_tile, amx_bf16), or the system refuses them"
)


def rounded(x):
    return x.astype(ml_dtypes.bfloat16).astype(np.float64)


@pytest.mark.parametrize(("element", "compute"), [("bfloat", "float"), ("i8", "i32")])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_the_code_is_valid_and_made_of_tiles(element, compute, layout):
    """LLVM's verifier accepts the code for a machine with tile registers, whatever machine this is."""
    features = ",".join(f"+{f}" for f in ("avx512f", "avx512bf16", "avx512vnni", *AMX))
    module = Module(Target("x86_64-unknown-linux-gnu", "sapphirerapids", features))
    m, n, k = 70, 50, 900
    with module.function("run", [("ptr", "table"), ("i64", "chunk"), ("i64", "chunks")]) as b:
        a, w, c = (b.load(PTR, b.gep(b.arguments[0], i, PTR)) for i in range(3))
        left = Matrix(a, k, 1, element) if layout[0] == "n" else Matrix(a, 1, m, element)
        right = Matrix(w, n, 1, element) if layout[1] == "n" else Matrix(w, 1, k, element)
        store = store_rows(c, n, (), compute)
        emit(b, Contraction(m, n, k, left, right, store, (), compute), *b.arguments[1:])
    initialized_llvm().parse_assembly(module.text()).verify()
    assert {"float": "tdpbf16ps", "i32": "tdpbssd"}[compute] in module.text()


def test_permission_follows_the_processor():
    """Without tile registers nothing is asked for; asking again gives the same answer."""
    from argosy_hwadapt import cpu_features

    assert request_tiles() == request_tiles()
    assert not request_tiles() or "amx_tile" in cpu_features()
    assert request_tiles() or not any(Target.host().has(f) for f in AMX)


@needs_tiles
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("kind", ["nn", "nt", "tn", "ss"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_ragged_sizes(shape, kind, dynamic):
    """Rows, columns and terms that fill no whole tile, in every direction of memory."""
    product = Product(*shape, kind=kind, narrow=True, dynamic=dynamic)
    a, w = operands(product)
    assert "tdpbf16ps" in product.text
    assert_close(product(a, w), rounded(a) @ rounded(w), shape[2])


@needs_tiles
@pytest.mark.parametrize("unsigned", [(False, False), (False, True), (True, False), (True, True)], ids=str)
def test_bytes_of_every_sign(unsigned):
    """Each pair of signs has an instruction; products are exact."""
    product = Product(45, 70, 333, kind="nt", element="i8", compute="i32", unsigned=unsigned)
    rng = np.random.default_rng(0)
    a, w = (
        rng.integers(0, 256, s).astype(np.uint8) if u else rng.integers(-128, 128, s).astype(np.int8)
        for s, u in (((45, 333), unsigned[0]), ((333, 70), unsigned[1]))
    )
    assert (product(a, w) == a.astype(np.int64) @ w.astype(np.int64)).all()


@needs_tiles
@pytest.mark.parametrize("kind", ["nn", "nt", "tn"])
def test_padding_is_not_what_was_there_before(kind):
    """Scratch memory full of NaN from an earlier product does not reach the sums of a ragged one."""
    earlier, product = Product(100, 100, 200, kind=kind, narrow=True), Product(37, 41, 43, kind=kind, narrow=True)
    earlier(*(np.full(x.shape, np.nan, np.float32) for x in operands(earlier)))
    a, w = operands(product)
    assert_close(product(a, w), rounded(a) @ rounded(w), 43)


@needs_tiles
def test_epilogues_prologues_and_sums_of_columns():
    """What surrounds a product sees the same elements as around vector code."""

    def change(b, problem, pointers):
        bias_relu(b, problem, pointers)
        problem.column_sums = store_rows(pointers[5], problem.n)

    product = Product(50, 70, 1500, kind="tn", narrow=True, change=change)
    a, w = operands(product)
    rng = np.random.default_rng(1)
    bias, residual = rng.standard_normal(70).astype(np.float32), rng.standard_normal((50, 70)).astype(np.float32)
    sums = np.zeros(70, np.float32)
    got = product(a, w, bias, residual, sums)
    assert_close(got, np.maximum(rounded(a) @ rounded(w) + bias, 0) + residual, 1500)
    assert_close(sums, rounded(w).sum(0), 1500)


@needs_tiles
def test_the_number_of_threads_does_not_show():
    """Bit for bit the same on 1, 2 and 4 threads, sums in several steps included."""
    product = Product(700, 300, 3000, narrow=True)
    a, w = operands(product)
    try:
        results = []
        for threads in (1, 2, 4):
            set_threads(threads)
            results.append(product(a, w).tobytes())
        assert results[0] == results[1] == results[2]
    finally:
        set_threads(1)


@needs_tiles
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("element", ["bfloat", "i8"])
@pytest.mark.parametrize("shape", [(64, 50, 192), (96, 33, 4160), (16, 70, 64)], ids=str)
def test_whole_rows_of_a_are_read_in_place(shape, element, dynamic):
    """The same numbers as from a copy, which only sizes known at run time need."""
    product, got, want = narrow_product(shape, "nn", element, dynamic)
    assert ("pack_a" in product.text) == dynamic
    assert_close(got, want, shape[2])


@needs_tiles
@pytest.mark.parametrize("batch", [(), (2, 2)], ids=str)
@pytest.mark.parametrize("element", ["bfloat", "i8"])
@pytest.mark.parametrize("shape", [(16, 64, 64), (33, 96, 192), (9, 64, 8256), (70, 2144, 64)], ids=str)
def test_the_larger_operand_is_read_in_place_by_a_turned_product(shape, element, batch):
    """B with contiguous terms is copied nowhere, and the result is not transposed."""
    product, got, want = narrow_product(shape, "nt", element, batch=batch)
    assert "transpose_" in product.text
    assert_close(got, want, shape[2])


@needs_tiles
def test_a_turned_product_has_its_epilogue():
    product = Product(40, 96, 128, kind="nt", element="bfloat", compute="float", change=bias_relu)
    rng = np.random.default_rng(1)
    a, w = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((40, 128), (128, 96)))
    bias, residual = rng.standard_normal(96).astype(np.float32), rng.standard_normal((40, 96)).astype(np.float32)
    assert "transpose_" in product.text
    want = np.maximum(a.astype(np.float64) @ w.astype(np.float64) + bias, 0) + residual
    assert_close(product(a.view(np.uint16), w.view(np.uint16), bias, residual), want, 128)


def narrow_product(shape, kind, element, dynamic=False, batch=()):
    """A product of bfloat16 numbers or bytes, what it gives and what it should."""
    compute = "float" if element == "bfloat" else "i32"
    product = Product(*shape, kind=kind, element=element, compute=compute, dynamic=dynamic, batch=batch)
    rng, (m, n, k) = np.random.default_rng(0), shape
    sizes = ((*batch, m, k), (*batch, k, n))
    if element == "i8":
        a, w = (rng.integers(-128, 128, s).astype(np.int8) for s in sizes)
        return product, product(a, w), a.astype(np.int64) @ w.astype(np.int64)
    a, w = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in sizes)
    return product, product(a.view(np.uint16), w.view(np.uint16)), a.astype(np.float64) @ w.astype(np.float64)
