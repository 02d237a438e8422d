"""Matrix products equal numpy's for every layout, size, type and number of threads."""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from products import DTYPES, Product, assert_close, bias_relu, machine, operands

from argosy_cinn.contraction import Contraction, Matrix, choose, grid, skinny_blocking, store_rows
from argosy_cinn.contraction.blocking import estimate_blocking
from argosy_cinn.printers.types import FLOAT, I64, PTR, Value, lanes_of, vector
from argosy_cinn.runtime import entry, load, set_threads
from argosy_cinn.target import Target

SHAPES = [(1, 1, 1), (3, 5, 7), (6, 64, 4), (13, 100, 33), (70, 130, 900), (64, 256, 784), (5, 300, 2000), (9, 40, 0),
          (0, 4, 4), (4, 0, 4), (300, 17, 1100), (65, 128, 512), (200, 10, 64), (17, 1, 30), (1, 33, 70)]  # fmt: skip

STORED = {"float": np.float32, "bfloat": ml_dtypes.bfloat16, "i8": np.int8}


def check(product, seed=0):
    a, w = operands(product, seed)
    got = product(a, w)
    if np.issubdtype(a.dtype, np.integer):
        assert (got == a @ w).all()
    else:
        assert_close(got, a.astype(np.float64) @ w.astype(np.float64), product.k, DTYPES[product.compute])
    return got


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("kind", ["nn", "nt", "tn", "tt", "ss"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_layout_and_tail(shape, kind):
    """Row-major, transposed and strided operands, sizes below and above every block, zero and one."""
    check(Product(*shape, kind=kind))


@pytest.mark.parametrize("kind", ["nn", "nt", "tn", "tt", "ss"])
def test_one_kernel_serves_every_size(kind):
    """Sizes that are known at run time only need no second compilation, and give the same bits as
    static ones.
    """
    product = Product(0, 0, 0, kind=kind, dynamic=True)
    for shape in SHAPES:
        product.m, product.n, product.k = shape
        check(product)
    product.m, product.n, product.k = shape = (70, 130, 900)
    assert check(product).tobytes() == check(Product(*shape, kind=kind)).tobytes()


def row_blocks(threads, m, n, k):
    """Into how many blocks of rows, and of columns, a product is cut on so many threads."""
    product = Product(m, n, k)
    with product.module.function("count", [("ptr", "addresses"), ("ptr", "dims")]) as b:
        problem = product.problem(b, b.arguments[0])
        b.store(b.index(grid(b, problem)), b.gep(b.arguments[0], 9, I64))
    columns = -(-n // choose(problem, product.module.target).columns)
    table = np.zeros(10, np.int64)
    try:
        set_threads(threads)
        entry(load(product.text, product.module.exports, product.module.target), "count")(table.ctypes.data, 0)
    finally:
        set_threads(1)
    assert table[9] % columns == 0
    return int(table[9]) // columns, columns


def test_blocks_are_wide_where_a_is_converted():
    """Signed bytes are copied as unsigned ones once a block of columns, which is wider than its part of the cache."""
    target = Target.from_name("znver4")
    target.l2_bytes = 1 << 20
    null = Value(PTR, "null")

    def blocking(element, compute):
        a, b = (Matrix(null, 2048, 1, element) for _ in "ab")
        return estimate_blocking(
            Contraction(2048, 2048, 2048, a, b, store_rows(null, 2048, (), compute), (), compute), target
        )

    assert blocking("i8", "i32").columns >= 512
    pairs = blocking("bfloat", "float")
    assert pairs.columns * pairs.depth * 2 <= target.l2_bytes * 9 // 16


def test_rows_are_cut_for_threads_only():
    """Every block of rows packs B again: one thread has one block of rows, and several have few where that is as good
    as many."""
    assert row_blocks(1, 2048, 64, 1536) == (1, 1)
    assert row_blocks(2, 2048, 64, 1536) == (4, 1)
    assert row_blocks(2, 512, 64, 1536) == (2, 1)
    rows, columns = row_blocks(3, 768, 768, 1536)
    assert rows * columns % 3 == 0  # nobody waits for a last one


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("element", ["double", "i32", "i64"])
@pytest.mark.parametrize("kind", ["nn", "nt", "tn", "ss"])
def test_other_types(element, kind):
    """Doubles to double precision, integers exactly."""
    check(Product(37, 75, 500, kind=kind, element=element))


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("cpu", ["host", "vectors", "x86-64-v3"])
@pytest.mark.parametrize("kind", ["nn", "nt", "tn", "ss"])
@pytest.mark.parametrize("shape", [(37, 75, 500), (20, 33, 1901), (2, 65, 333)], ids=str)
def test_bfloat16_operands(shape, kind, cpu):
    """Products of bfloat16 matrices are summed in float32, in pairs where the machine has them, k
    odd or even.
    """
    product = Product(*shape, kind=kind, element="bfloat", compute="float", target=machine(cpu))
    a, w = (x.astype(ml_dtypes.bfloat16) for x in operands(product))
    assert_close(product(a, w), a.astype(np.float64) @ w.astype(np.float64), shape[2])


@pytest.mark.parametrize("cpu", ["host", "vectors", "x86-64-v3"])
@pytest.mark.parametrize("kind", ["nn", "tt", "ss"])
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_operands_are_narrowed_on_request(kind, cpu, dynamic):
    """float32 operands of a narrow product count as their bfloat16 roundings."""
    product = Product(37, 75, 503, kind=kind, narrow=True, target=machine(cpu), dynamic=dynamic)
    a, w = operands(product)
    rounded = [x.astype(ml_dtypes.bfloat16).astype(np.float64) for x in (a, w)]
    assert_close(product(a, w), rounded[0] @ rounded[1], 503)


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("cpu", ["host", "vectors"])
@pytest.mark.parametrize("unsigned", [(False, False), (True, False), (False, True)], ids=str)
@pytest.mark.parametrize("kind", ["nn", "nt", "tn", "ss"])
@pytest.mark.parametrize("shape", [(37, 75, 3001), (20, 33, 64), (2, 65, 333)], ids=str)
def test_int8_operands(shape, kind, unsigned, cpu):
    """Products of bytes are exact in int32, signed or not."""
    check_bytes(shape, kind, unsigned, machine(cpu))


@pytest.mark.parametrize("unsigned", [(False, False), (True, True)], ids=str)
def test_int8_operands_without_byte_products(unsigned):
    """Machines without byte products multiply in 32 bits, to the same result."""
    if not Target.host().is_x86:
        pytest.skip("x86 levels")
    check_bytes((37, 75, 301), "nt", unsigned, Target.from_name("x86-64-v3"))


def check_bytes(shape, kind, unsigned, target):
    product = Product(*shape, kind=kind, element="i8", compute="i32", target=target, unsigned=unsigned)
    rng = np.random.default_rng(0)
    shapes = ((shape[0], shape[2]), (shape[2], shape[1]))
    ranges = [(0, 256, np.uint8) if u else (-128, 128, np.int8) for u in unsigned]
    a, w = (rng.integers(low, high, s).astype(t) for s, (low, high, t) in zip(shapes, ranges, strict=True))
    a.flat[0], w.flat[0] = ranges[0][1] - 1, ranges[1][0]
    assert (product(a, w) == a.astype(np.int64) @ w.astype(np.int64)).all()


@pytest.mark.parametrize("kind", ["nn", "nt", "tn"])
def test_float16_operands(kind):
    """Products of float16 matrices are summed in float32."""
    product = Product(37, 75, 500, kind=kind, element="half", compute="float")
    a, w = (x.astype(np.float16) for x in operands(product))
    assert_close(product(a, w), a.astype(np.float64) @ w.astype(np.float64), 500)


@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64-v2"])
@pytest.mark.parametrize("kind", ["nn", "nt", "tn", "ss"])
def test_narrower_machines(cpu, kind):
    """The same emitters give right code for AVX2 and SSE."""
    if not Target.host().is_x86:
        pytest.skip("x86 levels")
    check(Product(29, 70, 150, kind=kind, target=Target.from_name(cpu)))


@pytest.mark.parametrize("kind", ["nn", "nt", "tn"])
def test_machines_of_other_widths_give_the_same_bits(kind):
    """Every element is one chain of fused multiply-adds over k, so vector width and blocking do not show."""
    if not Target.host().is_x86:
        pytest.skip("x86 levels")
    wide, narrow = (
        Product(29, 70, 900, kind=kind),
        Product(29, 70, 900, kind=kind, target=Target.from_name("x86-64-v3")),
    )
    assert check(wide).tobytes() == check(narrow).tobytes()


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("batch", [(3,), (2, 3), (0,)], ids=str)
def test_batches(batch, dynamic):
    """Batch elements are independent, with any number of batch axes."""
    check(Product(33, 65, 20, kind="nt", batch=batch, dynamic=dynamic))


THIN = [
    (1, 300, 900),
    (300, 1, 900),
    (2, 70, 3000),
    (70, 2, 300),
    (8, 100, 2100),
    (100, 8, 2100),
    (3, 33, 17),
    (1, 1, 5000),
]


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("kind", ["nn", "nt", "tn", "tt", "ss"])
@pytest.mark.parametrize("shape", THIN, ids=str)
def test_few_rows_or_columns(shape, kind):
    """Products bound by reading one operand, in both directions of memory, longer than every block."""
    check(Product(*shape, kind=kind))
    check(Product(*shape, kind=kind, batch=(3,), change=scale_and_add_nothing))


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3", "x86-64-v2"])
@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("shape", [(8, 5, 4), (20, 8, 8), (30, 7, 100)], ids=str)
def test_more_columns_than_a_vector_has_lanes(shape, element, cpu):
    """A row of results is as many vectors as it takes: four doubles are one with AVX2, and two floats with SSE."""
    if not Target.host().is_x86:
        pytest.skip("x86 levels")
    check(Product(*shape, kind="nt", element=element, target=None if cpu == "host" else Target.from_name(cpu)))


@pytest.mark.parametrize("element", ["float", "bfloat", "i8"])
@pytest.mark.parametrize("shape", [(1, 5123, 37), (5003, 1, 20), (3, 11071, 19), (8, 2500, 22)], ids=str)
def test_swept_stretches_are_as_long_as_the_cores_allow(shape, element, monkeypatch):
    """Weights ``[inputs, outputs]`` are read in long stretches: one for each core, unless results leave the cache.
    However long those are, to the end of the last line the bits of the results are the same."""
    rows, width, depth = max(shape[:2]), min(shape[:2]), shape[2]
    kind = "nn" if shape[0] < shape[1] else "tn"
    rng = np.random.default_rng(1)
    a, w = (rng.integers(-99, 99, size).astype(STORED[element]) for size in ((shape[0], depth), (depth, shape[1])))
    for cores in (1, 3, 64):
        monkeypatch.setattr(skinny_blocking, "physical_cores", lambda cores=cores: cores)
        found = []
        product = Product(
            *shape, kind=kind, element=element, compute="i32" if element == "i8" else "float",
            change=lambda b, problem, _, found=found: found.append(skinny_blocking.plan_skinny(problem, Target.host())),
        )  # fmt: skip
        assert (product(a, w) == a.astype(np.int64) @ w.astype(np.int64)).all()
        block = min(max(-(-rows // cores), 1024), (16 << 10) // width)
        assert all(not plan.dots and block - 64 < plan.block < block + 64 for plan in found)


def scale_and_add_nothing(b, problem, pointers):
    """Prologues that change nothing, so that every read passes through one."""
    problem.a.prologue = problem.b.prologue = lambda b, cells: cells.values[0]


@pytest.mark.parametrize("shape", [(700, 400, 900), (1000, 64, 64), (40, 3000, 40), (8, 1024, 300)], ids=str)
def test_the_number_of_threads_does_not_show(shape):
    """Results are bit for bit the same on 1, 2 and 4 threads."""
    product = Product(*shape, kind="tn")
    a, w = operands(product)
    try:
        results = []
        for threads in (1, 2, 4):
            set_threads(threads)
            results.append(product(a, w).tobytes())
        assert results[0] == results[1] == results[2]
    finally:
        set_threads(1)


@pytest.mark.parametrize("shape", [(64, 256, 784), (33, 75, 1000), (6, 100, 30), (1, 50, 20)], ids=str)
def test_epilogues_see_finished_elements(shape):
    """Bias, activation and residual are applied once, to complete sums, at the right rows and columns."""
    product = Product(*shape, change=bias_relu)
    a, w = operands(product)
    rng = np.random.default_rng(1)
    bias = rng.standard_normal(shape[1]).astype(np.float32)
    residual = rng.standard_normal(shape[:2]).astype(np.float32)
    want = np.maximum(a.astype(np.float64) @ w + bias, 0) + residual
    assert_close(product(a, w, bias, residual), want, shape[2])


def scale_and_add_position(which):
    """A prologue that multiplies by 2 and by the element of a second matrix of the same layout."""

    def change(b, problem, pointers):
        matrix = problem.a if which == "a" else problem.b

        def prologue(b, cells):
            (value,), (mask,) = cells.values, cells.masks
            offset = b.add(b.mul(cells.row, matrix.row), b.mul(cells.column, matrix.column))
            stride = matrix.row if cells.axis == 0 else matrix.column
            lanes = lanes_of(value.type)
            steps = b.binary("mul", b.iota("i64", lanes), b.splat(b.index(stride), lanes))
            other = b.gather(vector(FLOAT, lanes), b.gep(pointers[3], offset), steps, mask)
            return b.fmul(b.fmul(value, other), 2.0)

        matrix.prologue = prologue

    return change


def sum_columns(b, problem, pointers):
    """Store the sums of B's columns to the fourth table."""
    problem.column_sums = store_rows(pointers[3], problem.n, tuple(problem.n for _ in problem.batch), problem.compute)


@pytest.mark.parametrize("narrow", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(64, 256, 700), (300, 75, 1000), (1, 50, 21), (600, 64, 0)], ids=str)
def test_column_sums_come_with_the_product(shape, narrow):
    """The columns of B are summed once, whatever the number of row blocks and steps."""
    product = Product(*shape, kind="tn", change=sum_columns, narrow=narrow, batch=(2,))
    a, w = operands(product)
    sums = np.full((2, shape[1]), np.nan, np.float32)
    try:
        set_threads(4)
        got = product(a, w, sums)
    finally:
        set_threads(1)
    if narrow:
        a, w = (x.astype(ml_dtypes.bfloat16).astype(np.float32) for x in (a, w))
    assert_close(got, a.astype(np.float64) @ w, shape[2])
    assert_close(sums, w.astype(np.float64).sum(1), shape[2])


@pytest.mark.parametrize("kind", ["nn", "nt", "tn", "tt", "ss"])
@pytest.mark.parametrize("which", ["a", "b"])
def test_prologues_see_every_element_with_its_place(which, kind):
    """An operand multiplied elementwise by another array on the way in."""
    product = Product(29, 70, 150, kind=kind, change=scale_and_add_position(which))
    a, w = operands(product)
    other = np.random.default_rng(2).standard_normal(a.shape if which == "a" else w.shape).astype(np.float32)
    changed = (2.0 * a * other, w) if which == "a" else (a, 2.0 * w * other)
    laid_out = Product.lay_out(kind["ab".index(which)], other)
    assert_close(product(a, w, laid_out), changed[0].astype(np.float64) @ changed[1], 150 * 4)


def test_products_share_their_arithmetic():
    """The tile functions of a module do not grow with the number of products that use them."""
    one = Product(64, 64, 64).text
    assert one.count("define internal void @tile_") <= 2


@pytest.mark.parametrize("element", ["float", "bfloat"])
@pytest.mark.parametrize("shape", [(37, 96, 503), (50, 144, 900), (16, 1200, 40)], ids=str)
def test_copied_rows_have_a_tile_of_their_own(shape, element):
    """Tiles of eight rows where A is packed, of six where it is not: every element is the same chain of sums."""
    options = {"element": element, "compute": "float", "target": machine("vectors")}
    products = [Product(*shape, kind=kind, **options) for kind in ("nn", "ss")]
    a, w = operands(products[0])
    if element == "bfloat":
        a, w = a.astype(ml_dtypes.bfloat16), w.astype(ml_dtypes.bfloat16)
    results = [product(a, w) for product in products]
    if Target.host().has("avx512f"):
        assert "tile_float_8x48" in products[1].text
    assert_close(results[0], a.astype(np.float64) @ w.astype(np.float64), shape[2])
    if element == "float":
        assert results[0].tobytes() == results[1].tobytes()


TURNED = [(9, 70, 200), (16, 256, 1000), (33, 130, 1500), (128, 300, 2100)]


@pytest.mark.parametrize("k", [16, 31, 64, 5000])
@pytest.mark.parametrize("element", ["float", "bfloat"])
@pytest.mark.parametrize("cpu", ["vectors", "x86-64-v3", "x86-64"])
def test_few_rows_times_bfloat16(cpu, element, k):
    """The rows are rounded to bfloat16 where they are floats; each has the bits that it has alone."""

    def change(b, problem, pointers):
        problem.a.element = element

    def product(rows):
        options = {"kind": "nt", "element": "bfloat", "compute": "float", "narrow": True, "target": machine(cpu)}
        return Product(rows, 70, k, **options, change=change)

    a, w = (x.astype(ml_dtypes.bfloat16) for x in operands(product(8)))
    given = a.astype(DTYPES["float"]) + 1e-4 * np.abs(a.astype(DTYPES["float"])) if element == "float" else a
    got = product(8)(given, w)
    assert_close(got, a.astype(np.float64) @ w.astype(np.float64), k)
    assert np.concatenate([product(1)(given[i : i + 1], w) for i in range(8)]).tobytes() == got.tobytes()
    assert product(3)(given[:3], w).tobytes() == got[:3].tobytes()


@pytest.mark.parametrize("rows", [1, 8])
@pytest.mark.parametrize("cpu", ["vectors", "x86-64-v3", "x86-64"])
def test_every_bfloat16_of_a_weight_is_multiplied_as_it_is(cpu, rows):
    """Infinities, NaN and zeros among them, in each place of a vector; pairs take denormal numbers for zero."""
    every = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    w = np.zeros((31, every.size), ml_dtypes.bfloat16)
    w[np.arange(every.size) % 31, np.arange(every.size)] = every
    target = machine(cpu)
    product = Product(rows, every.size, 31, kind="nt", element="bfloat", compute="float", target=target)
    got, want = product(np.ones((rows, 31), ml_dtypes.bfloat16), w), every.astype(np.float32)
    flushed = target.multiplies_pairs & (np.abs(want) < np.finfo(np.float32).tiny)
    assert (np.isclose(got, want, rtol=0, atol=0, equal_nan=True) | (flushed & (got == 0))).all()


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("element", ["float", "double", "bfloat"])
@pytest.mark.parametrize("shape", TURNED, ids=str)
def test_a_larger_transposed_operand_is_read_in_place(shape, element):
    """Weights ``[outputs, inputs]`` of few rows: nothing is copied from them, and the sums are the same chains."""
    compute = "float" if element == "bfloat" else element
    options = {"kind": "nt", "element": element, "compute": compute, "target": machine("vectors")}
    product, packed = Product(*shape, **options), Product(*shape, **options, change=scale_and_add_nothing)
    a, w = operands(product)
    if element == "bfloat":
        a, w = a.astype(ml_dtypes.bfloat16), w.astype(ml_dtypes.bfloat16)
    assert ("transpose_" in product.text) == (element != "bfloat" or Target.host().multiplies_pairs)
    assert "transpose_" not in packed.text
    got = product(a, w)
    assert_close(got, a.astype(np.float64) @ w.astype(np.float64), shape[2], DTYPES[compute])
    if element != "bfloat":
        assert got.tobytes() == packed(a, w).tobytes()


@pytest.mark.parametrize("shape", TURNED, ids=str)
def test_turned_products_have_epilogues_batches_and_threads(shape):
    """Every element reaches the epilogue once, at its place, on any number of threads."""
    product, batched = Product(*shape, kind="nt", change=bias_relu), Product(*shape, kind="nt", batch=(3,))
    a, w = operands(product)
    rng = np.random.default_rng(1)
    bias, residual = (rng.standard_normal(s).astype(np.float32) for s in ((shape[1],), shape[:2]))
    check(batched)
    try:
        found = []
        for threads in (1, 4):
            set_threads(threads)
            found.append(product(a, w, bias, residual))
    finally:
        set_threads(1)
    assert_close(found[0], np.maximum(a.astype(np.float64) @ w + bias, 0) + residual, shape[2])
    assert found[0].tobytes() == found[1].tobytes()


@settings(max_examples=25, deadline=None)
@given(
    m=st.integers(0, 70),
    n=st.integers(0, 150),
    k=st.integers(0, 500),
    kind=st.sampled_from(["nn", "nt", "tn", "tt", "ss"]),
    dynamic=st.booleans(),
)
def test_random_shapes(m, n, k, kind, dynamic):
    """Any shape and layout agrees with numpy, and nothing is written behind the end."""
    check(Product(m, n, k, kind=kind, dynamic=dynamic))
