"""The text builder: what it prints, LLVM accepts and computes."""

import ctypes
import math
import re
import struct

import ml_dtypes
import numpy as np
import pytest

from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import FLOAT, I32, I64, PTR, Value, constant, lanes_of, mangle, vector
from argosy_cinn.runtime import load
from argosy_cinn.target import Target
from argosy_pir import SymExpr

V16 = vector(FLOAT, 16)


def build(body, parameters=(("ptr", "x"), ("ptr", "y"), ("i64", "n")), target=None):
    """A ctypes function of one exported function whose body is ``body(builder, *arguments)``."""
    module = Module(target or Target.host())
    with module.function("f", parameters) as b:
        body(b, *b.arguments)
    library = load(module.text(), module.exports, module.target)
    types = [ctypes.c_void_p if type == "ptr" else ctypes.c_int64 for type, _ in parameters]
    function = ctypes.CFUNCTYPE(None, *types)(library.address("f"))
    function.library = library
    return function


def double_in_place(b, x, y, n):
    """y[:n] = 2 x[:n], sixteen at a time with a masked tail."""
    with b.loop(0, n, 16) as loop:
        mask = b.tail_mask(b.sub(n, loop.index), 16)
        value = b.masked_load(V16, b.gep(x, loop.index), mask)
        b.masked_store(b.fadd(value, value), b.gep(y, loop.index), mask)


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3", "x86-64"])
def test_masked_tails_touch_nothing_beyond_the_end(cpu):
    """Lanes past ``n`` are neither read into the result nor written, at every vector width."""
    target = Target.host()
    if cpu != "host":
        if not target.is_x86:
            pytest.skip("an x86 level")
        target = Target.from_name(cpu)
    double = build(double_in_place, target=target)
    x = np.arange(64, dtype=np.float32)
    for n in (0, 1, 15, 16, 17, 40):
        y = np.full(64, -1, np.float32)
        double(x.ctypes.data, y.ctypes.data, n)
        assert (y[:n] == 2 * x[:n]).all()
        assert (y[n:] == -1).all()


@pytest.mark.parametrize("lane", [0, 5])
def test_one_lane_of_a_narrowed_vector_is_one_element(lane):
    """LLVM's own store of such a lane has the width from before."""

    def narrowed(b, x, y, n):
        wide = b.load("<16 x i32>", x)
        flags = ", ".join(f"i1 {'true' if i == lane else 'false'}" for i in range(16))
        b.masked_store(b.op("<16 x i8>", f"trunc {wide} to <16 x i8>"), y, Value("<16 x i1>", f"<{flags}>"))

    x, y = np.arange(256, 272, dtype=np.int32), np.full(24, -1, np.int8)
    build(narrowed)(x.ctypes.data, y.ctypes.data, 16)
    assert y.tolist() == [lane if i == lane else -1 for i in range(24)]


def test_loops_carry_values_and_choices_merge():
    """A loop's carried sum and a two-way choice give the value that Python computes."""

    def body(b, x, y, n):
        with b.loop(0, n, 1, [constant(I64, 0)]) as loop:
            odd = b.icmp("ne", b.binary("and", loop.index, 1), 0)
            (term,) = b.either(odd, lambda: [b.sub(constant(I64, 0), loop.index)], lambda: [loop.index])
            loop.yield_values(b.add(loop.carry[0], term))
        b.store(loop.results[0], y)
        with b.if_then(b.icmp("sgt", n, 5)):
            b.store(constant(I64, 7), b.gep(y, 1, I64))

    function = build(body)
    y = np.zeros(2, np.int64)
    for n in (0, 1, 5, 9):
        y[:] = 0
        function(None, y.ctypes.data, n)
        assert y[0] == sum(-i if i % 2 else i for i in range(n))
        assert y[1] == (7 if n > 5 else 0)


def test_a_loop_that_forgets_its_next_values_is_refused():
    """Forgetting `Loop.next` raises where the loop is built, naming what was carried."""
    module = Module(Target.host())
    with pytest.raises(ValueError, match="loop carries"), module.function("f", []) as b:
        with b.loop(0, 4, 1, [constant(FLOAT, 0)]):
            pass


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, 0.1, -3e38, 1e39, math.inf, math.nan, 1e-45, 65520.0])
@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
def test_float_constants_are_numpys_roundings(name, value):
    """A constant stored to memory has the bits that numpy gives the rounded value."""
    element = {"float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat"}[name]
    dtype = np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)
    out = np.zeros(1, dtype)
    build(lambda b, x, y, n: b.store(constant(element, value), y))(None, out.ctypes.data, 0)
    with np.errstate(over="ignore"):
        want = np.array([value]).astype(dtype)
    assert out.tobytes() == want.tobytes() or (math.isnan(value) and np.isnan(out.astype(np.float64))[0])


@pytest.mark.parametrize(
    ("type", "value", "text"),
    [
        ("i1", True, "true"),
        ("i8", 255, "-1"),
        ("i32", -5, "-5"),
        ("i64", 2**63, f"-{2**63}"),
        (PTR, 0, "null"),
    ],
)
def test_integer_constants_wrap(type, value, text):
    """Integers print as LLVM's signed reading of their bits."""
    assert constant(type, value).name == text


def test_bfloat16_narrowing_matches_ml_dtypes():
    """Narrowing rounds to nearest even for every class of float, and widening is exact."""

    def body(b, x, y, n):
        with b.loop(0, n, 16) as loop:
            narrow = b.narrow_float(b.load(V16, b.gep(x, loop.index)), "bfloat")
            b.store(narrow, b.gep(y, loop.index, "bfloat"))

    function = build(body)
    bits = np.random.default_rng(0).integers(0, 2**32, 4096, dtype=np.uint32)
    bits[:4] = [0x7F800001, 0xFF800000, 0x00000001, 0x7F7FFFFF]
    x = bits.view(np.float32)
    y = np.zeros(x.shape, ml_dtypes.bfloat16)
    function(x.ctypes.data, y.ctypes.data, x.size)
    with np.errstate(invalid="ignore"):
        want = x.astype(ml_dtypes.bfloat16)
    same = (y.view(np.uint16) == want.view(np.uint16)) | (np.isnan(x) & np.isnan(y.astype(np.float32)))
    assert same.all()


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_transpose_is_the_transpose(lanes):
    """n vectors of n lanes come out transposed."""
    type = vector(FLOAT, lanes)

    def body(b, x, y, n):
        rows = b.transpose([b.load(type, b.gep(x, i * lanes)) for i in range(lanes)])
        for i, row in enumerate(rows):
            b.store(row, b.gep(y, i * lanes))

    x = np.arange(lanes * lanes, dtype=np.float32).reshape(lanes, lanes)
    y = np.zeros_like(x)
    build(body)(x.ctypes.data, y.ctypes.data, 0)
    assert (y == x.T).all()


def test_gather_scatter_and_reduce():
    """Lanes are addressed by index vectors, masked lanes keep their default, and a reduction folds
    all lanes.
    """

    def body(b, x, y, n):
        places = b.binary("mul", b.iota(I32, 8), 2)
        got = b.gather(vector(FLOAT, 8), x, places, b.tail_mask(6, 8), -1.0)
        b.scatter(got, y, places)
        b.store(b.reduce("fadd", got), b.gep(y, 16))

    x = np.arange(17, dtype=np.float32)
    y = np.zeros(17, np.float32)
    build(body)(x.ctypes.data, y.ctypes.data, 0)
    want = np.where(np.arange(8) < 6, 2.0 * np.arange(8), -1)
    assert (y[:16:2] == want).all()
    assert y[16] == want.sum()


def test_a_rehearsal_leaves_no_trace():
    """What was rehearsed is counted and taken back, whatever control flow it had."""

    def loop(b, x):
        with b.loop(0, 4) as i:
            b.store(constant(I64, 1), b.gep(x, i.index, I64))

    def body(b, x, y, n):
        assert b.rehearse(lambda: loop(b, x)) > 5
        b.store(constant(I64, 2), y)

    y = np.zeros(1, np.int64)
    function = build(body)
    function(None, y.ctypes.data, 0)
    assert y[0] == 2


def test_types_know_their_lanes_and_suffixes():
    """Spelling helpers agree with LLVM's."""
    assert lanes_of("<16 x float>") == 16
    assert lanes_of("float") == 1
    assert mangle("<8 x i32>") == "v8i32"
    assert mangle("<4 x ptr>") == "v4p0"
    assert struct.calcsize("P") == 8


def test_equal_builds_give_equal_text():
    """There is no global state: the same calls print the same module, so that cache keys agree
    between processes.
    """

    def text():
        module = Module(Target.host())
        with module.function("f", [("ptr", "x"), ("ptr", "y"), ("i64", "n")]) as b:
            double_in_place(b, *b.arguments)
        return module.text()

    assert text() == text()


def test_names_made_unique_do_not_meet_others_names():
    """A name that looks like a numbered one stays its own."""
    module = Module(Target.host())
    names = [module.unique(name) for name in ("f.1", "f", "f", "f", "f.1")]
    assert len(set(names)) == len(names)


def test_independent_pieces_take_turns_unless_they_have_blocks():
    """Their instructions alternate, and they compute what they do one after another."""
    module = Module(Target.host())
    with module.function("f", [("ptr", "x")]) as b:
        (x,) = b.arguments
        begin = b.length

        def piece(i):
            value = b.load(FLOAT, b.gep(x, 5 + i))
            b.store(b.fadd(b.fmul(value, 3.0), 1.0), b.gep(x, 1 + i))

        b.in_turns([lambda i=i: piece(i) for i in range(2)])
        straight = b._lines[begin:]

        def with_block(i):
            with b.if_then(b.fcmp("olt", b.load(FLOAT, b.gep(x, 7 + i)), 1.0)):
                b.store(constant(FLOAT, 9.0), b.gep(x, 3 + i))

        b.in_turns([lambda i=i: with_block(i) for i in range(2)])
    kinds = [re.findall(r"getelementptr|load|fmul|fadd|store", line)[0] for line in straight]
    assert kinds[::2] == kinds[1::2] == ["getelementptr", "load", "fmul", "fadd", "getelementptr", "store"]
    library = load(module.text(), module.exports, module.target)
    data = np.array([0, 0, 0, 0, 0, 1, 2, 0, 5], np.float32)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("f"))(data.ctypes.data)
    assert data[1:5].tolist() == [4, 7, 9, 0]


def test_formulas_of_sizes_round_towards_minus_infinity():
    """Parts of a formula may be negative, as in a size rounded up: ``-(-n // 3)``."""
    n = SymExpr.symbol("n")
    formulas = [-(-n // 3), (5 - n) // 4, (5 - n) % 4, (n - 7) // 2 + n * 3]
    module = Module(Target.host())
    module.symbols = {"n": 0}
    with module.function("f", [("ptr", "sizes"), ("ptr", "y")]) as b:
        sizes, y = b.arguments
        b.sizes_from(sizes)
        for i, formula in enumerate(formulas):
            b.store(b.index(formula), b.gep(y, i, I64))
    library = load(module.text(), module.exports, module.target)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address("f"))
    for size in (1, 2, 3, 4, 9, 10):
        dims, got = np.array([size]), np.zeros(len(formulas), np.int64)
        function(dims.ctypes.data, got.ctypes.data)
        assert got.tolist() == [formula.evaluate({"n": size}) for formula in formulas]
