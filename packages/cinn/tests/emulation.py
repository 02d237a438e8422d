"""Code for a processor that is not at hand, run on this one: kernels are built for its vectors, registers and special
instructions, LLVM cuts wide vectors into this processor's, and each special instruction is a function that does in
scalars what its manual says (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2).

    python emulation.py znver4 -q test_few_rows.py  # pytest's arguments
"""

import re
import sys

import pytest

from argosy_cinn.runtime import jit
from argosy_cinn.settings import CODEGEN_LEVEL
from argosy_cinn.target import PROCESSORS, Target


class EmulatedTarget(Target):
    """This machine in the shape of another: ``has``, the width of vectors and what is multiplied in pairs are those of
    ``wanted``."""

    __slots__ = ("_wanted",)

    def __init__(self, host, wanted):
        super().__init__(host.triple, host.cpu, host.features, host.l1_bytes, host.l2_bytes, host.l3_bytes)
        self._wanted = wanted
        self._enabled = frozenset(PROCESSORS[wanted][1].split())
        self.vector_bits, self.registers = self._vector_shape()

    @property
    def multiplies_pairs(self):
        return Target.from_name(self._wanted).multiplies_pairs

    @property
    def key(self):
        return (*super().key[:2], f"{self.features} as {self._wanted}")


class Lanes:
    """The body of a function, lane by lane."""

    def __init__(self):
        self.lines, self.count = [], 0

    def __call__(self, text):
        self.count += 1
        self.lines.append(f"  %t{self.count} = {text}")
        return f"%t{self.count}"


def dot_of_bfloats(name, lanes):
    b = Lanes()
    result = f"<{lanes} x float> %0"
    for k in (1, 0):
        bits, wide = f"<{lanes} x i32>", []
        for operand in (1, 2):
            pairs = b(f"bitcast <{2 * lanes} x bfloat> %{operand} to {bits}")
            half = b(f"and {bits} {pairs}, {splat('i32', -1 << 16, lanes)}" if k else
                     f"shl {bits} {pairs}, {splat('i32', 16, lanes)}")  # fmt: skip
            wide.append(b(f"bitcast {bits} {half} to <{lanes} x float>"))
        product = b(f"fmul <{lanes} x float> {wide[0]}, {wide[1]}")  # exact
        result = f"<{lanes} x float> {b(f'fadd {result}, {product}')}"
    type = f"<{lanes} x float>"
    return definition(name, type, [type, f"<{2 * lanes} x bfloat>", f"<{2 * lanes} x bfloat>"], b, result)


def dot_of_bytes(name):
    b, total = Lanes(), "<16 x i32> %0"
    for k in range(4):
        terms = []
        for operand, extend in ((1, "lshr"), (2, "ashr")):
            left = b(f"shl <16 x i32> %{operand}, {splat('i32', 24 - 8 * k)}")
            terms.append(b(f"{extend} <16 x i32> {left}, {splat('i32', 24)}"))
        product = b(f"mul <16 x i32> {terms[0]}, {terms[1]}")
        total = f"<16 x i32> {b(f'add {total}, {product}')}"
    return definition(name, "<16 x i32>", ["<16 x i32>"] * 3, b, total)


def permutation(name, element, lanes, index):
    b, type, indices = Lanes(), f"<{lanes} x {element}>", f"<{lanes} x {index}>"
    result = f"{type} poison"
    masked = b(f"and {indices} %1, {splat(index, lanes - 1, lanes)}")
    for i in range(lanes):
        at = b(f"extractelement {indices} {masked}, i32 {i}")
        value = b(f"extractelement {type} %0, {index} {at}")
        result = f"{type} {b(f'insertelement {result}, {element} {value}, i32 {i}')}"
    return definition(name, type, [type, indices], b, result)


def choice_of_bytes(name):
    b, type = Lanes(), "<64 x i8>"
    result = f"{type} poison"
    masked = b(f"and {type} %1, {splat('i8', 127, 64)}")
    both = b(f"shufflevector {type} %0, {type} %2, <128 x i32> <{', '.join(f'i32 {i}' for i in range(128))}>")
    for i in range(64):
        at = b(f"extractelement {type} {masked}, i32 {i}")
        value = b(f"extractelement <128 x i8> {both}, i8 {at}")
        result = f"{type} {b(f'insertelement {result}, i8 {value}, i32 {i}')}"
    return definition(name, type, [type] * 3, b, result)


def scale(name):
    b, result = Lanes(), "<16 x float> poison"
    floor = b("call <16 x float> @llvm.floor.v16f32(<16 x float> %1)")
    for i in range(16):
        x, n = (b(f"extractelement <16 x float> {v}, i32 {i}") for v in ("%0", floor))
        wide, power = b(f"fpext float {x} to double"), b(f"fpext float {n} to double")
        scaled = b(f"fmul double {wide}, {b(f'call double @exp2(double {power})')}")  # rounded once
        product = b(f"fptrunc double {scaled} to float")
        result = f"<16 x float> {b(f'insertelement {result}, float {product}, i32 {i}')}"
    type = "<16 x float>"
    return (
        definition(name, type, [type, type, type, "i16", "i32"], b, result)
        + f"\ndeclare double @exp2(double)\ndeclare {type} @llvm.floor.v16f32({type})\n"
    )


def splat(element, number, lanes=16):
    return f"<{', '.join([f'{element} {number}'] * lanes)}>"


def definition(name, result, parameters, body, returned):
    return "\n".join(
        [f"define private {result} @{name}({', '.join(parameters)}) alwaysinline {{", "entry:", *body.lines,
         f"  ret {returned}", "}", ""]
    )  # fmt: skip


INSTRUCTIONS = {
    "llvm.x86.avx512bf16.dpbf16ps.512": lambda name: dot_of_bfloats(name, 16),
    "llvm.x86.avx512bf16.dpbf16ps.256": lambda name: dot_of_bfloats(name, 8),
    "llvm.x86.avx512bf16.dpbf16ps.128": lambda name: dot_of_bfloats(name, 4),
    "llvm.x86.avx512.vpdpbusd.512": dot_of_bytes,
    "llvm.x86.avx512.permvar.sf.512": lambda name: permutation(name, "float", 16, "i32"),
    "llvm.x86.avx512.permvar.hi.512": lambda name: permutation(name, "i16", 32, "i16"),
    "llvm.x86.avx512.vpermi2var.qi.512": choice_of_bytes,
    "llvm.x86.avx512.mask.scalef.ps.512": scale,
}


def portable(text):
    """A module with functions in place of special instructions."""
    for intrinsic in sorted(set(re.findall(r"@(llvm\.x86\.[\w.]+)", text))):
        if intrinsic not in INSTRUCTIONS:
            continue  # one of this processor, too, or LLVM refuses it
        name = "portable_" + intrinsic.replace(".", "_")
        text = re.sub(rf"^declare [^\n]*@{re.escape(intrinsic)}\([^\n]*\n", "", text, flags=re.MULTILINE)
        text = text.replace(f"@{intrinsic}(", f"@{name}(")
        for line in INSTRUCTIONS[intrinsic](name).split("\n"):
            declared = re.match(r"declare .*(@[\w.]+)\(", line)
            if declared is None or not re.search(rf"^declare .*{re.escape(declared[1])}\(", text, re.MULTILINE):
                text += "\n" + line
    return text


def emulate(wanted):
    """Let this process be on a machine like ``wanted``. LLVM optimises nothing, which takes half as long."""
    host, parse = EmulatedTarget(Target.host(), wanted), jit.parse_module
    Target.host = staticmethod(lambda: host)

    def parse_portable(text, *others):
        return parse(portable(text), *others)

    import argosy_cinn.runtime.objects as objects

    jit.parse_module = objects.parse_module = parse_portable
    CODEGEN_LEVEL.write("0")


if __name__ == "__main__":
    emulate(sys.argv[1])
    sys.exit(pytest.main(sys.argv[2:]))
