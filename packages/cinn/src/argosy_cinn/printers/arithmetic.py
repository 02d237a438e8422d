"""Arithmetic of scalars and vectors: the part of a kernel builder's instructions that touches no memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from argosy_cinn.printers import float16, rounding
from argosy_cinn.printers.types import (
    BFLOAT,
    FLOAT,
    HALF,
    I1,
    I16,
    I32,
    I64,
    PTR,
    VOID,
    Index,
    Operand,
    Value,
    constant,
    element_of,
    is_float,
    lanes_of,
    mangle,
    vector,
)
from argosy_pir.dims import SymExpr

if TYPE_CHECKING:
    from argosy_cinn.printers.llvm import Module


#: A number of 16 bits in the text of a constant, with its type where it is part of a vector.
NARROW_CONSTANT = re.compile(r"(half |bfloat |)0x[HR]([0-9A-F]{4})")


def as_integer(found: re.Match[str]) -> str:
    bits = int(found[2], 16)
    return f"{I16 + ' ' if found[1] else ''}{bits - (1 << 16) if bits >> 15 else bits}"


class Arithmetic:
    """Arithmetic, conversions, intrinsics and calls, with what writes them down."""

    module: Module
    _lines: list[str]
    _entry_allocas: list[str]
    _next: int
    _widened: dict[str, Value]
    _sources: dict[str, Value]
    #: Whether functions of the C library take vectors.
    has_vector_library = False

    # -- control flow, which every printer has in its own way

    def if_then(self, condition: Value) -> AbstractContextManager[None]:
        """Run the body only where the scalar condition holds."""
        raise NotImplementedError

    def either(
        self, condition: Value, then: Callable[[], Sequence[Value]], otherwise: Callable[[], Sequence[Value]]
    ) -> list[Value]:
        """Build both ways of a scalar condition; each yields as many values of the same types, which are merged."""
        raise NotImplementedError

    def loop(
        self, start: Index, stop: Index, step: Index = 1, carry: Sequence[Value] = ()
    ) -> AbstractContextManager[Any]:
        """``for (i = start; i < stop; i += step)`` with carried values."""
        raise NotImplementedError

    # -- plumbing

    def name(self, hint: str = "v") -> str:
        """A name that is unique in this function."""
        self._next += 1
        return f"{hint}{self._next}"

    def emit(self, line: str) -> None:
        """Append one instruction that has no result."""
        self._lines.append("  " + line)

    def op(self, type: str, expression: str) -> Value:
        """Append ``%new = expression`` and return the value of the given type."""
        self._next += 1
        name = f"%v{self._next}"
        self._lines.append(f"  {name} = {expression}")
        return Value(type, name)

    def comment(self, text: str) -> None:
        """A comment line, for example the user's source location; newlines are flattened."""
        self._lines.append("  ; " + " ".join(text.split()))

    def constant(self, type: str, value: int | float | bool) -> Value:
        """A constant, splatted for vector types."""
        return constant(type, value)

    def constant_table(self, name: str, element: str, values: Sequence[int]) -> Value:
        """The address of a read-only table of integers, of which there is one for a name."""
        raise NotImplementedError

    def index(self, value: Index) -> Value:
        """An index as an ``i64`` value."""
        return constant(I64, value) if isinstance(value, int) else self.number(value)

    def number(self, value: Any) -> Any:
        """The value of a size's formula; anything else as it is."""
        return self.size(value) if isinstance(value, SymExpr) else value

    def size(self, formula: SymExpr) -> Value:
        """A size that is known at run time."""
        raise NotImplementedError

    def splat(self, x: Value, lanes: int) -> Value:
        """Every lane equal to the scalar ``x``."""
        if lanes == 1:
            return x
        type = vector(x.type, lanes)
        first = self.op(type, f"insertelement {type} poison, {x}, i32 0")
        return self.op(type, f"shufflevector {first}, {type} poison, <{lanes} x i32> zeroinitializer")

    def number_in(self, type: str, value: int | float | bool | SymExpr) -> Value:
        """A number, or the value of a size's formula, in a type; splatted for vectors."""
        if not isinstance(value, SymExpr):
            return constant(type, value)
        scalar, element = self.size(value), element_of(type)
        return self.splat(scalar if element == I64 else self.convert("trunc", scalar, element), lanes_of(type))

    # -- arithmetic

    def binary(self, opcode: str, x: Operand, y: Operand, flags: str = "") -> Value:
        """Any two-operand instruction (``"fadd"``, ``"and"``...); ``flags`` as LLVM writes them
        (``"nsz"``).
        """
        x, y = self._pair(x, y)
        return self.op(x.type, f"{opcode} {flags + ' ' if flags else ''}{x}, {y.name}")

    def _pair(self, x: Operand, y: Operand) -> tuple[Value, Value]:
        if isinstance(x, Value):
            return x, y if isinstance(y, Value) else self.number_in(x.type, y)
        if isinstance(y, Value):
            return self.number_in(y.type, x), y
        raise TypeError(f"one operand must be a value, not two numbers: {x!r}, {y!r}")

    def fadd(self, x: Operand, y: Operand) -> Value:
        """``x + y`` of floats."""
        return self.binary("fadd", x, y)

    def fsub(self, x: Operand, y: Operand) -> Value:
        """``x - y`` of floats."""
        return self.binary("fsub", x, y)

    def fmul(self, x: Operand, y: Operand) -> Value:
        """``x * y`` of floats."""
        return self.binary("fmul", x, y)

    def fdiv(self, x: Operand, y: Operand) -> Value:
        """``x / y`` of floats."""
        return self.binary("fdiv", x, y)

    def fneg(self, x: Value) -> Value:
        """``-x`` of a float."""
        return self.op(x.type, f"fneg {x}")

    def fma(self, x: Operand, y: Operand, z: Operand) -> Value:
        """``x * y + z``, with one rounding where the target has such an instruction, with two where it would take a
        call of the C library for each lane. What needs one rounding asks ``module.target.has_fma``.
        """
        like = next(v for v in (x, y, z) if isinstance(v, Value))
        x, y, z = (v if isinstance(v, Value) else self.number_in(like.type, v) for v in (x, y, z))
        if not self.module.target.has_fma:
            return self.fadd(self.fmul(x, y), z)
        return self.intrinsic("llvm.fma", like.type, x, y, z)

    def add(self, x: Index, y: Index) -> Index:
        """Integer ``x + y``; folds Python integers."""
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        x, y = self.number(x), self.number(y)
        if x == 0 or y == 0:
            return y if x == 0 else x
        return self.binary("add", x, y)

    def sub(self, x: Index, y: Index) -> Index:
        """Integer ``x - y``; folds Python integers."""
        if isinstance(x, int) and isinstance(y, int):
            return x - y
        x, y = self.number(x), self.number(y)
        return x if y == 0 else self.binary("sub", x, y)

    def mul(self, x: Index, y: Index) -> Index:
        """Integer ``x * y``; folds Python integers, 0 and 1."""
        if isinstance(x, int) and isinstance(y, int):
            return x * y
        x, y = self.number(x), self.number(y)
        if x == 0 or y == 0:
            return 0
        if x == 1 or y == 1:
            return y if x == 1 else x
        return self.binary("mul", x, y)

    def div(self, x: Index, y: Index) -> Index:
        """Unsigned quotient of indices (operands are never negative); folds Python integers."""
        if isinstance(x, int) and isinstance(y, int):
            return x // y
        x, y = self.number(x), self.number(y)
        return x if y == 1 else self.binary("udiv", x, y)

    def rem(self, x: Index, y: Index) -> Index:
        """Unsigned remainder of indices; folds Python integers."""
        if isinstance(x, int) and isinstance(y, int):
            return x % y
        x, y = self.number(x), self.number(y)
        return 0 if y == 1 else self.binary("urem", x, y)

    def minimum(self, x: Index, y: Index) -> Index:
        """The smaller signed index; folds Python integers."""
        if isinstance(x, int) and isinstance(y, int):
            return min(x, y)
        x, y = self.number(x), self.number(y)
        a, b = self._pair(x, y)
        return self.intrinsic("llvm.smin", a.type, a, b)

    def maximum(self, x: Index, y: Index) -> Index:
        """The larger signed index; folds Python integers."""
        if isinstance(x, int) and isinstance(y, int):
            return max(x, y)
        x, y = self.number(x), self.number(y)
        a, b = self._pair(x, y)
        return self.intrinsic("llvm.smax", a.type, a, b)

    def ceil_div(self, x: Index, y: int) -> Index:
        """``ceil(x / y)`` of an index that is not negative."""
        return self.div(self.add(x, y - 1), y)

    def icmp(self, predicate: str, x: Operand, y: Operand) -> Value:
        """Integer comparison (``eq ne slt sle sgt sge ult ule ugt uge``)."""
        x, y = self._pair(x, y)
        return self.op(vector(I1, lanes_of(x.type)), f"icmp {predicate} {x}, {y.name}")

    def fcmp(self, predicate: str, x: Operand, y: Operand) -> Value:
        """Float comparison (``oeq une olt ole ogt oge ord uno``...)."""
        x, y = self._pair(x, y)
        return self.op(vector(I1, lanes_of(x.type)), f"fcmp {predicate} {x}, {y.name}")

    def select(self, condition: Value, x: Operand, y: Operand) -> Value:
        """``condition ? x : y``; a scalar condition chooses whole vectors."""
        x, y = self._pair(x, y)
        if element_of(x.type) == BFLOAT and lanes_of(x.type) > 1:  # LLVM for Zen 4 fails on some of them
            return self.bitcast(self.select(condition, self._bits(x), self._bits(y)), x.type)
        return self.op(x.type, f"select {condition}, {x}, {y}")

    # -- conversions

    def convert(self, opcode: str, x: Value, element: str) -> Value:
        """A conversion instruction (``fpext sitofp zext trunc bitcast``...) to an element type, lane
        by lane.
        """
        type = PTR if element == PTR else vector(element, lanes_of(x.type))
        return x if type == x.type else self.op(type, f"{opcode} {x} to {type}")

    def bitcast(self, x: Value, type: str) -> Value:
        """The same bits as another type of equal size."""
        if x.type == type:
            return x
        if x.name in self._sources and self._sources[x.name].type == type:
            return self._sources[x.name]
        made = self.op(type, f"bitcast {x} to {type}")
        self._sources[made.name] = x
        return made

    def _bits(self, x: Value) -> Value:
        """A vector of 16-bit floats as integers: masked moves of those exist on every target."""
        if element_of(x.type) not in (BFLOAT, HALF):
            return x
        integers = x.type.replace(element_of(x.type), I16)
        if x.name.startswith("%"):
            return self.bitcast(x, integers)
        return Value(integers, NARROW_CONSTANT.sub(as_integer, x.name))  # LLVM would make it of a float, by calls

    def widen_float(self, x: Value, element: str) -> Value:
        """A float vector in a wider (or the same) float type; exact."""
        if element_of(x.type) == BFLOAT and element == FLOAT:  # no library call on any target
            bits = self.convert("zext", self.bitcast(x, vector(I16, lanes_of(x.type))), I32)
            wide = self.bitcast(self.binary("shl", bits, 16), vector(FLOAT, lanes_of(x.type)))
            self._widened[wide.name] = x
            return wide
        if element_of(x.type) == BFLOAT:
            return self.widen_float(self.widen_float(x, FLOAT), element)
        if element_of(x.type) == HALF and element != HALF and not self.module.target.has_float16:
            return self.convert("fpext", float16.widen(self, x), element)
        return self.convert("fpext", x, element)

    def narrow_float(self, x: Value, element: str) -> Value:
        """A float vector rounded to nearest even in a narrower (or the same) float type; NaN stays NaN. What was
        widened from bfloat16 is taken as it was."""
        if element == HALF and element_of(x.type) == FLOAT and not self.module.target.has_float16:
            return float16.round_to_halves(self, x)
        if element != BFLOAT or element_of(x.type) == BFLOAT:
            return self.convert("fptrunc", x, element)
        if x.name in self._widened:
            return self._widened[x.name]
        lanes = lanes_of(x.type)
        if element_of(x.type) != FLOAT:
            x = self.convert("fptrunc" if element_of(x.type) == "double" else "fpext", x, FLOAT)
        bits = self.bitcast(x, vector(I32, lanes))
        odd = self.binary("and", self.binary("lshr", bits, 16), 1)
        rounded = self.binary("add", self.binary("add", bits, 0x7FFF), odd)
        quiet = self.binary("or", bits, 0x400000)
        high = self.binary("lshr", self.select(self.fcmp("uno", x, x), quiet, rounded), 16)
        return self.bitcast(self.convert("trunc", high, I16), vector(BFLOAT, lanes))

    # -- calls

    def intrinsic(
        self,
        name: str,
        result: str,
        *operands: Value,
        overloads: Sequence[str] | None = None,
        flags: str = "",
    ) -> Value:
        """Call an LLVM intrinsic, declaring it once. ``overloads`` are the types in its suffix (default: the
        result).
        """
        suffix = [mangle(t) for t in (overloads if overloads is not None else (result,))]
        return self.call(".".join([name, *suffix]), result, *operands, flags=flags)

    def call(self, name: str, result: str, *operands: Value, flags: str = "") -> Value:
        """Call a function of this module, or an external one, which is then declared."""
        self.module.declare(name, result, [o.type for o in operands])
        arguments = ", ".join(map(str, operands))
        text = f"call {flags + ' ' if flags else ''}{result} @{name}({arguments})"
        if result == VOID:
            self.emit(text)
            return Value(VOID, "")
        return self.op(result, text)

    def call_pointer(self, pointer: Value, result: str, *operands: Value) -> Value:
        """Call through a function pointer."""
        text = f"call {result} {pointer.name}({', '.join(map(str, operands))})"
        if result == VOID:
            self.emit(text)
            return Value(VOID, "")
        return self.op(result, text)

    def unary(self, name: str, x: Value) -> Value:
        """A one-operand intrinsic by its short name: ``sqrt fabs floor ceil trunc roundeven``..."""
        if name in rounding.BY_ARITHMETIC and not self.module.target.has_rounding:
            return rounding.BY_ARITHMETIC[name](self, x)
        return self.intrinsic(f"llvm.{name}", x.type, x)

    def fmax(self, x: Operand, y: Operand) -> Value:
        """The larger float; a NaN operand gives the other one."""
        x, y = self._pair(x, y)
        return self.intrinsic("llvm.maxnum", x.type, x, y)

    def fmin(self, x: Operand, y: Operand) -> Value:
        """The smaller float; a NaN operand gives the other one."""
        x, y = self._pair(x, y)
        return self.intrinsic("llvm.minnum", x.type, x, y)

    def zero(self, type: str) -> Value:
        """The zero of a type."""
        return constant(type, 0.0 if is_float(type) else 0)
