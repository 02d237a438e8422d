"""Products of few rows whose number is known when they run: weights are read where they lie, and once."""

import re

import ml_dtypes
import numpy as np
import pytest

from argosy_cinn import CinnCompiler
from argosy_cinn.assembly.building import generated_code
from argosy_cinn.pipeline import lower_program
from argosy_cinn.runtime import set_threads
from argosy_cinn.runtime.jit import compile_assembly
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.passes.decompose import Decompose
from argosy_pir import Builder, Program, TensorType
from argosy_pir.dims import SymExpr
from argosy_tensorcore.storage import StridedArray

RNG = np.random.default_rng(0)
OUT, SIZE = 134, 640
CASES = [("float32", "float32"), ("bfloat16", "bfloat16")]
CASES += [(kind, dtype) for kind in ("int8", "int4", "int8 in 64", "int4 in 128") for dtype in ("float32", "bfloat16")]
CASES += [("int8 in 32", "bfloat16"), ("int4 in 32", "bfloat16"), ("float8_e4m3fn", "bfloat16")]
CASES += [("int4 in 32 from offsets", "bfloat16"), ("int8 in 16 from offsets", "float32")]
CASES += [("int4 in 16", "bfloat16"), ("int8 in 16", "bfloat16")]
WORD_KINDS = ("int4 in 128", "int4 in 32", "int4", "int8", "int8 in 64")
ROWS = (1, 2, 3, 4, 5, 8, 9, 17, 33, 40)


def weight_of(kind):
    """Arrays of a weight [out, in], and it as float64."""
    if kind in ("float32", "bfloat16"):
        w = RNG.standard_normal((OUT, SIZE)).astype(kind if kind == "float32" else ml_dtypes.bfloat16)
        return [w], w.astype(np.float64)
    if kind == "float8_e4m3fn":
        numbers = RNG.standard_normal((OUT, SIZE)).astype(ml_dtypes.float8_e4m3fn)
        scales = RNG.uniform(0.01, 0.02, OUT).astype(np.float32)
        return [numbers, scales], numbers.astype(np.float64) * scales[:, None]
    bits, group = (8 if "int8" in kind else 4), group_of(kind) or SIZE
    whole = RNG.integers(-7 if bits == 4 else -127, 8 if bits == 4 else 128, (OUT, SIZE)).astype(np.int8)
    scales = RNG.uniform(0.01, 0.02, (SIZE // group, OUT)).astype(np.float32).astype(ml_dtypes.bfloat16)
    packed = whole if bits == 8 else (whole[: OUT // 2] & 15) | (whole[OUT // 2 :] << 4)
    exact = whole * np.repeat(scales.astype(np.float64), group, axis=0).T
    if "offsets" in kind:
        offsets = RNG.uniform(-0.1, 0.1, scales.shape).astype(np.float32)
        return [packed, scales, offsets], exact + np.repeat(offsets.astype(np.float64), group, axis=0).T
    return [packed, scales if group < SIZE else scales[0]], exact


def group_of(kind):
    """Inputs of a group; 0 where all are one."""
    found = re.search(r" in (\d+)", kind)
    return int(found[1]) if found else 0


def program_of(kind, arrays, rows, dtype):
    """``x [rows, in] @ weight`` as the operator that such weights have."""
    program = Program("few")
    given = [program.add_input(TensorType((rows, SIZE), dtype), "x")]
    given += [program.add_input(TensorType(a.shape, a.dtype.name)) for a in arrays]
    if len(arrays) == 1:
        name, arguments, keywords = "matmul", given, {"transpose_y": True}
    else:
        name, arguments = "weight_only_linear", [given[0], given[1], None, given[2]]
        keywords = {"weight_dtype": kind.partition(" ")[0], "group_size": group_of(kind) or -1}
        keywords |= {"weight_offset": given[3]} if len(given) > 3 else {}
    operands, attributes = get_operator(name).signature.bind(arguments, keywords)
    builder = Builder.at_end(program.block)
    with emit_at(builder):
        program.set_outputs([builder.create(f"phi.{name}", operands, attributes).result])
    return program


def run(executable, x, arrays):
    (result,) = executable.run([StridedArray.from_array(a) for a in (x, *arrays)])
    return result.array()


@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_rows_are_exact_and_their_number_changes_no_bit(kind, dtype):
    """Sums are in float32 and rounded once. Up to the most rows that are taken so, a row has the same bits beside any
    others, on any number of threads; nothing but small epilogues is a kernel beside the product."""
    arrays, exact = weight_of(kind)
    x = RNG.standard_normal((max(ROWS), SIZE)).astype(np.float32)
    x = x if dtype == "float32" else x.astype(ml_dtypes.bfloat16)
    executable = CinnCompiler().compile(program_of(kind, arrays, SymExpr.symbol("n"), dtype), device("cpu"))
    want = x.astype(np.float64) @ exact.T
    step = 2.0**-8 if dtype == "bfloat16" else 0
    room = np.abs(x.astype(np.float64)) @ np.abs(exact).T * 2.0**-20 + np.abs(want) * step
    alone = {}
    for rows in ROWS:
        got = run(executable, x[:rows].copy(), arrays)
        assert (np.abs(got.astype(np.float64) - want[:rows]) <= room[:rows]).all()
        if rows <= 32 or "in" in kind[4:]:
            for row in range(rows):
                assert alone.setdefault(row, got[row].tobytes()) == got[row].tobytes()
    set_threads(3)
    try:
        assert run(executable, x[:9].copy(), arrays).tobytes() == b"".join(alone[row] for row in range(9))
    finally:
        set_threads(1)
    assert executable.report()["compilations"] == 1
    assert executable.report()["kernel_calls"] <= 2


@pytest.mark.parametrize("kind", ["bfloat16", "int8"])
def test_a_row_of_a_weight_from_memory_has_the_bits_it_has_beside_others(kind):
    """Fewer places of a weight larger than the second-level cache are read at a time by one row: no sum changes."""
    out = 2 * Target.host().l2_bytes // SIZE + 3
    weight = RNG.integers(-127, 128, (out, SIZE)).astype(np.int8)
    arrays = [weight, RNG.uniform(0.01, 0.02, out).astype(np.float32)]
    arrays = arrays if kind == "int8" else [weight.astype(ml_dtypes.bfloat16)]
    x = RNG.standard_normal((3, SIZE)).astype(ml_dtypes.bfloat16)
    many = run(CinnCompiler().compile(program_of(kind, arrays, 3, "bfloat16"), device("cpu")), x, arrays)
    one = CinnCompiler().compile(program_of(kind, arrays, 1, "bfloat16"), device("cpu"))
    for row in range(3):
        assert run(one, x[row : row + 1].copy(), arrays).tobytes() == many[row : row + 1].tobytes()


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"])
@pytest.mark.parametrize(
    "kind", ["float32", "bfloat16", "int8", "int8 of lines", "int4 of lines", "int4 in 128", "int8 in 32", "int8 in 64"]
)
def test_sums_of_long_rows_wait_between_blocks_of_terms(kind, cpu, monkeypatch):
    """Of as many weights as a part of the second-level cache holds, of which a chunk has several: the last one is
    shorter. A row has the bits that it has alone, where no sum waits, beside numbers that are large or not finite."""
    if cpu != "host":
        if not Target.host().is_x86:
            pytest.skip("x86 levels")
        target = Target.from_name(cpu)
        monkeypatch.setattr(Target, "host", staticmethod(lambda: target))
    monkeypatch.setitem(globals(), "SIZE", 4480 if " " in kind else 4483)
    arrays, exact = weight_of(kind)
    dtype = "float32" if kind == "float32" else "bfloat16"
    executable = CinnCompiler().compile(program_of(kind, arrays, SymExpr.symbol("n"), dtype), device("cpu"))
    x = RNG.standard_normal((9, SIZE)).astype(np.float32 if dtype == "float32" else ml_dtypes.bfloat16)
    x[2] *= 2.0**120
    x[4, ::700], x[6, 1500] = np.inf, np.nan
    with np.errstate(all="ignore"):
        got = run(executable, x, arrays)
        alone = np.concatenate([run(executable, row[None].copy(), arrays) for row in x])
        np.testing.assert_array_equal(got.astype(np.float32), alone.astype(np.float32))
        plain = np.delete(np.arange(9), [2, 4, 6])
        want, room = (x[plain].astype(np.float64) @ exact.T, np.abs(x[plain].astype(np.float64)) @ np.abs(exact).T)
    step = 2.0**-8 if dtype == "bfloat16" else 0
    assert (np.abs(got[plain].astype(np.float64) - want) <= room * 2.0**-15 + np.abs(want) * step).all()
    assert not np.isfinite(got[[4, 6]].astype(np.float32)).any()


@pytest.mark.parametrize("rows", [1, 8, 12])
@pytest.mark.parametrize("kind", ["int8 in 64", "int4 in 128", "int4 in 32 from offsets"])
def test_scales_of_groups_are_in_the_product(kind, rows):
    """No value of a group has memory, offsets are no product of their own, and what is computed is what the scaled
    weight gives."""
    arrays, exact = weight_of(kind)
    x = RNG.standard_normal((rows, SIZE)).astype(np.float32)
    program = program_of(kind, arrays, rows, "float32")
    Decompose().run(program)
    names = [op.name for op in lower_program(program, Target.host()).block]
    assert names.count("cinn.scaled_product") == (1 if "int8" in kind else 2)
    assert "prim.dot_general" not in names
    got = run(CinnCompiler().compile(program, device("cpu")), x, arrays)
    np.testing.assert_allclose(got, x.astype(np.float64) @ exact.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cpu", ["host", "skylake-avx512", "x86-64-v3", "x86-64-v2"])
@pytest.mark.parametrize("kind", ["int8", "int8 in 64", "int4 in 128", "int4 in 32", "int4 in 64 from offsets"])
def test_products_with_inputs_in_bytes_have_exact_sums(kind, cpu, monkeypatch):
    """Sums of bytes, of groups where there are some, are those of integer arithmetic, with whatever a processor
    multiplies bytes; a row has the same bits beside any others."""
    if cpu != "host":
        if not Target.host().is_x86:
            pytest.skip("x86 levels")
        target = Target.from_name(cpu)
        if target.vector_bits > Target.host().vector_bits:
            pytest.skip("vectors of 512 bits")
        monkeypatch.setattr(Target, "host", staticmethod(lambda: target))
    arrays, exact = weight_of(kind)
    x = RNG.integers(-128, 128, (9, SIZE)).astype(np.int8)
    x[0], x[1], x[2] = -128, 127, 0
    group = group_of(kind) or SIZE
    executable = CinnCompiler().compile(program_of(kind, arrays, SymExpr.symbol("n"), "int8"), device("cpu"))
    got = run(executable, x, arrays)
    of_groups = np.einsum(
        "rgk,ogk->rgo", *(np.asarray(a, np.float64).reshape(-1, SIZE // group, group) for a in (x, exact))
    )
    assert got.dtype == np.float32
    assert (np.abs(got - of_groups.sum(1)) <= np.abs(of_groups).sum(1) * 2.0**-21 + 1e-4 * ("offsets" in kind)).all()
    for rows in (1, 3, 8):
        assert run(executable, x[:rows].copy(), arrays).tobytes() == got[:rows].tobytes()
    assert not executable.report().get("fallback")


@pytest.mark.parametrize("kind", ["int4 in 16", "int4 in 32", "int4 in 64 from offsets", "int4 in 128"])
def test_long_rows_of_bytes_have_exact_sums_beside_any_others(kind, monkeypatch):
    """Of more terms than are multiplied before the next weights, by weights of which the last chunk and its last panel
    are short."""
    monkeypatch.setitem(globals(), "SIZE", 4608)
    monkeypatch.setitem(globals(), "OUT", 278)
    arrays, exact = weight_of(kind)
    x = RNG.integers(-128, 128, (16, SIZE)).astype(np.int8)
    executable = CinnCompiler().compile(program_of(kind, arrays, SymExpr.symbol("n"), "int8"), device("cpu"))
    whole = run(executable, x, arrays)
    of_groups = [np.asarray(a, np.float64).reshape(-1, SIZE // group_of(kind), group_of(kind)) for a in (x, exact)]
    sums = np.matmul(of_groups[0].transpose(1, 0, 2), of_groups[1].transpose(1, 2, 0))
    room = np.abs(sums).sum(0) * 2.0**-20 + np.abs(x).sum(1, keepdims=True) * 2.0**-20 * ("offsets" in kind)
    assert (np.abs(whole - sums.sum(0)) <= room).all()
    for rows in range(1, 16):
        assert run(executable, x[:rows].copy(), arrays).tobytes() == whole[:rows].tobytes()
    set_threads(2)
    try:
        assert run(executable, x, arrays).tobytes() == whole.tobytes()
    finally:
        set_threads(1)


@pytest.mark.skipif(not Target.host().has("avx512vnni"), reason="multiplies bytes in fours")
@pytest.mark.parametrize("kind", ["int8", "int4 in 128"])
def test_bytes_are_multiplied_in_fours(kind):
    """Few rows of bytes take neither floats nor pairs where the machine has products of bytes."""
    program = program_of(kind, weight_of(kind)[0], 8, "int8")
    Decompose().run(program)
    code = generated_code(program)
    assert "vpdpbusd" in code
    assert "dpbf16" not in code


@pytest.mark.skipif(
    not Target.host().has("avx512vnni") or Target.host().multiplies_pairs, reason="multiplies words in pairs"
)
@pytest.mark.parametrize("kind", WORD_KINDS)
def test_words_are_multiplied_in_pairs(kind):
    """Few rows of floats become integers where pairs of bfloat16 are slow, and LLVM makes one instruction of a product
    and its sum."""
    program = program_of(kind, weight_of(kind)[0], 8, "bfloat16")
    Decompose().run(program)
    code = compile_assembly(generated_code(program), Target.host())
    assert "vpdpwssd" in code
    assert "vpmaddwd" not in code


@pytest.mark.parametrize("kind", ["int4 in 64", "int4 in 128"])
@pytest.mark.parametrize("weight", [-8, 7])
def test_the_largest_sums_of_groups_are_exact(kind, weight, monkeypatch):
    """Of equal terms, the largest that a number of 16 bits holds, and equal weights."""
    monkeypatch.setitem(globals(), "SIZE", 1024)
    (_, scales), _ = weight_of(kind)
    packed = np.full((OUT // 2, SIZE), (weight & 15) * 0x11, np.uint8).view(np.int8)
    executable = CinnCompiler().compile(program_of(kind, [packed, scales], 2, "bfloat16"), device("cpu"))
    x = np.full((2, SIZE), 254 / 256).astype(ml_dtypes.bfloat16)
    x[1] *= -1
    want = weight * group_of(kind) * x[:, :1].astype(np.float64) * scales.astype(np.float64).sum(0)
    np.testing.assert_allclose(run(executable, x, [packed, scales]).astype(np.float64), want, rtol=2.0**-8)


@pytest.mark.parametrize("rows", [1, 3])
def test_groups_of_four_bits_are_summed_as_integers(rows):
    """Terms down to 2**-7 of the largest of their group lose nothing: what is rounded is a sum of a group, and the sum
    of those. Numbers that no group has a scale for, zeros and infinities give what floats give."""
    arrays, exact = weight_of("int4 in 128")
    groups = SIZE // 128
    executable = CinnCompiler().compile(program_of("int4 in 128", arrays, rows, "bfloat16"), device("cpu"))
    x = RNG.uniform(2.0**-7, 1, (rows, SIZE)) * RNG.choice([-1, 1], (rows, SIZE))
    x *= np.repeat(2.0 ** RNG.integers(-20, 20, (rows, groups)), 128, axis=1)
    x = x.astype(ml_dtypes.bfloat16)
    got = run(executable, x, arrays).astype(np.float64)
    want = x.astype(np.float64) @ exact.T
    of_groups = np.einsum("rgk,ogk->rgo", *(np.asarray(a, np.float64).reshape(-1, groups, 128) for a in (x, exact)))
    assert (np.abs(got - want) <= np.abs(want) * 2.0**-8 + np.abs(of_groups).sum(1) * 2.0**-21).all()
    for number in (0.0, 2.0**-90, 2.0**90, 2.0**120, np.inf, -np.inf, np.nan):
        special = x.copy()
        special[rows - 1, 130 if number > 1 or np.isnan(number) else slice(128, 256)] = number
        got = run(executable, special, arrays).astype(np.float64)
        assert np.isfinite(got).all() or not np.isfinite(number)
        with np.errstate(invalid="ignore"):
            terms = special.astype(np.float64)[:, None] * exact
            want, room = terms.sum(-1), np.abs(terms).sum(-1)
            close = np.abs(got - want) <= np.abs(want) * 2.0**-8 + room * 2.0**-15
        assert (close | (got == want) | (np.isnan(got) & np.isnan(want))).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["int4", "int4 in 128"])
def test_large_rows_are_multiplied_with_numbers_of_four_bits_as_they_are(kind, dtype):
    """No place that they have in a byte makes sums overflow that scales would bring back."""
    arrays, exact = weight_of(kind)
    executable = CinnCompiler().compile(program_of(kind, arrays, SymExpr.symbol("n"), dtype), device("cpu"))
    for rows in (1, 3, 40):
        x = (RNG.uniform(-1, 1, (rows, SIZE)) * 2.0**118).astype(dtype if dtype == "float32" else ml_dtypes.bfloat16)
        got, wide = run(executable, x, arrays).astype(np.float64), x.astype(np.float64)
        room = np.abs(wide) @ np.abs(exact).T * (2.0**-14 if dtype == "bfloat16" else 2.0**-20)
        assert (np.abs(got - wide @ exact.T) <= room + np.abs(got) * (2.0**-8 if dtype == "bfloat16" else 0)).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["floats", "int8", "int4", "int8 in 64", "int4 in 64"])
def test_bits_of_a_row_depend_on_itself_where_that_is_asked_for(kind, dtype):
    """With ``batch_invariant`` as many rows as there are, their number known at compilation or not."""
    arrays, exact = weight_of(dtype if kind == "floats" else kind)
    x = RNG.standard_normal((70, SIZE)).astype(np.float32 if dtype == "float32" else ml_dtypes.bfloat16)

    def compiled(rows):
        return CinnCompiler().compile(
            program_of(kind, arrays, rows, dtype), device("cpu"), options={"batch_invariant": True}
        )

    whole = run(open_sizes := compiled(SymExpr.symbol("n")), x, arrays)
    for rows in (1, 2, 7, 8, 15, 16, 17, 33, 40, 47, 48, 64, 65):
        assert run(open_sizes, x[:rows].copy(), arrays).tobytes() == whole[:rows].tobytes()
    for rows in (1, 2, 7, 8, 17, 40, 65):
        assert run(compiled(rows), x[:rows].copy(), arrays).tobytes() == whole[:rows].tobytes()
    want = x.astype(np.float64) @ exact.T
    np.testing.assert_allclose(whole.astype(np.float64), want, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(("kind", "largest"), [("int4 in 128", 2.0**119), ("int4", 2.0**110), ("int8", 2.0**110)])
@pytest.mark.parametrize("special", [None, np.inf, np.nan, 1e-30])
def test_bits_of_a_row_do_not_depend_on_one_without_a_scale(special, kind, largest):
    """Of whose groups, or blocks, one is too large, not finite, or too small to be integers times a power of two."""
    special = largest if special is None else special
    arrays, exact = weight_of(kind)
    executable = CinnCompiler().compile(program_of(kind, arrays, SymExpr.symbol("n"), "bfloat16"), device("cpu"))
    x = RNG.standard_normal((9, SIZE)).astype(ml_dtypes.bfloat16)
    alone = np.concatenate([run(executable, row[None].copy(), arrays) for row in x])
    for place in (0, 3, 8):
        beside = x.copy()
        beside[place, :: 1 if special == 1e-30 else 70] = special
        with np.errstate(all="ignore"):
            got, want = (run(executable, some, arrays) for some in (beside, beside[place : place + 1].copy()))
            got, want = got.astype(np.float32), want.astype(np.float32)
            wide = beside[place].astype(np.float64) @ exact.T
        np.testing.assert_array_equal(np.delete(got, place, 0), np.delete(alone, place, 0).astype(np.float32))
        np.testing.assert_array_equal(got[place], want[0])
        finite = np.abs(wide) < 3e38
        np.testing.assert_allclose(got[place, finite], wide[finite], rtol=2e-2, atol=abs(special) / 8)


@pytest.mark.parametrize("columns", [40, 640, 645])
def test_bits_of_a_row_sum_do_not_depend_on_what_is_fused_with_it(columns):
    """With ``batch_invariant``: what is computed again instead of read may depend on how many rows there are."""
    x, bits = RNG.standard_normal((6, columns)).astype(np.float32), set()
    for more in (0, 2, 14, 30, 140):
        program = Program("sums")
        value = program.add_input(TensorType(x.shape, "float32"))
        with emit_at(Builder.at_end(program.block)):
            for i in range(more):
                value = prim.maximum(value, -100.0 - i)
            program.set_outputs([prim.reduce_sum(value, axes=(1,))])
        bits.add(
            run(CinnCompiler().compile(program, device("cpu"), options={"batch_invariant": True}), x, []).tobytes()
        )
    assert len(bits) == 1


def open_product(columns, depth):
    """``x [n, depth] @ w [columns, depth]`` with an open number of rows."""
    program = Program("open")
    sizes = ((SymExpr.symbol("n"), depth), (columns, depth))
    operands = [program.add_input(TensorType(shape, "float32")) for shape in sizes]
    with emit_at(Builder.at_end(program.block)):
        program.set_outputs([prim.dot_general(*operands, lhs_contract=(1,), rhs_contract=(1,))])
    return program


def test_code_for_few_rows_is_emitted_for_weights_and_once():
    """What few rows share is that they read weights once: their sizes are known. Each function is another."""
    functions = re.compile(r"^define [^@]*@(\S+?)\(.*?\n(.*?)^}", re.MULTILINE | re.DOTALL)
    for columns, depth in ((OUT, SIZE), (SymExpr.symbol("m"), 64), (64, SymExpr.symbol("m"))):
        found = functions.findall(generated_code(open_product(columns, depth)))
        assert len({body for _, body in found}) == len(found)
        few = {name.rpartition(".")[2] for name, _ in found} & {"one", "two", "four", "eight"}
        assert few > {"one"} if (columns, depth) == (OUT, SIZE) else few == {"one"}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("is_turned", [False, True])
def test_weights_of_heads_are_read_by_few_rows_as_any_other(dtype, is_turned):
    """A batch of weights [heads, in, out] or [heads, out, in]: the same bits alone and beside other rows."""
    heads, size, out = 3, 160, 96
    weight = RNG.standard_normal((heads, *((out, size) if is_turned else (size, out)))).astype(np.float32)
    x = RNG.standard_normal((max(ROWS), heads, size)).astype(np.float32)
    real = np.float32 if dtype == "float32" else ml_dtypes.bfloat16
    weight, x = weight.astype(real), x.astype(real)
    program = Program("heads")
    given = program.add_input(TensorType((SymExpr.symbol("t"), heads, size), dtype), "x")
    matrices = program.add_input(TensorType(weight.shape, dtype), "w")
    with emit_at(Builder.at_end(program.block)):
        contracted = {"lhs_contract": (2,), "rhs_contract": (2 if is_turned else 1,)}
        program.set_outputs([prim.dot_general(given, matrices, **contracted, lhs_batch=(1,), rhs_batch=(0,))])
    executable = CinnCompiler().compile(program, device("cpu"), options={"batch_invariant": True})

    def multiply(rows):
        inputs = [StridedArray.from_array(np.ascontiguousarray(a)) for a in (rows, weight)]
        return executable.run(inputs, [])[0].array()

    together = multiply(x)
    wide = [a.astype(np.float64) for a in (x, weight)]
    exact = np.einsum("thi,hoi->hto" if is_turned else "thi,hio->hto", *wide)
    tolerance = np.abs(exact).max() * (1e-5 if dtype == "float32" else 1e-2)
    np.testing.assert_allclose(together.astype(np.float64), exact, atol=tolerance)
    for rows in ROWS:
        np.testing.assert_array_equal(multiply(x[:rows]), together[:, :rows])
