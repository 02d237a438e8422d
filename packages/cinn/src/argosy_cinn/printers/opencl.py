"""Kernels as OpenCL C text: the instructions of `printers.instructions` on scalars, with work-items and barriers.

    kernel = Kernel("scale", SimtTarget(), buffers=1)
    i = kernel.global_id()
    with kernel.if_then(kernel.icmp("slt", i, 100)):
        place = kernel.gep(kernel.buffers[0], i)
        kernel.store(kernel.fmul(kernel.load("float", place), 2.0), place)
    text = kernel.text()

Values are constants of C under LLVM's types, so that what prints LLVM's instructions (elementwise primitives,
mathematical functions, indices) prints these, too. Vectors are those of OpenCL C; a vector of truth values has the
32-bit integers 0 and -1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from argosy_cinn.printers.c_constants import C_TYPES, c_constant, c_type
from argosy_cinn.printers.llvm import Loop
from argosy_cinn.printers.types import (
    BFLOAT,
    FLOAT,
    HALF,
    I1,
    I64,
    PTR,
    Index,
    Operand,
    Value,
    bytes_of,
    element_of,
    lanes_of,
    vector,
)
from argosy_cinn.printers.work_groups import UnprintableError, WorkGroupInstructions
from argosy_cinn.target import Target
from argosy_pir.dims import SymExpr

__all__ = ["HEAD", "Kernel"]

#: What a source begins with. Kernels with vectors ask Intel's compiler to leave work-items apart: it would take the
#: vectors to pieces, and make others of them.
HEAD = """#pragma OPENCL FP_CONTRACT OFF
#if defined(__has_attribute)
#if __has_attribute(intel_vec_len_hint)
#define ITEMS_APART __attribute__((intel_vec_len_hint(1)))
#endif
#endif
#ifndef ITEMS_APART
#define ITEMS_APART
#endif
#ifdef cl_intel_required_subgroup_size
#define SUB_GROUPS(size) __attribute__((intel_reqd_sub_group_size(size)))
#else
#define SUB_GROUPS(size)
#endif
#if defined(__has_builtin)
#if __has_builtin(__builtin_nontemporal_store)
#define STREAM(value, type, place) __builtin_nontemporal_store(value, (__global type *)(place))
#endif
#endif
#ifndef STREAM
#define STREAM(value, type, place) *(__global type *)(place) = value
#endif
"""

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
_NARROW = frozenset({HALF, BFLOAT})
#: Integers as wide as what they choose, by bytes.
_MASKS = {1: "char", 2: "short", 8: "long"}


class _SourceModule:
    """What stands for a module: the target; functions that are called are C's own."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.symbols: dict[str, int] = {}

    def declare(self, name: str, result: str, parameters: Sequence[str]) -> None:
        """Nothing to do."""


class Kernel(WorkGroupInstructions):
    """A kernel being built; ``buffers`` are its parameters: addresses of device memory."""

    has_vector_library = True
    widest_vector = 16

    def __init__(self, name: str, target: Target, buffers: int) -> None:
        self.kernel_name = name
        self.module: Any = _SourceModule(target)
        self._lines: list[str] = []
        self._entry_allocas: list[str] = []
        self._next = 0
        self._widened: dict[str, Value] = {}
        self._sources: dict[str, Value] = {}
        self._spaces: dict[str, str] = {}
        #: Sizes that are known at run time, each a parameter after the buffers.
        self.sizes: dict[SymExpr, Value] = {}
        self._depth = 1
        self._exchange = {}
        self._tables: dict[str, Value] = {}
        self._has_vectors = self._has_sub_groups = False
        self.buffers = [self._pointer(f"b{i} + o{i}", "__global") for i in range(buffers)]
        self._count = buffers

    def text(self) -> str:
        """The kernel's definition, for a source that begins with `HEAD`."""
        buffers = [f"__global char *restrict b{i}, long o{i}" for i in range(self._count)]
        parameters = ", ".join([*buffers, *(f"long {size.name}" for size in self.sizes.values())])
        apart = "ITEMS_APART " if self._has_vectors else ""
        apart = f"SUB_GROUPS({self.module.target.sub_group}) " if self._has_sub_groups else apart
        head = f"{apart}__kernel void {self.kernel_name}({parameters})\n{{"
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
        name = self.name()
        self._has_vectors |= lanes_of(type) > 1
        self.emit(f"const {_type(type)} {name} = {expression};")
        return Value(type, name)

    def _pointer(self, expression: str, space: str) -> Value:
        name = self.name("p")
        self.emit(f"{space} char *{name} = {expression};")
        self._spaces[name] = space
        return Value(PTR, name)

    def c(self, value: Value) -> str:
        """An operand: the name of a constant of C, or a literal."""
        if value.name[:1].isalpha() and value.name not in ("true", "false") and not value.name.startswith("splat "):
            return value.name
        return c_constant(value)

    def size(self, formula: SymExpr) -> Value:
        """A size that is known at run time."""
        return self.sizes.setdefault(formula, Value(I64, f"size{len(self.sizes)}"))

    def splat(self, x: Value, lanes: int) -> Value:
        """See :class:`Instructions`."""
        if lanes == 1:
            return x
        type = vector(x.type, lanes)
        return self.op(type, f"({_type(type)})({'-' if x.type == I1 else ''}{self.c(x)})")

    # -- work-items

    def global_id(self) -> Value:
        """See :class:`WorkGroupInstructions`."""
        return self.op(I64, "(long)get_global_id(0)")

    def local_id(self) -> Value:
        """See :class:`WorkGroupInstructions`."""
        return self.op(I64, "(long)get_local_id(0)")

    def group_id(self) -> Value:
        """See :class:`WorkGroupInstructions`."""
        return self.op(I64, "(long)get_group_id(0)")

    def barrier(self, memory: str = "LOCAL") -> None:
        """See :class:`WorkGroupInstructions`."""
        self.emit(f"barrier(CLK_{memory}_MEM_FENCE);")

    def local_memory(self, element: str, count: int) -> Value:
        """See :class:`WorkGroupInstructions`."""
        name = self.name("local")
        self._entry_allocas.append(f"    __local {'char' if element == I1 else C_TYPES[element]} {name}[{count}];")
        return self._pointer(f"(__local char *){name}", "__local")

    def constant_table(self, name: str, element: str, values: Sequence[int]) -> Value:
        """See :class:`Instructions`."""
        if name not in self._tables:
            items = ", ".join(self.c(self.constant(element, value)) for value in values)
            self._entry_allocas.append(f"    __constant {_type(element)} {name}[{len(values)}] = {{{items}}};")
            self._entry_allocas.append(f"    __constant char *{name}_at = (__constant char *){name};")
            self._tables[name] = Value(PTR, f"{name}_at")
            self._spaces[f"{name}_at"] = "__constant"
        return self._tables[name]

    def sub_group_shuffle(self, x: Value, item: Index) -> Value:
        """See :class:`WorkGroupInstructions`."""
        if not self.module.target.shuffles:
            return super().sub_group_shuffle(x, item)
        self._has_sub_groups = True
        place = self.c(self.index(item))
        lanes = [f"sub_group_shuffle({self._lane(x, i)}, (uint){place})" for i in range(lanes_of(x.type))]
        return self._collect_lanes(x.type, lanes)

    def alloca(self, element: str, count: int, align: int = 64) -> Value:
        """Memory of a work-item."""
        name = self.name("own")
        self._entry_allocas.append(f"    {_type(element)} {name}[{count}];")
        return self._pointer(f"(__private char *){name}", "__private")

    # -- arithmetic

    def binary(self, opcode: str, x: Any, y: Any, flags: str = "") -> Value:
        """See :class:`Instructions`."""
        x, y = self._pair(x, y)
        a, b, type = self.c(x), self.c(y), x.type
        if opcode in _UNSIGNED or opcode in _WRAPPING:
            symbol = _UNSIGNED.get(opcode) or _BINARY[opcode]
            return self.op(type, _as_signed(type, f"{_as_unsigned(type, a)} {symbol} {_as_unsigned(type, b)}"))
        if opcode not in _BINARY:
            raise UnprintableError(f"no OpenCL C for {opcode}")
        expression = f"{a} {_BINARY[opcode]} {b}"
        return self.op(type, f"({expression}) & 1" if type == I1 else expression)

    def fneg(self, x: Value) -> Value:
        """See :class:`Instructions`."""
        return self.op(x.type, f"-{self.c(x)}")

    def icmp(self, predicate: str, x: Any, y: Any) -> Value:
        """See :class:`Instructions`."""
        x, y = self._pair(x, y)
        a, b = self.c(x), self.c(y)
        if predicate[0] == "u" and element_of(x.type) != I1:
            a, b = _as_unsigned(x.type, a), _as_unsigned(x.type, b)
        symbol = _COMPARE[predicate if predicate in ("eq", "ne") else predicate[1:]]
        return self._comparison_result(f"{a} {symbol} {b}", x.type)

    def fcmp(self, predicate: str, x: Any, y: Any) -> Value:
        """See :class:`Instructions`."""
        x, y = self._pair(x, y)
        a, b = self.c(x), self.c(y)
        wide = lanes_of(x.type) > 1
        either, both, negation = ("|", "&", "~") if wide else ("||", "&&", "!")
        unordered = f"({a} != {a} {either} {b} != {b})"
        if predicate in ("ord", "uno"):
            return self._comparison_result(unordered if predicate == "uno" else negation + unordered, x.type)
        compared = f"({a} {_COMPARE[predicate[1:]]} {b})"
        if predicate == "one":
            compared = f"{compared} {both} {negation}{unordered}"
        elif predicate[0] == "u" and predicate != "une":
            compared = f"{compared} {either} {unordered}"
        return self._comparison_result(compared, x.type)

    def _comparison_result(self, expression: str, type: str) -> Value:
        """A truth value; comparisons of vectors give integers as wide as what is compared."""
        lanes = lanes_of(type)
        narrow = lanes > 1 and bytes_of(type) not in (0, 4) and element_of(type) != I1
        return self.op(vector(I1, lanes), f"convert_int{lanes}({expression})" if narrow else expression)

    def select(self, condition: Value, x: Any, y: Any) -> Value:
        """See :class:`Instructions`."""
        x, y = self._pair(x, y)
        chosen, a, b = self.c(condition), self.c(x), self.c(y)
        if lanes_of(condition.type) == 1:
            return self.op(x.type, f"{chosen} ? {a} : {b}")
        if element_of(x.type) != I1 and bytes_of(x.type) != 4:
            chosen = f"convert_{_MASKS[bytes_of(x.type)]}{lanes_of(x.type)}({chosen})"
        return self.op(x.type, f"select({b}, {a}, {chosen})")

    def fma(self, x: Any, y: Any, z: Any) -> Value:
        """See :class:`Instructions`; always with one rounding."""
        like = next(v for v in (x, y, z) if isinstance(v, Value))
        a, b, c = (self.c(v if isinstance(v, Value) else self.number_in(like.type, v)) for v in (x, y, z))
        return self.op(like.type, f"fma({a}, {b}, {c})")

    def convert(self, opcode: str, x: Value, element: str) -> Value:
        """See :class:`Instructions`."""
        lanes, source = lanes_of(x.type), element_of(x.type)
        if source == element:
            return x
        if {source, element} & _NARROW:
            raise UnprintableError(f"no OpenCL C from {source} to {element}")
        type, a = vector(element, lanes), self.c(x)
        if source == I1:  # 0 and 1, or of vectors 0 and -1
            a = f"-({a})" if (opcode == "sext") == (lanes == 1) else a
        elif opcode in ("zext", "uitofp"):
            a = _as_unsigned(x.type, a)
        if element == I1:
            return self.op(
                type, f"(int)({a} & 1)" if lanes == 1 else f"-convert_int{lanes}({a} & ({_type(x.type)})(1))"
            )
        return self.op(type, f"({_type(type)}){a}" if lanes == 1 else f"convert_{_type(type)}({a})")

    def bitcast(self, x: Value, type: str) -> Value:
        """See :class:`Instructions`."""
        return x if x.type == type else self.op(type, f"as_{_type(type)}({self.c(x)})")

    # -- vectors

    def extract(self, x: Value, lane: Index) -> Value:
        """See :class:`Instructions`; of a lane that is known."""
        if lanes_of(x.type) == 1:
            return x
        sign = "-" if element_of(x.type) == I1 else ""
        return self.op(element_of(x.type), f"{sign}{self._lane(x, int(lane))}")  # type: ignore[arg-type]

    def shuffle(self, x: Value, y: Value | None, picks: Sequence[int]) -> Value:
        """See :class:`Instructions`."""
        type, lanes = vector(element_of(x.type), len(picks)), lanes_of(x.type)
        parts = [self._lane(x if p < lanes or y is None else y, max(p, 0) % lanes) for p in picks]
        return self.op(type, parts[0] if len(parts) == 1 else f"({_type(type)})({', '.join(parts)})")

    def _lane(self, x: Value, lane: int) -> str:
        return self.c(x) if lanes_of(x.type) == 1 else f"{self.c(x)}.s{lane:x}"

    def _collect_lanes(self, type: str, lanes: Sequence[str]) -> Value:
        return self.op(type, lanes[0] if len(lanes) == 1 else f"({_type(type)})({', '.join(lanes)})")

    # -- memory

    def gep(self, pointer: Value, index: Index, element: str = FLOAT) -> Value:
        """See :class:`Instructions`."""
        if isinstance(index, int) and index == 0:
            return pointer
        return self._pointer(
            f"{pointer.name} + {self.c(self.index(index))} * {bytes_of(element)}", self._spaces[pointer.name]
        )

    def _elements(self, pointer: Value, type: str) -> str:
        """The address as one of elements."""
        memory = "char" if element_of(type) == I1 else _type(element_of(type))
        return f"({self._spaces[pointer.name]} {memory} *){pointer.name}"

    def load(self, type: str, pointer: Value, align: int = 0, nontemporal: bool = False) -> Value:
        """See :class:`Instructions`."""
        place, lanes = self._elements(pointer, type), lanes_of(type)
        return self.op(type, f"*{place}" if lanes == 1 else f"vload{lanes}(0, {place})")

    def store(self, value: Value, pointer: Value, align: int = 0, nontemporal: bool = False) -> None:
        """See :class:`Instructions`."""
        place, lanes = self._elements(pointer, value.type), lanes_of(value.type)
        text = self.c(value)
        if nontemporal and self._spaces[pointer.name] == "__global":
            self.emit(f"STREAM({text}, {_type(value.type)}, {pointer.name});")
            return
        self.emit(f"*{place} = {text};" if lanes == 1 else f"vstore{lanes}({text}, 0, {place});")

    def masked_load(self, type: str, pointer: Value, mask: Value | None, other: Operand = 0) -> Value:
        """See :class:`Instructions`."""
        if mask is None:
            return self.load(type, pointer)
        return self._read(type, pointer, [str(i) for i in range(lanes_of(type))], mask, other)

    def gather(self, type: str, base: Value, indices: Value, mask: Value | None = None, other: Operand = 0) -> Value:
        """See :class:`Instructions`."""
        return self._read(type, base, [self._lane(indices, i) for i in range(lanes_of(type))], mask, other)

    def _read(self, type: str, base: Value, places: Sequence[str], mask: Value | None, other: Operand) -> Value:
        """Elements at places, lane by lane; ``other`` where the mask does not hold."""
        memory = f"({self._elements(base, type)})"
        parts = [f"{memory}[{place}]" for place in places]
        if mask is not None:
            rest = other if isinstance(other, Value) else self.number_in(type, other)
            parts = [f"{self._lane(mask, i)} ? {p} : {self._lane(rest, i)}" for i, p in enumerate(parts)]
        return self._collect_lanes(type, parts)

    def masked_store(self, value: Value, pointer: Value, mask: Value | None) -> None:
        """See :class:`Instructions`."""
        if mask is None:
            self.store(value, pointer)
        else:
            self._write(value, pointer, [str(i) for i in range(lanes_of(value.type))], mask)

    def scatter(self, value: Value, base: Value, indices: Value, mask: Value | None = None) -> None:
        """See :class:`Instructions`."""
        self._write(value, base, [self._lane(indices, i) for i in range(lanes_of(value.type))], mask)

    def _write(self, value: Value, base: Value, places: Sequence[str], mask: Value | None) -> None:
        memory = f"({self._elements(base, value.type)})"
        for i, place in enumerate(places):
            condition = "" if mask is None else f"if ({self._lane(mask, i)}) "
            self.emit(f"{condition}{memory}[{place}] = {self._lane(value, i)};")

    def prefetch(self, pointer: Value, write: bool = False, level: int = 3) -> None:
        """Nothing: devices have caches of many kinds."""

    # -- calls

    def intrinsic(
        self, name: str, result: str, *operands: Value, overloads: Sequence[str] | None = None, flags: str = ""
    ) -> Value:
        """See :class:`Instructions`: those that are functions of OpenCL C."""
        short = name.removeprefix("llvm.")
        if short == "fptosi.sat":
            return self.op(result, f"convert_{_type(result)}_sat({self.c(operands[0])})")
        if short == "vector.reduce.or":
            (x,) = operands
            return x if lanes_of(x.type) == 1 else self.op(result, f"any({self.c(x)})")
        if short not in _FUNCTIONS:
            raise UnprintableError(f"no OpenCL C for {name}")
        given = [self.c(x) for x in operands]
        if short in ("umin", "umax"):
            unsigned = ", ".join(_as_unsigned(result, text) for text in given)
            return self.op(result, _as_signed(result, f"{_FUNCTIONS[short]}({unsigned})"))
        return self.op(result, f"{_FUNCTIONS[short]}({', '.join(given)})")

    def call(self, name: str, result: str, *operands: Value, flags: str = "") -> Value:
        """The remainder, which the C library has under two names, and OpenCL C under one."""
        if name not in ("fmod", "fmodf"):
            raise UnprintableError(f"no OpenCL C for calls of {name}")
        return self.op(result, f"fmod({', '.join(map(self.c, operands))})")

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
        self.emit(f"{_type(value.type)} {name} = {self.c(value)};")
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
    def if_then(self, condition: Value) -> Iterator[None]:
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
        self._lines[at:at] = ["    " * self._depth + f"{_type(v.type)} {n};" for n, v in zip(names, made, strict=True)]
        return [self.op(v.type, n) for n, v in zip(names, made, strict=True)]


def _type(type: str) -> str:
    if element_of(type) not in C_TYPES:
        raise UnprintableError(f"no OpenCL C for values of type {type}")
    return c_type(type)


def _as_signed(type: str, expression: str) -> str:
    """An expression of unsigned integers as the signed type of the same bits."""
    return f"({_type(type)})({expression})" if lanes_of(type) == 1 else f"as_{_type(type)}({expression})"


def _as_unsigned(type: str, operand: str) -> str:
    """An operand of a signed type as unsigned integers of the same bits."""
    return f"(u{_type(type)}){operand}" if lanes_of(type) == 1 else f"as_u{_type(type)}({operand})"
