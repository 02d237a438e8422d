"""Kernels on work-groups: their text without a device, and what they compute where there is one."""

import re

import numpy as np
import pytest
from attention.test_attention import Attention, causal, where, window
from attention.test_attention import operands as attention_operands
from hypothesis import HealthCheck, given, settings
from programs import assert_equal, build
from test_programs import graphs, grow
from test_symbolic import argument
from test_symbolic import program_of as symbolic_program
from test_symbolic_sizes import CASES as CASES_OF_SIZES
from test_symbolic_sizes import EDGES

from argosy_cinn.compiler import CinnCompiler
from argosy_cinn.fourier.products import TransformsToProducts
from argosy_cinn.kinds import emitter_of
from argosy_cinn.printers.opencl import Kernel
from argosy_cinn.printers.types import Value
from argosy_cinn.printers.work_groups import SimtTarget, UnprintableError
from argosy_cinn.simt import order, sources
from argosy_cinn.simt.program import SimtProgram, launches
from argosy_cinn.target import Target
from argosy_hwadapt import device, optional, why
from argosy_hwadapt.contract import SUB_GROUPS
from argosy_hwadapt.opencl.runtime import OpenClRuntime
from argosy_phi_ops import get_operator, prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.eager.fallback import clear_fallbacks, fallbacks
from argosy_phi_ops.eager.placement import send
from argosy_phi_ops.errors import CompileError
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir.builder import Builder
from argosy_pir.dims import SymExpr
from argosy_pir.program import Program
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import StridedArray
from argosy_tensorcore.tensor import Tensor

on_device = pytest.mark.skipif(why("opencl") is not None, reason="no OpenCL runtime")


def program_of(name, *arrays, **settings):
    op = get_operator(name)
    operands, attributes = op.signature.bind(tuple(map(Tensor, arrays)), settings)
    return op.expand([TensorType(tuple(x.shape), x.dtype.name) for x in operands], attributes).program


def test_a_kernel_is_text():
    """Constants by their bits, wrapping arithmetic of unsigned numbers, one rounding for each operation."""
    b = Kernel("scale", SimtTarget(), 1)
    i = b.global_id()
    with b.if_then(b.icmp("slt", i, 100)):
        place = b.gep(b.buffers[0], b.mul(i, 2))
        b.store(b.fmul(b.load("float", place), 0.5), place)
    assert (
        b.text()
        == """__kernel void scale(__global char *restrict b0, long o0)
{
    __global char *p1 = b0 + o0;
    const long v2 = (long)get_global_id(0);
    const int v3 = v2 < 100L;
    if (v3) {
        const long v4 = (long)((ulong)v2 * (ulong)2L);
        __global char *p5 = p1 + v4 * 4;
        const float v6 = *(__global float *)p5;
        const float v7 = v6 * as_float(0x3F000000u);
        *(__global float *)p5 = v7;
    }
}
"""
    )


def test_a_piece_that_reads_what_another_makes_comes_after_it_where_pieces_take_turns():
    """As a block of a machine that has fewer sums than blocks in turns: its sum follows that of a block before it."""
    b, made = Kernel("f", SimtTarget(), 1), []

    def piece():
        x = b.load("i64", b.buffers[0])
        if made:
            made.append(b.select(b.icmp("slt", made[0], x), made[0], x))
        else:
            made.append(b.add(b.mul(b.add(x, 3), x), 5))

    b.in_turns([piece, piece])
    text = b.text()
    first = made[0].name
    places = [i for i, line in enumerate(text.splitlines()) if first in re.findall(r"\w+", line)]
    assert f"{first} =" in text.splitlines()[places[0]]
    assert len(places) > 2


def test_what_has_no_text_is_named():
    b = Kernel("f", SimtTarget(), 0)
    with pytest.raises(UnprintableError, match=r"llvm\.ctpop"):
        b.intrinsic("llvm.ctpop", "i32", Value("i32", "1"))
    with pytest.raises(UnprintableError, match="values of type fp128"):
        b.op("fp128", "0")
    with pytest.raises(UnprintableError, match="from double to half"):
        b.convert("fptrunc", Value("double", "1.0"), "half")


def test_machines_decide_how_many_items_share_a_row(monkeypatch):
    """The launches of a softmax. A processor has a group for each chunk of rows, and several items of long rows that
    are few; a machine of many items has as many rows in a group as it takes."""
    for columns, processor, many in ((3, (1, 1), (1, 8)), (300, (1, 1), (1, 128)), (50000, (7, 16), (7, 256))):
        program = program_of("softmax", np.zeros((7, columns), np.float32), axis=-1)
        for target, extents in ((SimtTarget(16), processor), (SimtTarget(4, 256), many)):
            monkeypatch.setattr(sources, "target_of", lambda info, target=target: target)
            made = SimtProgram(program, device("virtual"), {})
            assert [(launch.groups, launch.items) for launch in made.at({}).steps] == [extents]


def test_kinds_without_a_schedule_are_named():
    with pytest.raises(CompileError, match="kernels of kind 'attention' have no schedule of family 'text'"):
        emitter_of("attention", "text")


CASES = [
    ("gelu", (33, 65)), ("softmax", (5, 129), {"axis": -1}), ("sum", (300, 17), {"axis": [0]}), ("sum", (3, 1000)),
    ("cumsum", (9, 31), {"axis": 0}), ("transpose", (7, 5), {"perm": [1, 0]}), ("logsumexp", (4, 70), {"axis": [1]}),
    ("var", (70, 33), {"axis": [1]}), ("argmax", (6, 77), {"axis": 1}), ("erf", (1025,)), ("lgamma", (100,)),
    ("any", (3, 1000)),
]  # fmt: skip


@on_device
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}{list(case[1])}")
def test_nests_agree_with_the_interpreter(case):
    """Maps, rows, columns, scans; twice, with the same bits."""
    name, shape, attributes = (*case, {})[:3]
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    check(program_of(name, x, **attributes), x)


@on_device
@pytest.mark.parametrize(
    ("mask", "sizes"),
    [(where(causal), (129, 129, 16, 24)), (None, (33, 65, 20, 33)), (where(window), (70, 150))],
    ids=["causal", "whole", "window"],
)
def test_attention_agrees_with_the_interpreter(mask, sizes):
    """Forward and backward, at odd sizes, from kernels whose memory is linear."""
    arrays = attention_operands(*sizes)
    program = build(Attention(mask).both, arrays, ())
    check(program, *arrays)
    names = [step.kernel for step in SimtProgram(program, device("opencl"), {}).steps]
    assert sum("attention" in name for name in names) == len(names) - 1


def test_the_memory_of_attention_is_linear_in_the_sequence():
    """Partial results of a fixed number of parts, and what is kept for the way back."""
    sizes = []
    for length in (500, 1000):
        arrays = attention_operands(length, length)
        made = SimtProgram(build(Attention(where(causal)).both, arrays, ()), device("virtual"), {})
        sizes.append(made.at({}).arena_bytes)
    assert 0 < sizes[1] <= 2.1 * sizes[0]


@on_device
@pytest.mark.parametrize("name", ["attention", "padding"])
def test_one_build_serves_all_sizes(name):
    """Sizes are arguments of kernels."""
    function, types, scale = CASES_OF_SIZES[name]
    program, there = symbolic_program(function, types), device("opencl")
    executable = CinnCompiler().compile(program, there)
    for sizes in EDGES[1:8:3]:
        arguments = [argument(*type, dict(zip("btn", sizes, strict=True))) for type in types]
        wanted, _ = interpret(program, arguments)
        made = executable.run([send(StridedArray.from_array(x), there) for x in arguments])
        for x, y in zip(made, wanted, strict=True):
            assert_equal(x.to_host(), y, scale, f"at {sizes}")
    report = executable.report()
    assert (report["not_symbolic"], report["compilations"]) == ("", 1)


@on_device
def test_built_kernels_are_on_disk(monkeypatch):
    """What was built once is built no more, in another process neither: the device is not asked."""
    program, there = program_of("tanh", np.zeros((3, 47), np.float32)), device("opencl")
    SimtProgram(program, there, {}).load()
    monkeypatch.setattr(OpenClRuntime, "build", None)
    again = SimtProgram(program, there, {})
    again.load()
    assert again.cache_hit


@on_device
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("axis", "shape"), [(0, (37, 18)), (1, (37, 18)), (0, (290, 9))])
def test_orders_agree_with_the_interpreter(axis, shape, descending, monkeypatch):
    """Of rows with equal elements, zeros of both signs, infinities and NaN; long ones are merged."""
    monkeypatch.setattr(order, "_LONGEST", 50)
    x = np.random.default_rng(5).integers(-4, 5, shape).astype(np.float32)
    x[3, 4], x[5], x[:, 7], x[8, 2] = np.nan, np.inf, -0.0, -np.inf
    check(program_of("argsort", x, axis=axis, descending=descending, stable=True), x)


@on_device
@pytest.mark.parametrize("width", [4, 16])
def test_tiles_of_matrices_give_the_bits_of_other_schedules(width, monkeypatch):
    """Odd sizes, batches, an operand that lies the other way round, windows, and float16."""
    rng, there = np.random.default_rng(11), device("opencl")
    for name, shapes, dtype, attributes in (
        ("matmul", [(2, 70, 37), (37, 19)], "float32", {}),
        ("matmul", [(3, 5), (9, 5)], "float32", {"transpose_y": True}),
        ("matmul", [(33, 16), (16, 8)], "float16", {}), ("conv2d", [(1, 2, 5, 7), (3, 2, 3, 3)], "float32", {}),
    ):  # fmt: skip
        arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
        program, found = program_of(name, *arrays, **attributes), []
        for machine in (SimtTarget(16), SimtTarget(4, 64, width, matrix_tiles=True)):
            monkeypatch.setattr(sources, "target_of", lambda info, machine=machine: machine)
            (made,) = CinnCompiler().compile(program, there).run([StridedArray.from_array(x, there) for x in arrays])
            found.append(made.to_host())
        np.testing.assert_array_equal(*found)


@on_device
@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 7, 3), (65, 130, 129), (9, 1, 70), (3, 3 * 1171, 5)], ids=str)
@pytest.mark.parametrize("flipped", [False, True])
def test_products_agree_with_the_interpreter(sizes, flipped):
    """Of odd sizes, with an operand that lies the other way round."""
    m, k, n = sizes
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, m, k)).astype(np.float32), rng.standard_normal((n, k) if flipped else (k, n))
    y = y.astype(np.float32)
    check(program_of("matmul", x, y, transpose_x=False, transpose_y=flipped), x, y)


@on_device
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_depth_of_products_is_split(dtype):
    """Into parts that are equal, or whose last one zeros fill; sums of narrow floats are rounded once."""
    rng = np.random.default_rng(2)
    for depth in (4096, 3001):
        arrays = [rng.standard_normal(shape).astype(as_dtype(dtype).numpy) for shape in ((3, depth), (depth, 5))]
        program = Program("deep")
        x, y = (program.add_input(TensorType(a.shape, dtype)) for a in arrays)
        with emit_at(Builder.at_end(program.block)):
            program.set_outputs([prim.dot_general(x, y, lhs_contract=(1,), rhs_contract=(0,))])
        made = SimtProgram(program, device("opencl"), {})
        assert sum(launch.groups for launch in launches(made.steps)) > 2
        check(program, *arrays, tolerance={"float32": 2e-5, "float16": 2e-3, "bfloat16": 1e-2}[dtype])


@on_device
@pytest.mark.parametrize(
    "settings", [{"stride": [2, 2], "padding": [1, 1]}, {"groups": 2, "dilation": [2, 2]}], ids=str
)
def test_convolutions_agree_with_the_interpreter(settings):
    """Through windows, whose elements outside of the image are zero."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 4, 9, 11)).astype(np.float32)
    w = rng.standard_normal((6, 4 // settings.get("groups", 1), 3, 3)).astype(np.float32)
    check(program_of("conv2d", x, w, **settings), x, w)


@on_device
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_those_of_the_interpreter(dtype):
    """Bit for bit: numbers too large, too small, and none; products and sums are rounded once."""
    x = np.random.default_rng(8).standard_normal((9, 33)).astype(np.float32) * 3
    x[0, :6] = np.inf, -np.inf, np.nan, 1e-6, 60000, 6e-8
    x, y = x.astype(as_dtype(dtype).numpy), np.eye(33, 17).astype(as_dtype(dtype).numpy)
    program = Program("narrow")
    a, b = (program.add_input(TensorType(z.shape, dtype)) for z in (x, y))
    with emit_at(Builder.at_end(program.block)):
        finite = prim.select(prim.is_finite(a), a, prim.constant(1, dtype, x.shape))
        product = prim.dot_general(finite, b, lhs_contract=(1,), rhs_contract=(0,))
        program.set_outputs(
            [prim.add(prim.mul(a, a), a), prim.add(product, product), prim.reduce_sum(finite, axes=(1,))]
        )
    with np.errstate(over="ignore"):
        expected, _ = interpret(program, [x, y])
    given = [StridedArray.from_array(z, device("opencl")) for z in (x, y)]
    for made, wanted in zip(CinnCompiler().compile(program, device("opencl")).run(given), expected, strict=True):
        np.testing.assert_array_equal(made.to_host().astype(np.float32), wanted.astype(np.float32))


def transform_program(kind, shape, dtype, inverse):
    program = Program("transform")
    x = program.add_input(TensorType(shape, dtype))
    with emit_at(Builder.at_end(program.block)):
        program.set_outputs([prim.fft(x, axes=(0, 1), kind=kind, inverse=inverse, length=shape[1] * 2 - 2)])
    return program


TRANSFORMS = [
    ("c2c", (1, 7)), ("c2c", (12, 64)), ("c2c", (37, 96)), ("c2c", (3, 1009)), ("r2c", (5, 31)), ("r2c", (6, 30)),
    ("c2r", (4, 16)),
]  # fmt: skip


def complex_numbers(shape):
    return np.random.default_rng(6).standard_normal((*shape, 2)).view(np.complex128)[..., 0]


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("case", TRANSFORMS, ids=str)
def test_transforms_are_products(case, inverse):
    """Of lengths with small factors, large ones, and none; to the precision of float64."""
    kind, shape = case
    x = complex_numbers(shape) if kind[0] == "c" else complex_numbers(shape).real.copy()
    program = transform_program(kind, shape, x.dtype.name, inverse)
    ((expected,), _) = interpret(program, [x])
    assert TransformsToProducts().run(program)
    assert not [op for op in program.block if op.name == "prim.fft"]
    ((made,), _) = interpret(program, [x])
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-14 * np.abs(expected).max())


@on_device
@pytest.mark.parametrize("lanes", [4, 16])
def test_transforms_agree_with_the_interpreter(lanes, monkeypatch):
    monkeypatch.setattr(sources, "target_of", lambda info: SimtTarget(lanes))
    for kind, shape, dtype in (
        ("c2c", (5, 34), "complex64"),
        ("r2c", (3, 30), "float32"),
        ("c2r", (4, 16), "complex64"),
    ):
        x = complex_numbers(shape)
        x = (x if kind[0] == "c" else x.real).astype(dtype)
        check(transform_program(kind, shape, dtype, False), x)


@on_device
def test_what_has_no_kernel_runs_on_the_host_between_launches():
    """A captured program goes on around it; each call is counted."""
    x = np.random.default_rng(7).standard_normal((5, 5)).astype(np.float32)
    program = program_of("eigvals", x)
    clear_fallbacks()
    with pytest.warns(RuntimeWarning, match="prim.eig runs on the cpu, not on opencl:0"):
        check(program, x)
    assert [(f.operator, f.calls) for f in fallbacks()] == [("prim.eig", 2)]
    assert SimtProgram(program, device("opencl"), {}).host_calls == {"prim.eig": 1}


@on_device
def test_runs_are_replayed_where_the_device_captures_graphs(monkeypatch):
    """From the third on: other inputs, states where they lie or elsewhere; not while somebody else captures."""
    there, calls = device("opencl"), []
    for name in ("capture_begin", "capture_end", "capture_replay"):
        record = lambda self, ctx, *rest, name=name: calls.append(name) or getattr(optional, name)(there, *rest)  # noqa: E731
        monkeypatch.setattr(OpenClRuntime, name, record, raising=False)
    monkeypatch.setattr(there, "_methods", {})
    program = Program("step")
    x = program.add_input(TensorType((5, 7), "float32"))
    w = program.add_state("w", TensorType((7, 7), "float32")).argument
    with emit_at(Builder.at_end(program.block)):
        y = x
        for _ in range(3):
            y = prim.dot_general(y, w, lhs_contract=(1,), rhs_contract=(0,))
        program.set_outputs([y], [prim.mul(w, 0.5)])
    call = CinnCompiler().compile(program, there)
    state = StridedArray.from_array(np.eye(7, dtype=np.float32), there)
    run = call.bind([state])
    for i in range(5):
        x = np.full((5, 7), 1 + i, np.float32)
        (made,) = run([StridedArray.from_array(x, there)])
        np.testing.assert_array_equal(made.to_host(), x * 0.125**i)
    assert state.to_host()[0, 0] == 0.5**5
    assert calls == ["capture_begin", "capture_end", *["capture_replay"] * 3]
    del calls[:]
    there.call("capture_begin")
    run([StridedArray.from_array(x, there)])
    there.call("capture_end")
    assert calls == ["capture_begin", "capture_end"]
    assert state.to_host()[0, 0] == 0.5**5


def product(x):
    return prim.dot_general(x, x, lhs_contract=(1,), rhs_contract=(1,))


def row_sums(x):
    return prim.reduce_sum(prim.tanh(x), axes=(1,))


@on_device
@pytest.mark.parametrize(
    ("function", "length"), [(row_sums, 20000), (row_sums, 70), (row_sums, 5), (product, 3000), (product, 30)]
)
def test_bits_do_not_depend_on_the_shape_that_came_first(function, length):
    """Code for all sizes adds in the order of code for the sizes at hand, or leaves them to that."""
    x = np.random.default_rng(9).standard_normal((3, length)).astype(np.float32)
    given, found = [StridedArray.from_array(x, device("opencl"))], []
    for columns in (SymExpr.symbol("n"), length):
        program = symbolic_program(function, [((3, columns), "float32")])
        found += CinnCompiler().compile(program, device("opencl")).run(given)
    assert found[0].to_host().tobytes() == found[1].to_host().tobytes()


MACHINES = [
    SimtTarget(4),
    SimtTarget(16, registers=8),
    SimtTarget(16, registers=32),
    SimtTarget(4, 256),
    SimtTarget(4, 256, 8),
    SimtTarget(4, 64, 16),
    SimtTarget(16, 8, 2),
]


@on_device
@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize(
    "case",
    [
        ("softmax", (5, 129)), ("softmax", (3, 9000)), ("sum", (7, 130)), ("gelu", (9, 33)), ("matmul", (9, 33)),
        ("var", (70, 5), {"axis": [1]}), ("sum", (6, 3, 5), {"axis": [1, 2]}), ("prod", (2, 300), {"axis": [1]}),
        ("any", (3, 1000)), ("logsumexp", (4, 700), {"axis": [1]}), ("argmax", (6, 77), {"axis": 1}),
    ],
    ids=str,
)  # fmt: skip
def test_bits_do_not_depend_on_the_machine(case, monkeypatch):
    """What an item's vector is on one device, several items share on another, and groups have several rows; items are
    combined in memory, or in sub-groups: by the same trees."""
    name, shape, attributes = (*case, {})[:3]
    x = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    arrays = [x, x.T.copy()] if name == "matmul" else [x]
    program, there = program_of(name, *arrays, **attributes), device("opencl")
    machines = [*MACHINES, SimtTarget(4, 256, 16, shuffles=True)] if SUB_GROUPS in there.info.flags else MACHINES
    wanted = [a.tobytes() for a in check(program, *arrays)]
    for machine in machines:
        monkeypatch.setattr(sources, "target_of", lambda info, machine=machine: machine)
        run = CinnCompiler().compile(program, there).bind(())
        found = run([StridedArray.from_array(a, there) for a in arrays])
        assert [a.to_host().tobytes() for a in found] == wanted


FUNCTIONS = ("exp", "logistic", "tan", "lgamma", "erfc", "asinh", "acos")


@on_device
@pytest.mark.skipif(not Target.host().has_fma, reason="the CPU does not fuse multiply-adds")
@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_have_the_bits_of_the_cpu(dtype):
    """Over all magnitudes, whatever lies beside a number."""
    bits = np.random.default_rng(0).integers(0, 255, (600, np.dtype(dtype).itemsize), np.uint8)
    usual = np.random.default_rng(1).standard_normal(600).astype(dtype)
    x = np.concatenate([bits.view(dtype).ravel(), usual, np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)])
    y = np.random.default_rng(2).permutation(x)

    def everything(x, y):
        return [*(getattr(prim, name)(x) for name in FUNCTIONS), prim.pow(x, y), prim.atan2(x, y)]

    program = build(everything, [x, y])
    made = []
    for place in (device("cpu"), device("opencl")):
        run = CinnCompiler().compile(program, place).run
        made.append([each.to_host() for each in run([StridedArray.from_array(v, place) for v in (x, y)])])
    for name, want, got in zip([*FUNCTIONS, "pow", "atan2"], *made, strict=True):
        np.testing.assert_array_equal(got, want, err_msg=name)


@on_device
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(graphs())
def test_random_graphs_agree_with_the_interpreter(recipe):
    steps, rows, columns, picked = recipe
    rng = np.random.default_rng(len(steps))
    shapes = ((rows, columns), (rows, columns), (columns, columns))
    arrays = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]

    def outputs(x, y, w):
        found = grow(steps, x, y, w)
        return [found[-1], *(found[i % len(found)] for i in sorted(picked))]

    check(build(outputs, arrays, ()), *arrays, tolerance=1e-4)


def check(program, *arrays, tolerance=2e-5):
    there = device("opencl")
    expected, _ = interpret(program, list(arrays))
    run = CinnCompiler().compile(program, there).bind(())
    given = [StridedArray.from_array(a, there) for a in arrays]
    first, second = ([made.to_host() for made in run(given)] for _ in range(2))
    for made, again, wanted in zip(first, second, expected, strict=True):
        assert made.tobytes() == again.tobytes()
        np.testing.assert_allclose(made, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max(initial=0))
    return first
