"""Kernels in SPIR-V: their text, the module that LLVM makes of it, and that devices get the bits of OpenCL C."""

import struct
from importlib.resources import files

import numpy as np
import pytest
from programs import build
from test_simt import CASES, program_of

from argosy_cinn.compiler import CinnCompiler
from argosy_cinn.printers.spirv import SpirvKernel, spirv_module
from argosy_cinn.printers.types import Value
from argosy_cinn.printers.work_groups import SimtTarget, UnprintableError
from argosy_cinn.runtime.jit import CodegenError
from argosy_cinn.runtime.spirv import compile_spirv
from argosy_cinn.simt import sources
from argosy_cinn.simt.program import SimtProgram
from argosy_hwadapt import device, why
from argosy_phi_ops import prim
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import StridedArray

takes_spirv = pytest.mark.skipif(
    why("opencl") is not None or "spirv" not in device("opencl").info.kernel_forms, reason="no OpenCL that takes SPIR-V"
)
MAGIC, ENTRY_POINT, TYPES, LABEL, CONTRACTION_OFF = 0x07230203, 15, range(19, 34), 248, 31
MANY = SimtTarget(4, 256, 16, shuffles=True)


def test_a_kernel_is_text():
    """Addresses know their memory; truth values are bytes there, narrow floats are their bits."""
    b = SpirvKernel("scale", SimtTarget(), 1)
    i = b.global_id()
    with b.if_then(b.icmp("slt", i, 100)):
        place = b.gep(b.buffers[0], i, "half")
        b.store(b.select(b.load("i1", b.local_memory("i1", 4)), b.load("half", place), b.zero("half")), place)
    assert (
        b.text()
        == """declare i64 @_Z13get_global_idj(i32)
@scale.local6 = internal addrspace(3) global [4 x i8] poison, align 16
define spir_kernel void @scale(ptr addrspace(1) noalias %b0, i64 %o0) nounwind {
entry:
  %v1 = getelementptr i8, ptr addrspace(1) %b0, i64 %o0
  %v2 = call i64 @_Z13get_global_idj(i32 0)
  %v3 = icmp slt i64 %v2, 100
  br i1 %v3, label %W4.then, label %W4.end
W4.then:
  %v5 = getelementptr i16, ptr addrspace(1) %v1, i64 %v2
  %v7 = load i8, ptr addrspace(3) @scale.local6, align 1
  %v8 = icmp ne i8 %v7, 0
  %v9 = load i16, ptr addrspace(1) %v5, align 2
  %v10 = select i1 %v8, i16 %v9, i16 0
  store i16 %v10, ptr addrspace(1) %v5, align 2
  br label %W4.end
W4.end:
  ret void
}
"""
    )


def test_what_has_no_text_is_named():
    b = SpirvKernel("f", SimtTarget(), 0)
    with pytest.raises(UnprintableError, match=r"llvm\.ctpop"):
        b.intrinsic("llvm.ctpop", "i32", Value("i32", "1"))
    with pytest.raises(UnprintableError, match="calls of tgamma"):
        b.call("tgamma", "double", Value("double", "0x0"))
    for type in ("fp128", "<3 x float>"):
        with pytest.raises(UnprintableError, match=f"values of type {type}"):
            b.op(type, "poison")
    with pytest.raises(UnprintableError, match="from double to half"):
        b.convert("fptrunc", Value("double", "0x0"), "half")


def test_what_llvm_refuses_ends_no_process():
    with pytest.raises(CodegenError, match=r"(?s)LLVM emits no SPIR-V .*use of undefined value '%x'"):
        compile_spirv(spirv_module("define void @f() {\nstore i32 %x, ptr null\nret void\n}"))


def kernel_names(image):
    """The kernels that a module names as its entry points; its instructions fill it, and blocks have their own ids."""
    words = struct.unpack(f"<{len(image) // 4}I", image)
    assert (words[0], words[1]) == (MAGIC, 0x10300)
    at, names, types, labels, without_contraction = 5, [], set(), [], 0
    while at < len(words):
        length, code = words[at] >> 16, words[at] & 0xFFFF
        assert length > 0
        rest = words[at + 1 : at + length]
        if code == ENTRY_POINT:
            names.append(struct.pack(f"<{len(rest) - 2}I", *rest[2:]).split(b"\0")[0].decode())
        types |= {rest[0]} if code in TYPES else set()
        labels += [rest[0]] if code == LABEL else []
        without_contraction += code == 16 and rest[1] == CONTRACTION_OFF
        at += length
    assert at == len(words)
    assert len(labels) == len(set(labels) - types)
    assert all(label < words[3] for label in labels)
    assert without_contraction == len(names)
    return names


@pytest.mark.parametrize("machine", [SimtTarget(16), MANY], ids=["processor", "many"])
def test_modules_name_their_kernels(machine, monkeypatch):
    """Of all families of schedules, without a device: no product is joined to a sum."""
    monkeypatch.setenv("ARGOSY_KERNEL_FORM", "spirv")
    monkeypatch.setattr(sources, "target_of", lambda info: machine)
    there = device("virtual")
    monkeypatch.setattr(there, "info", there.info._replace(kernel_forms=("opencl-c", "spirv")))
    x = np.zeros((9, 33), np.float32)
    programs = [program_of("softmax", x, axis=-1), program_of("matmul", x, x.T.copy()), program_of("argsort", x)]
    texts, names = [], []
    for i, program in enumerate(programs):
        made = SimtProgram(program, there, {})
        texts += [made.source.replace("@k", f"@p{i}k")]
        names += [f"p{i}{name}" for name in made.names]
    assert kernel_names(compile_spirv(spirv_module("\n".join(texts)))) == names


def run(program, arrays, form):
    there = device("opencl")
    made = CinnCompiler().compile(program, there, (), {"kernel_form": form})
    results = made.run([StridedArray.from_array(x, there) for x in arrays])
    return [each.to_host() for each in results]


def assert_same_bits(program, *arrays):
    """As OpenCL C's; results of products, too, as both have the same schedule."""
    made, wanted = run(program, arrays, "spirv"), run(program, arrays, "opencl-c")
    for x, y in zip(made, wanted, strict=True):
        assert x.tobytes() == y.tobytes()


@takes_spirv
@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}{list(case[1])}")
def test_nests_have_the_bits_of_opencl_c(case):
    name, shape, attributes = (*case, {})[:3]
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    assert_same_bits(program_of(name, x, **attributes), x)


@takes_spirv
def test_other_schedules_have_the_bits_of_opencl_c(monkeypatch):
    """Products through windows, orders, float16, random numbers; rows of many items, in sub-groups where there are."""
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((2, 4, 9, 11)).astype(np.float32), rng.standard_normal((6, 4, 3, 3)).astype(np.float32)
    assert_same_bits(program_of("conv2d", x, w, padding=[1, 1]), x, w)
    half = x.reshape(36, 22).astype(as_dtype("float16").numpy)
    assert_same_bits(build(lambda a: [prim.mul(a, a), prim.reduce_sum(a, axes=(1,))], [half]), half)
    keys = rng.integers(-4, 5, (6, 18)).astype(np.float32)
    assert_same_bits(program_of("argsort", keys, axis=1, stable=True), keys)
    truths = build(lambda a: [prim.cast(prim.gt(a, 0.0), dtype=d) for d in ("float64", "int64", "bool")], [keys])
    assert_same_bits(truths, keys)
    seed = np.array([7, 3], np.uint64)
    assert_same_bits(build(lambda state: [prim.rng_bits(state, shape=(70,))], [seed]), seed)
    monkeypatch.setattr(sources, "target_of", lambda info: MANY)
    assert_same_bits(program_of("softmax", keys, axis=-1), keys)
    monkeypatch.setattr(sources, "target_of", lambda info: SimtTarget(4, 64, 4, matrix_tiles=True))
    assert_same_bits(program_of("matmul", keys, keys.T.copy()), keys, keys.T.copy())


def test_the_kits_module_is_what_llvm_makes_of_its_text():
    """But for the order of numbers, which LLVM takes from addresses."""
    folder = files("argosy_hwadapt.testing")
    made, kept = compile_spirv(folder.joinpath("kit.ll").read_text()), folder.joinpath("kit.spv").read_bytes()
    assert kernel_names(kept) == kernel_names(made)
    assert len(kernel_names(kept)) == 11
    assert len(kept) == len(made)


@takes_spirv
def test_what_is_built_is_kept_by_form():
    """One source of another form is another build."""
    program, there = program_of("tanh", np.zeros((3, 49), np.float32)), device("opencl")
    for form in ("spirv", "opencl-c"):
        SimtProgram(program, there, {"kernel_form": form}).load()
        again = SimtProgram(program, there, {"kernel_form": form})
        again.load()
        assert (again.printer.form, again.cache_hit) == (form, True)
