"""Kernels as text of LLVM for its SPIR-V generator: the instructions of `printers.llvm` for work-items.

    kernel = SpirvKernel("scale", SimtTarget(), buffers=1)
    ...  # as `printers.opencl.Kernel`, whose kernels take the same arguments
    module = spirv_module(kernel.text())  # which `runtime.spirv` makes SPIR-V of

Work-items, barriers and shuffles are functions of OpenCL C by their mangled names, which LLVM knows (its user guide for
the SPIR-V target). Address spaces are numbers: 0 a work-item's, 1 the device's, 2 constants, 3 a work-group's.
Narrow floats are their bits. What LLVM is not
known to have SPIR-V for has no text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from argosy_cinn.printers.arithmetic import NARROW_CONSTANT, as_integer
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import (
    BFLOAT,
    DOUBLE,
    FLOAT,
    HALF,
    I1,
    I8,
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
    lanes_of,
    vector,
)
from argosy_cinn.printers.work_groups import UnprintableError, WorkGroupInstructions
from argosy_cinn.target import Target
from argosy_pir.dims import SymExpr

__all__ = ["SpirvKernel", "spirv_module"]

#: What code is generated for: the first version that has shuffles. A module ends with the mark of stores past caches.
_HEAD = 'target triple = "spirv64v1.3-unknown-unknown"'
_TAIL = "!0 = !{i32 1}"
#: Element types as names of functions have them.
_LETTERS = {I8: "c", I16: "s", I32: "i", I64: "l", FLOAT: "f", DOUBLE: "d"}
_ELEMENTS = frozenset({*_LETTERS, I1, HALF, BFLOAT})
_LANES = frozenset({1, 2, 4, 8, 16})
_NARROW = frozenset({HALF, BFLOAT})
_NARROW_TYPE = re.compile(r"\b(half|bfloat)\b")
_INTRINSICS = frozenset(
    "sqrt fabs floor ceil trunc roundeven fma copysign maxnum minnum smin smax umin umax fptosi.sat".split()
)
_FENCES = {"LOCAL": 1, "GLOBAL": 2}


def spirv_module(text: str) -> str:
    """The module of the kernels that a text has, one after the other, each with its declarations."""
    lines = text.splitlines()
    declared = dict.fromkeys(line for line in lines if line.startswith("declare "))
    others = [line for line in lines if not line.startswith("declare ")]
    return "\n".join([_HEAD, *declared, *others, _TAIL]) + "\n"


class _KernelModule:
    """What stands for a module: the target, and declarations of what a kernel calls."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.symbols: dict[str, int] = {}
        self.declared: dict[str, None] = {}

    def declare(self, name: str, result: str, parameters: Sequence[str]) -> None:
        """Note a function that is called."""
        self.declared[f"declare {result} @{name}({', '.join(parameters)})"] = None


class SpirvKernel(Function, WorkGroupInstructions):
    """A kernel being built; ``buffers`` are its parameters: addresses of device memory."""

    has_vector_library = True
    widest_vector = 16

    def __init__(self, name: str, target: Target, buffers: int) -> None:
        module: Any = _KernelModule(target)
        Function.__init__(self, module, name, (), VOID, "", "")
        #: Sizes that are known at run time, each a parameter after the buffers.
        self.sizes: dict[SymExpr, Value] = {}
        self._exchange = {}
        self._globals: dict[str, str] = {}
        self._has_sub_groups, self._most_lanes = False, 1
        self._count = buffers
        self.buffers = [
            self.op("ptr addrspace(1)", f"getelementptr i8, ptr addrspace(1) %b{i}, i64 %o{i}") for i in range(buffers)
        ]

    def text(self, internal: str = "") -> str:
        """Declarations, memory of work-groups, tables and the kernel's definition. Kernels with vectors give a hint of
        these, so that compilers leave them whole: Intel's would make vectors of such items, 20 times slower."""
        self.finish()
        buffers = [f"ptr addrspace(1) noalias %b{i}, i64 %o{i}" for i in range(self._count)]
        parameters = ", ".join([*buffers, *map(str, self.sizes.values())])
        size = f"!{{i32 {self.module.target.sub_group}}}"
        groups = f" !intel_reqd_sub_group_size {size}" if self._has_sub_groups else ""
        vectors = f" !vec_type_hint !{{<{self._most_lanes} x float> poison, i32 0}}" if self._most_lanes > 1 else ""
        head = f"define spir_kernel void @{self.function_name}({parameters}) nounwind{groups or vectors} {{"
        declared: dict[str, None] = self.module.declared
        body = [head, "entry:", *self._entry_allocas, *self._lines, "}"]
        text = "\n".join([*declared, *self._globals.values(), *body]) + "\n"
        return _NARROW_TYPE.sub(I16, NARROW_CONSTANT.sub(as_integer, text))

    # -- plumbing

    def op(self, type: str, expression: str) -> Value:
        """See :class:`Instructions`. Raises UnprintableError for types that have no SPIR-V here."""
        if not type.startswith(PTR) and (element_of(type) not in _ELEMENTS or lanes_of(type) not in _LANES):
            raise UnprintableError(f"no SPIR-V for values of type {type}")
        self._most_lanes = max(self._most_lanes, lanes_of(type))
        return super().op(type, expression)

    def size(self, formula: SymExpr) -> Value:
        """A size that is known at run time."""
        return self.sizes.setdefault(formula, Value(I64, f"%size{len(self.sizes)}"))

    # -- work-items

    def global_id(self) -> Value:
        """See :class:`WorkGroupInstructions`."""
        return self.call("_Z13get_global_idj", I64, constant(I32, 0))

    def local_id(self) -> Value:
        """See :class:`WorkGroupInstructions`."""
        return self.call("_Z12get_local_idj", I64, constant(I32, 0))

    def group_id(self) -> Value:
        """See :class:`WorkGroupInstructions`."""
        return self.call("_Z12get_group_idj", I64, constant(I32, 0))

    def barrier(self, memory: str = "LOCAL") -> None:
        """See :class:`WorkGroupInstructions`."""
        self.call("_Z7barrierj", VOID, constant(I32, _FENCES[memory]))

    def local_memory(self, element: str, count: int) -> Value:
        """See :class:`WorkGroupInstructions`."""
        return self._global("local", 3, f"internal addrspace(3) global [{count} x {_in_memory(element)}] poison")

    def constant_table(self, name: str, element: str, values: Sequence[int]) -> Value:
        """See :class:`Instructions`."""
        items = ", ".join(str(self.constant(element, value)) for value in values)
        return self._global(name, 2, f"internal addrspace(2) constant [{len(values)} x {element}] [{items}]")

    def _global(self, hint: str, space: int, definition: str) -> Value:
        """The address of a variable of the module; one for equal tables, one each for memory."""
        name = f"@{self.function_name}.{self.name(hint) if space == 3 else hint}"
        self._globals[name] = f"{name} = {definition}, align 16"
        return Value(f"ptr addrspace({space})", name)

    def alloca(self, element: str, count: int, align: int = 64) -> Value:
        """Memory of a work-item."""
        name = "%" + self.name("own")
        self._entry_allocas.append(f"  {name} = alloca [{count} x {_in_memory(element)}], align 16")
        return Value(PTR, name)

    def sub_group_shuffle(self, x: Value, item: Index) -> Value:
        """See :class:`WorkGroupInstructions`."""
        if not self.module.target.shuffles:
            return super().sub_group_shuffle(x, item)
        self._has_sub_groups = True
        element, place = element_of(x.type), self.convert("trunc", self.index(item), I32)
        name = f"_Z17sub_group_shuffle{_LETTERS[element]}j"
        return self._each_lane(x.type, lambda i: self.call(name, element, self.extract(x, i), place))

    # -- calls

    def intrinsic(
        self, name: str, result: str, *operands: Value, overloads: Sequence[str] | None = None, flags: str = ""
    ) -> Value:
        """See :class:`Instructions`: those that have SPIR-V."""
        short = name.removeprefix("llvm.")
        if short == "vector.reduce.or":
            lanes = [self.extract(operands[0], i) for i in range(lanes_of(operands[0].type))]
            while len(lanes) > 1:
                lanes = [self.binary("or", x, y) for x, y in zip(lanes[::2], lanes[1::2], strict=True)]
            return lanes[0]
        if short not in _INTRINSICS:
            raise UnprintableError(f"no SPIR-V for {name}")
        return super().intrinsic(name, result, *operands, overloads=overloads, flags=flags)

    def call(self, name: str, result: str, *operands: Value, flags: str = "") -> Value:
        """A function of OpenCL C; the remainder, which the C library has under two names, under its own."""
        if name in ("fmod", "fmodf"):
            letter, lanes = _LETTERS[element_of(result)], lanes_of(result)
            name = f"_Z4fmod{letter}{letter}" if lanes == 1 else f"_Z4fmodDv{lanes}_{letter}S_"
        if not name.startswith(("_Z", "llvm.")):
            raise UnprintableError(f"no SPIR-V for calls of {name}")
        return super().call(name, result, *operands, flags=flags)

    # -- conversions and vectors

    def convert(self, opcode: str, x: Value, element: str) -> Value:
        """See :class:`Instructions`. LLVM fails on vectors of truth values from and to elements of 64 bits."""
        source = element_of(x.type)
        if source != element and {source, element} & _NARROW:
            raise UnprintableError(f"no SPIR-V from {source} to {element}")
        if source == I1 and opcode == "uitofp":
            x = super().convert("zext", x, I32)
        elif element == I1 and opcode == "trunc":
            return self.icmp("ne", self.binary("and", x, 1), 0)
        return super().convert(opcode, x, element)

    def bitcast(self, x: Value, type: str) -> Value:
        """See :class:`Instructions`; narrow floats are their bits already."""
        same = _NARROW_TYPE.sub(I16, x.type) == _NARROW_TYPE.sub(I16, type)
        return Value(type, x.name) if same else super().bitcast(x, type)

    def shuffle(self, x: Value, y: Value | None, picks: Sequence[int]) -> Value:
        """See :class:`Instructions`."""
        if len(picks) > 1 and lanes_of(x.type) > 1:
            return super().shuffle(x, y, picks)
        lanes = lanes_of(x.type)
        parts = [self.extract(x if p < lanes or y is None else y, max(p, 0) % lanes) for p in picks]
        return self._each_lane(vector(element_of(x.type), len(picks)), parts.__getitem__)

    def _each_lane(self, type: str, make: Callable[[int], Value]) -> Value:
        """A vector of lanes that are made one by one, or the number that is made."""
        if lanes_of(type) == 1:
            return make(0)
        made = Value(type, "poison")
        for i in range(lanes_of(type)):
            made = self.insert(made, make(i), i)
        return made

    # -- memory

    def gep(self, pointer: Value, index: Index, element: str = FLOAT) -> Value:
        """See :class:`Instructions`."""
        if isinstance(index, int) and index == 0:
            return pointer
        return self.op(pointer.type, f"getelementptr {_in_memory(element)}, {pointer}, {self.index(index)}")

    def load(self, type: str, pointer: Value, align: int = 0, nontemporal: bool = False) -> Value:
        """See :class:`Instructions`."""
        if element_of(type) == I1:
            return self.icmp("ne", self.load(vector(I8, lanes_of(type)), pointer, align, nontemporal), 0)
        return super().load(type, pointer, align, nontemporal)

    def store(self, value: Value, pointer: Value, align: int = 0, nontemporal: bool = False) -> None:
        """See :class:`Instructions`."""
        value = self.convert("zext", value, I8) if element_of(value.type) == I1 else value
        super().store(value, pointer, align, nontemporal)

    def masked_load(self, type: str, pointer: Value, mask: Value | None, other: Operand = 0) -> Value:
        """See :class:`Instructions`."""
        return self.load(type, pointer) if mask is None else self._read(type, pointer, range(16), mask, other)

    def gather(self, type: str, base: Value, indices: Value, mask: Value | None = None, other: Operand = 0) -> Value:
        """See :class:`Instructions`."""
        return self._read(type, base, [self.extract(indices, i) for i in range(lanes_of(type))], mask, other)

    def _read(self, type: str, base: Value, places: Sequence[Index], mask: Value | None, other: Operand) -> Value:
        """Elements at places, lane by lane; ``other`` where the mask does not hold, and nothing is read."""
        element, rest = element_of(type), other if isinstance(other, Value) else self.number_in(type, other)

        def read(i: int) -> Value:
            return self.load(element, self.gep(base, places[i], element))

        if mask is None:
            return self._each_lane(type, read)
        lanes = mask

        def guarded(i: int) -> Value:
            otherwise = self.extract(rest, i)
            return self.either(self.extract(lanes, i), lambda: [read(i)], lambda: [otherwise])[0]

        return self._each_lane(type, guarded)

    def masked_store(self, value: Value, pointer: Value, mask: Value | None) -> None:
        """See :class:`Instructions`."""
        if mask is None:
            self.store(value, pointer)
        else:
            self._write(value, pointer, range(16), mask)

    def scatter(self, value: Value, base: Value, indices: Value, mask: Value | None = None) -> None:
        """See :class:`Instructions`."""
        self._write(value, base, [self.extract(indices, i) for i in range(lanes_of(value.type))], mask)

    def _write(self, value: Value, base: Value, places: Sequence[Index], mask: Value | None) -> None:
        element = element_of(value.type)

        def write(i: int) -> None:
            self.store(self.extract(value, i), self.gep(base, places[i], element))

        for i in range(lanes_of(value.type)):
            if mask is None:
                write(i)
            else:
                with self.if_then(self.extract(mask, i)):
                    write(i)

    def prefetch(self, pointer: Value, write: bool = False, level: int = 3) -> None:
        """Nothing: devices have caches of many kinds."""


def _in_memory(element: str) -> str:
    return I8 if element == I1 else element
