"""Kernels as OpenCL C text: the instructions of `printers.instructions` on scalars, with work-items and barriers.

    kernel = Kernel("scale", SimtTarget(), buffers=1)
    i = kernel.global_id()
    with kernel.when(kernel.icmp("slt", i, 100)):
        place = kernel.at(kernel.buffers[0], i)
        kernel.store(kernel.fmul(kernel.load("float", place), 2.0), place)
    text = kernel.text()

Values are constants of C under LLVM's types, so that what prints LLVM's instructions (elementwise primitives,
mathematical functions, indices) prints these, too. There are no vectors: lanes are work-items.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.llvm import Loop
from argosy_cinn.printers.types import (
    DOUBLE,
    FLOAT,
    I1,
    I32,
    I64,
    PTR,
    VOID,
    Index,
    Value,
    bits_of,
    bytes_of,
    is_float,
)
from argosy_cinn.target import Target
from argosy_pir.dims import SymExpr

__all__ = ["Kernel", "SimtTarget", "UnprintableError"]

_C = {I1: "int", "i8": "char", "i16": "short", I32: "int", I64: "long", FLOAT: "float", DOUBLE: "double"}
_BINARY = {
    "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|",
    "xor": "^", "shl": "<<", "ashr": ">>", "sdiv": "/", "srem": "%",
}  # fmt: skip
_UNSIGNED = {"udiv": "/", "urem": "%", "lshr": ">>"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
#: Wrapping arithmetic is that of unsigned numbers: C leaves the overflow of signed ones open.
_WRAPPING = frozenset({"add", "sub", "mul", "shl"})
_FUNCTIONS = {
    "sqrt": "sqrt", "fabs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "roundeven": "rint",
    "fma": "fma", "copysign": "copysign", "maxnum": "fmax", "minnum": "fmin", "smin": "min", "smax": "max",
    "umin": "min", "umax": "max",
}  # fmt: skip
_LIBRARY = frozenset(
    "exp log log1p expm1 tanh erf erfc sin cos tan asin acos atan sinh cosh asinh acosh atanh lgamma pow atan2 "
    "fmod".split()
)


class UnprintableError(NotImplementedError):
    """An instruction that has no OpenCL C here."""


class SimtTarget(Target):
    """Machines of work-groups, as kernel builders ask about them."""

    __slots__ = ()
    schedules = "simt"

    def __init__(self) -> None:
        super().__init__("spir64-unknown-unknown", "generic", "+fma")


class _Shared:
    """What stands for a module: the target; functions that are called are C's own."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.symbols: dict[str, int] = {}

    def declare(self, name: str, result: str, parameters: Sequence[str]) -> None:
        """Nothing to do."""


class Kernel(Instructions):
    """A kernel being built; ``buffers`` are its parameters: addresses of device memory."""

    def __init__(self, name: str, target: Target, buffers: int) -> None:
        self.kernel_name = name
        self.module: Any = _Shared(target)
        self._lines: list[str] = []
        self._entry_allocas: list[str] = []
        self._next = 0
        self._widened: dict[str, Value] = {}
        self._sources: dict[str, Value] = {}
        self._spaces: dict[str, str] = {}
        self._depth = 1
        self.buffers = [self._pointer(f"b{i} + o{i}", "__global") for i in range(buffers)]
        self._count = buffers

    def text(self) -> str:
        """The kernel's definition."""
        parameters = ", ".join(f"__global char *restrict b{i}, long o{i}" for i in range(self._count))
        head = f"#pragma OPENCL FP_CONTRACT OFF\n__kernel void {self.kernel_name}({parameters})\n{{"
        return "\n".join([head, *self._entry_allocas, *self._lines, "}"]) + "\n"

    # -- plumbing

    def emit(self, line: str) -> None:
        """Append one line of C."""
        self._lines.append("    " * self._depth + line)

    def comment(self, text: str) -> None:
        """A comment line."""
        self.emit("// " + " ".join(text.split()))

    def op(self, type: str, expression: str) -> Value:
        """A constant of C that is ``expression``."""
        if type not in _C:
            raise UnprintableError(f"no OpenCL C for values of type {type}")
        name = self.name()
        self.emit(f"const {_C[type]} {name} = {expression};")
        return Value(type, name)

    def _pointer(self, expression: str, space: str) -> Value:
        name = self.name("p")
        self.emit(f"{space} char *{name} = {expression};")
        self._spaces[name] = space
        return Value(PTR, name)

    def c(self, value: Value) -> str:
        """An operand: the name of a constant of C, or a literal."""
        if value.name[:1].isalpha() and value.name not in ("true", "false"):
            return value.name
        return _literal(value)

    def size(self, formula: SymExpr) -> Value:
        """Raises UnprintableError: kernels are for known sizes."""
        raise UnprintableError(f"the size {formula} is not known")

    def splat(self, x: Value, lanes: int) -> Value:
        """The scalar itself."""
        if lanes != 1:
            raise UnprintableError("no vectors in OpenCL C here")
        return x

    # -- work-items

    def global_id(self) -> Value:
        """The number of the work-item."""
        return self.op(I64, "(long)get_global_id(0)")

    def local_id(self) -> Value:
        """Its number in its work-group."""
        return self.op(I64, "(long)get_local_id(0)")

    def group_id(self) -> Value:
        """The number of its work-group."""
        return self.op(I64, "(long)get_group_id(0)")

    def barrier(self, memory: str = "LOCAL") -> None:
        """All work-items of the group come here before any goes on, and see what was written to ``LOCAL`` or ``GLOBAL``
        memory."""
        self.emit(f"barrier(CLK_{memory}_MEM_FENCE);")

    def local(self, element: str, count: int) -> Value:
        """Memory of a work-group."""
        name = self.name("local")
        self._entry_allocas.append(f"    __local {'char' if element == I1 else _C[element]} {name}[{count}];")
        return self._pointer(f"(__local char *){name}", "__local")

    # -- arithmetic

    def binary(self, opcode: str, x: Any, y: Any, flags: str = "") -> Value:
        """See :class:`Instructions`."""
        x, y = self._pair(x, y)
        a, b, type = self.c(x), self.c(y), x.type
        if type == I1:
            return self.op(I1, f"({a} {_BINARY[opcode]} {b}) & 1")
        if opcode in _UNSIGNED or opcode in _WRAPPING:
            unsigned = "u" + _C[type]
            symbol = _UNSIGNED.get(opcode) or _BINARY[opcode]
            return self.op(type, f"({_C[type]})(({unsigned}){a} {symbol} ({unsigned}){b})")
        if opcode not in _BINARY:
            raise UnprintableError(f"no OpenCL C for {opcode}")
        return self.op(type, f"{a} {_BINARY[opcode]} {b}")

    def fneg(self, x: Value) -> Value:
        """See :class:`Instructions`."""
        return self.op(x.type, f"-{self.c(x)}")

    def icmp(self, predicate: str, x: Any, y: Any) -> Value:
        """See :class:`Instructions`."""
        x, y = self._pair(x, y)
        cast = f"(u{_C[x.type]})" if predicate[0] == "u" and x.type != I1 else ""
        symbol = _COMPARE[predicate if predicate in ("eq", "ne") else predicate[1:]]
        return self.op(I1, f"{cast}{self.c(x)} {symbol} {cast}{self.c(y)}")

    def fcmp(self, predicate: str, x: Any, y: Any) -> Value:
        """See :class:`Instructions`."""
        x, y = self._pair(x, y)
        a, b = self.c(x), self.c(y)
        unordered = f"isnan({a}) || isnan({b})"
        if predicate in ("ord", "uno"):
            return self.op(I1, f"({unordered})" if predicate == "uno" else f"!({unordered})")
        compared = f"{a} {_COMPARE[predicate[1:]]} {b}"
        if predicate == "one":
            return self.op(I1, f"{compared} && !({unordered})")
        return self.op(I1, compared if predicate[0] == "o" or predicate == "une" else f"{compared} || {unordered}")

    def select(self, condition: Value, x: Any, y: Any) -> Value:
        """See :class:`Instructions`."""
        x, y = self._pair(x, y)
        return self.op(x.type, f"{self.c(condition)} ? {self.c(x)} : {self.c(y)}")

    def fma(self, x: Any, y: Any, z: Any) -> Value:
        """See :class:`Instructions`; always with one rounding."""
        like = next(v for v in (x, y, z) if isinstance(v, Value))
        a, b, c = (self.c(v if isinstance(v, Value) else self.like(like.type, v)) for v in (x, y, z))
        return self.op(like.type, f"fma({a}, {b}, {c})")

    def convert(self, opcode: str, x: Value, element: str) -> Value:
        """See :class:`Instructions`."""
        if x.type == element:
            return x
        a, to = self.c(x), _C.get(element, "")
        if opcode == "zext" and x.type != I1:
            return self.op(element, f"({to})(u{_C[x.type]}){a}")
        if opcode == "sext" and x.type == I1:
            return self.op(element, f"({to})-({a})")
        if opcode == "uitofp" and x.type != I1:
            return self.op(element, f"({to})(u{_C[x.type]}){a}")
        if opcode == "trunc" and element == I1:
            return self.op(I1, f"(int)({a} & 1)")
        return self.op(element, f"({to}){a}")

    def bitcast(self, x: Value, type: str) -> Value:
        """See :class:`Instructions`."""
        return x if x.type == type else self.op(type, f"as_{_C[type]}({self.c(x)})")

    # -- memory

    def at(self, pointer: Value, index: Index, element: str = FLOAT) -> Value:
        """See :class:`Instructions`."""
        if isinstance(index, int) and index == 0:
            return pointer
        return self._pointer(
            f"{pointer.name} + {self.c(self.index(index))} * {bytes_of(element)}", self._spaces[pointer.name]
        )

    def _element(self, pointer: Value, type: str) -> str:
        memory = "char" if type == I1 else _C.get(type)
        if memory is None:
            raise UnprintableError(f"no OpenCL C for memory of type {type}")
        return f"*({self._spaces[pointer.name]} {memory} *){pointer.name}"

    def load(self, type: str, pointer: Value, align: int = 0, nontemporal: bool = False) -> Value:
        """See :class:`Instructions`."""
        return self.op(type, self._element(pointer, type))

    def store(self, value: Value, pointer: Value, align: int = 0, nontemporal: bool = False) -> None:
        """See :class:`Instructions`."""
        self.emit(f"{self._element(pointer, value.type)} = {self.c(value)};")

    # -- calls

    def intrinsic(
        self, name: str, result: str, *operands: Value, overloads: Sequence[str] | None = None, flags: str = ""
    ) -> Value:
        """See :class:`Instructions`: those that are functions of OpenCL C."""
        short = name.removeprefix("llvm.")
        if short == "fptosi.sat":
            return self.op(result, f"convert_{_C[result]}_sat({self.c(operands[0])})")
        if short == "vector.reduce.or":
            return operands[0]
        if short not in _FUNCTIONS:
            raise UnprintableError(f"no OpenCL C for {name}")
        cast = f"(u{_C[result]})" if short in ("umin", "umax") else ""
        return self.op(result, f"{_FUNCTIONS[short]}({', '.join(cast + self.c(x) for x in operands)})")

    def call(self, name: str, result: str, *operands: Value, flags: str = "") -> Value:
        """A function of the C library, as OpenCL C has it."""
        short = name.removesuffix("f") if result == FLOAT and name != "erf" else name
        if short not in _LIBRARY or result == VOID:
            raise UnprintableError(f"no OpenCL C for calls of {name}")
        return self.op(result, f"{short}({', '.join(map(self.c, operands))})")

    # -- control flow

    @contextmanager
    def _block(self, head: str) -> Iterator[None]:
        self.emit(f"{head} {{")
        self._depth += 1
        yield
        self._depth -= 1
        self.emit("}")

    def _variable(self, value: Value) -> Value:
        name = self.name("c")
        self.emit(f"{_C[value.type]} {name} = {self.c(value)};")
        return Value(value.type, name)

    @contextmanager
    def loop(self, start: Index, stop: Index, step: Index = 1, carry: Sequence[Value] = ()) -> Iterator[Loop]:
        """See `printers.llvm.Function`."""
        first, last, by = (self.c(self.index(x)) for x in (start, stop, step))
        carried = [self._variable(v) for v in carry]
        index = self.name("i")
        loop = Loop(Value(I64, index), carried)
        with self._block(f"for (long {index} = {first}; {index} < {last}; {index} += {by})"):
            yield loop
            for variable, value in zip(carried, loop.next_values(), strict=True):
                self.emit(f"{variable.name} = {self.c(value)};")
        loop.results = [self.op(v.type, v.name) for v in carried]

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """See `printers.llvm.Function`."""
        with self._block(f"if ({self.c(condition)})"):
            yield

    def either(
        self, condition: Value, then: Callable[[], Sequence[Value]], otherwise: Callable[[], Sequence[Value]]
    ) -> list[Value]:
        """See `printers.llvm.Function`."""
        at = len(self._lines)
        with self._block(f"if ({self.c(condition)})"):
            made = list(then())
            names = [self.name("c") for _ in made]
            for name, value in zip(names, made, strict=True):
                self.emit(f"{name} = {self.c(value)};")
        with self._block("else"):
            for name, value in zip(names, otherwise(), strict=True):
                self.emit(f"{name} = {self.c(value)};")
        self._lines[at:at] = ["    " * self._depth + f"{_C[v.type]} {n};" for n, v in zip(names, made, strict=True)]
        return [self.op(v.type, n) for n, v in zip(names, made, strict=True)]


_SPLAT = re.compile(r"splat \(\w+ (.*)\)")


def _literal(value: Value) -> str:
    """A constant of LLVM in C."""
    text = _SPLAT.sub(r"\1", value.name)
    if value.type == I1:
        return "1" if text == "true" else "0"
    if not is_float(value.type):
        return _integer(int(text), bits_of(value.type), _C[value.type])
    (number,) = struct.unpack("<d", int(text, 16).to_bytes(8, "little"))
    if value.type == DOUBLE:
        return f"as_double({text}UL)"
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    return f"as_float(0x{bits:08X}u)"


def _integer(number: int, bits: int, type: str) -> str:
    if number == -(1 << 63):
        return "(-0x7FFFFFFFFFFFFFFFL - 1)"
    if number == -(1 << 31) and bits == 32:
        return "(-2147483647 - 1)"
    return f"{number}L" if bits == 64 else f"({type}){number}" if bits < 32 else str(number)
