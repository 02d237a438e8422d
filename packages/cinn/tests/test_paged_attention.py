"""Attention over a paged cache walks each sequence's own blocks, whatever else is computed beside it."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import build, check, values

from argosy_cinn import CinnCompiler, explain
from argosy_cinn.forms import paged_attention
from argosy_cinn.rewrites.indexed_products import ExpandIndexedProducts
from argosy_cinn.runtime.workers import set_threads, workers
from argosy_cinn.store import program_cache
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType
from argosy_pir.dims import SymExpr
from argosy_tensorcore.storage import StridedArray


def problem(rng, lengths, new, heads=2, shared=3, depth=20, width=12, block=4, dtype="float32", spare=3):
    """Operands for the last ``new[i]`` tokens of sequences of ``lengths[i]``, whose blocks lie in any order."""
    counts = [-(-n // block) for n in lengths]
    free = rng.permutation(sum(counts) + spare)
    tables = np.zeros((len(lengths), max(counts)), np.int64)
    for row, count in enumerate(counts):
        tables[row, :count], free = free[:count], free[count:]
    blocks = sum(counts) + spare
    positions = np.concatenate([np.arange(n - k, n) for n, k in zip(lengths, new, strict=True)])
    rows = np.repeat(np.arange(len(lengths)), new)
    return [
        values(rng, (len(rows), heads, shared, depth), dtype, -1, 1),
        values(rng, (blocks, block, heads, depth), dtype, -1, 1),
        values(rng, (blocks, block, heads, width), dtype, -1, 1),
        positions.astype(np.int64), rows.astype(np.int64), tables,
    ]  # fmt: skip


def attend(**rule):
    return lambda *operands: prim.paged_attention(*operands, **{"scale": 0.4, **rule})


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("rule", [{}, {"window": 5}, {"softcap": 1.5, "window": 70}])
def test_every_dtype_and_rule_gives_what_the_interpreter_does(dtype, rule):
    operands = problem(np.random.default_rng(0), [1, 150, 9, 64], [1, 70, 1, 3], dtype=dtype)
    report = check(attend(**rule), *operands, scale=4).report()
    assert report["host_calls"] == {}


@pytest.mark.parametrize(
    "shape",
    [
        {"heads": 1, "shared": 40, "depth": 7, "width": 5, "block": 1},
        {"heads": 3, "shared": 1, "depth": 64, "width": 64, "block": 16},
        {"heads": 1, "shared": 8, "depth": 48, "width": 200, "block": 24},
        {"heads": 2, "shared": 5, "depth": 96, "width": 64, "dtype": "bfloat16"},
    ],
)
def test_heads_widths_and_blocks_of_any_size(shape):
    rng = np.random.default_rng(1)
    operands = problem(rng, [130, 3], [5, 2], **shape)
    sinks = values(rng, (shape["heads"], shape["shared"]), shape.get("dtype", "float32"))
    check(attend(), *operands, sinks, scale=4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("width", [0, 10])
def test_bytes_with_scales_and_values_within_keys(dtype, width):
    """The interpreter multiplies them first; one cache may serve as both."""
    rng = np.random.default_rng(7)
    query, keys, values_of, *numbers = problem(rng, [70, 9, 3], [66, 1, 3], width=20, dtype=dtype)
    caches = [rng.integers(-127, 128, x.shape).astype(np.int8) for x in (keys, values_of)]
    scales = [rng.uniform(0.001, 0.02, x.shape[:3]).astype(np.float32) for x in caches]
    if width:
        caches, scales = caches[:1] * 2, scales[:1] * 2
    sinks = values(rng, query.shape[1:3], dtype)
    report = check(attend(width=width), query, *caches, *numbers, sinks, *scales, scale=4).report()
    assert report["host_calls"] == {}


@pytest.mark.parametrize("shape", [{"depth": 64, "width": 32, "shared": 2}, {"depth": 576, "width": 512, "heads": 1}])
def test_queries_beside_bytes_may_be_rounded_to_integers(shape):
    """To 15 bits and a sign, or as many as sums have room for: the largest numbers of both; zeros; and what is not
    finite spoils its own head. Of one token as of several."""
    rng = np.random.default_rng(13)
    query, keys, values_of, *numbers = problem(rng, [70, 9, 600], [66, 1, 3], dtype="bfloat16", **shape)
    caches = [rng.integers(-128, 128, x.shape).astype(np.int8) for x in (keys, values_of)]
    scales = [rng.uniform(0.001, 0.01, x.shape[:3]).astype(np.float32) for x in caches]
    caches[0][numbers[2][2, 3]], query[67:, 0, 1] = -128, -1
    query[3, 0, 0], query[66, 0, 0] = 0, query[66, 0, 0] * 1e-36
    executable = check(attend(), query, *caches, *numbers, *scales, scale=4)
    query[68, 0, 0, 5] = np.nan
    found = run(executable, [query, *caches, *numbers, *scales])
    assert np.isnan(found[68, 0, 0]).all()
    assert np.isfinite(np.delete(found.reshape(-1, found.shape[-1]), 68 * found[0, :, :, 0].size, axis=0)).all()
    positions, rows, tables = numbers
    for i in (3, 66, 69):
        given = [query[i : i + 1], *caches, positions[i : i + 1], rows[i : i + 1], tables, *scales]
        alone = run(CinnCompiler().compile(build(attend(), given), device("cpu")), given)
        assert alone.tobytes() == found[i : i + 1].tobytes()


@pytest.mark.parametrize("sink", [np.inf, -np.inf, np.nan])
def test_a_sink_that_is_no_number_spoils_its_head_alone(sink):
    """The largest score so far does not change from panel to panel, and yet the sums are rescaled to it."""
    rng = np.random.default_rng(9)
    operands = problem(rng, [150, 70], [3, 1], heads=4, shared=2, depth=64, width=64, dtype="float32")
    sinks = values(rng, (4, 2), "float32")
    sinks[1, 1] = sink
    program = build(attend(), [*operands, sinks])
    found = run(CinnCompiler().compile(program, device("cpu")), [*operands, sinks])
    with np.errstate(invalid="ignore"):
        ((wanted,), _) = interpret(program, [*operands, sinks])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)
    assert np.isnan(found[:, 1, 1]).all() == (sink != -np.inf)
    assert np.isfinite(np.delete(found.reshape(4, 8, 64), 3, axis=1)).all()


@pytest.mark.skipif(not Target.host().has("avx2"), reason="runs code for vectors of 256 bits")
@pytest.mark.parametrize(("processor", "dtype"), [("x86-64", "float64"), ("x86-64-v3", "bfloat16")])
def test_narrower_vectors_give_what_the_interpreter_does(processor, dtype, monkeypatch):
    """Two and eight lanes: places of a panel are numbered in four turns whatever there are."""
    narrow = Target.from_name(processor)
    monkeypatch.setattr(Target, "host", staticmethod(lambda: narrow))
    operands = problem(np.random.default_rng(0), [1, 90, 9], [1, 20, 1], dtype=dtype)
    check(attend(window=33), *operands, scale=4)


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_any_rows_and_windows_equal_the_interpreter(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    lengths = data.draw(st.lists(st.integers(1, 150), min_size=1, max_size=4))
    new = [data.draw(st.integers(1, n)) for n in lengths]
    operands = problem(rng, lengths, new, block=data.draw(st.sampled_from([1, 4, 16])))
    order = rng.permutation(len(operands[3])) if data.draw(st.booleans()) else slice(None)
    operands = [operands[0][order], *operands[1:3], operands[3][order], operands[4][order], operands[5]]
    check(attend(window=data.draw(st.sampled_from([0, 1, 7, 64]))), *operands, scale=4)


def symbolic(dtype="float32", heads=2, shared=3, depth=20, width=12, block=4, sinks=0, used=0, **rule):
    """One program for any numbers of tokens, rows and blocks."""
    t, r, m, n = map(SymExpr.symbol, "trmn")
    shapes = [(t, heads, shared, depth), (n, block, heads, depth), (n, block, heads, width), (t,), (t,), (r, m)]
    program = Program("paged")
    inputs = [program.add_input(TensorType(s, dtype if i < 3 else "int64")) for i, s in enumerate(shapes)]
    inputs += [program.add_input(TensorType((heads, shared), dtype)) for _ in range(sinks)]
    with emit_at(Builder.at_end(program.block)):
        program.set_outputs([attend(width=used, **rule)(*inputs)])
    return CinnCompiler().compile(program, device("cpu"))


def run(executable, operands):
    return executable.run([StridedArray.from_array(np.ascontiguousarray(x)) for x in operands], [])[0].array()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("window", "shared", "depth", "width"), [(0, 2, 64, 32), (33, 3, 20, 12)])
def test_bits_of_a_token_depend_on_its_own_sequence_alone(dtype, window, shared, depth, width):
    """Alone, in pieces, or beside 64 others, on one thread or several; keys are copied for more rows than two or
    four."""
    shape = {"dtype": dtype, "shared": shared, "depth": depth, "width": width}
    executable = symbolic(window=window, **shape)
    lengths = [1 + 5 * i for i in range(64)]
    operands = problem(np.random.default_rng(2), lengths, [min(n, 40) for n in lengths], **shape)
    together = run(executable, operands)
    threads = workers().threads
    try:
        set_threads(3 if threads == 1 else 1)
        np.testing.assert_array_equal(run(executable, operands), together)
    finally:
        set_threads(threads)
    for some in (slice(0, 1), slice(100, 101), slice(500, 560), slice(701, 800)):
        chosen = [operands[0][some], *operands[1:3], operands[3][some], operands[4][some], operands[5]]
        np.testing.assert_array_equal(run(executable, chosen), together[some])
    assert executable.report()["compilations"] == 1


@pytest.fixture
def use_cores(monkeypatch):
    """Compile for so many cores; what was compiled for others is not found."""

    def use(count):
        for module in (paged_attention, program_cache):
            monkeypatch.setattr(module, "physical_cores", lambda: count)

    return use


def test_heads_that_share_a_latent_one_are_computed_in_parts_on_several_cores(use_cores):
    """With the same bits: parts of 24, 12 and 8 heads of tiles of 1, 2 and 4 of the 4 tokens."""
    operands = problem(np.random.default_rng(8), [70, 9], [3, 1], heads=1, shared=24, depth=64, width=32)

    def found(cores):
        use_cores(cores)
        made = CinnCompiler().compile(build(attend(), operands), device("cpu"))
        return run(made, operands), re.findall(r"in (\d+) chunks", explain(made))

    (one, chunks), (two, both), (many, most) = map(found, (1, 2, 64))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, many)
    assert (chunks, both, most) == (["4"], ["4"], ["3"])


@pytest.mark.parametrize("shape", [{"heads": 0}, {"shared": 0}, {"width": 0}])
def test_axes_of_no_elements(shape):
    operands = problem(np.random.default_rng(6), [5, 3], [2, 1], **shape)
    check(attend(), *operands)


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"dtype": "bfloat16", "depth": 64, "width": 96},
        {"dtype": "bfloat16", "shared": 16, "depth": 32, "width": 32, "window": 35},
    ],
)
def test_what_is_not_seen_does_not_matter(shape):
    """Later tokens, blocks of others and entries behind the last one may hold anything: pairs of places, too."""
    executable = symbolic(**shape)
    operands = problem(np.random.default_rng(3), [70, 40], [20, 1], **{k: v for k, v in shape.items() if k != "window"})
    expected = run(executable, operands)
    tables, caches = operands[5], operands[1:3]
    for cache in caches:
        cache[tables[0, 67 // 4], 67 % 4 :] = np.nan  # tokens 67 and later of the first sequence
        spare = np.setdiff1d(np.arange(len(cache)), np.concatenate([tables[0, :18], tables[1, :10]]))
        cache[spare] = np.nan
    tables[1, 10:] = 999999
    for cache in caches if "window" in shape else ():
        cache[tables[0, 0]] = cache[tables[1, 0]] = np.nan
    made = run(executable, operands)
    np.testing.assert_array_equal(made[:17], expected[:17])
    np.testing.assert_array_equal(made[20], expected[20])
    assert np.isnan(made[17:20]).all()


def test_numbers_out_of_range_read_no_other_memory():
    """Blocks and rows are clamped; a token before its sequence sees nothing."""
    operands = problem(np.random.default_rng(4), [9, 5], [2, 1])
    operands[5][0, 1], operands[4][2], operands[3][0] = 1 << 40, -7, -1
    executable = check(attend(), *operands, scale=4)
    assert np.isnan(run(executable, operands)[0]).all()


def test_memory_does_not_grow_with_what_is_cached(use_cores):
    """But for partial sums of as many parts of contexts as fill the cores."""

    def arena(length, cores):
        use_cores(cores)
        operands = problem(np.random.default_rng(5), [length, 8], [1, 255 % 8 + 1])
        return CinnCompiler().compile(build(attend(), operands), device("cpu")).report()["arena_bytes"]

    assert arena(50_000, 1) == arena(50, 1)
    assert arena(50_000, 2) == arena(10_000, 2) < 100_000


#: About the borders of segments of 512 places.
_LENGTHS = (1, 511, 512, 513, 1023, 1024, 1025, 3000, 4097)


@pytest.mark.parametrize(
    ("rule", "shape"),
    [
        ({}, {"heads": 4, "shared": 2, "depth": 64, "width": 64, "dtype": "bfloat16"}),
        ({"window": 700, "softcap": 1.5}, {}),
        ({"used": 32}, {"heads": 1, "shared": 16, "depth": 48, "width": 48}),
    ],
)
def test_bits_do_not_depend_on_how_contexts_are_split(rule, shape, use_cores):
    """Over cores and threads, alone, beside others, and as the last token of three: parts of contexts are the same
    pairs of segments."""
    rng, most = np.random.default_rng(11), [min(n, 3) for n in _LENGTHS]
    *operands, tables = problem(rng, _LENGTHS, most, block=16, **shape)
    sinks = values(rng, operands[0].shape[1:3], shape.get("dtype", "float32"))
    known = dict(rule)
    if used := known.pop("used", 0):
        operands[2] = operands[1]
    whole = [*operands, tables, sinks]
    ((expected,), _) = interpret(build(attend(width=used, **known), whole), whole)
    ends, found, threads = np.cumsum(most) - 1, [], workers().threads
    choices = [slice(None), ends, *(ends[i : i + 1] for i in range(len(ends)))]
    try:
        for cores in (1, 2, 5):
            use_cores(cores)
            set_threads(min(cores, 4))
            executable = symbolic(sinks=1, block=16, **shape, **rule)
            for some in choices:
                query, keys, values_of, positions, rows = operands
                given = [query[some], keys, values_of, positions[some], rows[some], tables, sinks]
                found.append((cores, some, run(executable, given)))
    finally:
        set_threads(threads)
    made = found[0][2]
    tolerance = 1e-2 if made.dtype == "bfloat16" else 1e-5
    np.testing.assert_allclose(made.astype("float64"), expected.astype("float64"), rtol=0, atol=tolerance)
    for cores, some, part in found:
        assert part.tobytes() == made[some].tobytes(), (cores, some)


@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_split_contexts_of_known_sizes_equal_the_interpreter(dtype, use_cores):
    """Of one sequence and several, with a score that is not finite in one segment."""
    use_cores(2)
    rng = np.random.default_rng(12)
    query, keys, values_of, *numbers = problem(
        rng, [2600, 9, 1200], [1, 1, 1], depth=16, width=16, dtype="float64" if dtype == "float64" else "float32"
    )
    others = []
    if dtype == "int8":
        keys, values_of = (rng.integers(-127, 128, x.shape).astype(np.int8) for x in (keys, values_of))
        others = [rng.uniform(0.001, 0.02, keys.shape[:3]).astype(np.float32) for _ in range(2)]
    else:
        keys[numbers[2][2, 800 // 4], 0, 1] = np.nan
    executable = check(attend(), query, keys, values_of, *numbers, *others, scale=4)
    assert "parts of contexts merged" in explain(executable)


@pytest.mark.parametrize("rule", [{}, {"window": 5, "softcap": 1.5}, {"width": 10}], ids=str)
@pytest.mark.parametrize("scaled", [False, True])
def test_sums_of_what_is_looked_up_are_the_same(scaled, rule):
    """What work-groups compute, with sinks, and caches of bytes."""
    rng = np.random.default_rng(9)
    query, keys, values_of, *numbers = problem(rng, [1, 30, 9], [1, 7, 3], width=20)
    others = [values(rng, query.shape[1:3], "float32")]
    if scaled:
        keys, values_of = (rng.integers(-127, 128, x.shape).astype(np.int8) for x in (keys, values_of))
        others += [rng.uniform(0.001, 0.02, keys.shape[:3]).astype(np.float32) for _ in range(2)]
    operands = [query, keys, values_of, *numbers, *others]
    program = build(attend(**rule), operands)
    ((expected,), _) = interpret(program, operands)
    assert ExpandIndexedProducts().run(program)
    ((found,), _) = interpret(program, operands)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
