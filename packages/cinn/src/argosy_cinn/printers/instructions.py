"""The instructions a kernel builder may write, one method each: the interface of all that prints kernels.

`printers.llvm.Function` prints LLVM's, `printers.opencl.Kernel` OpenCL C, `printers.spirv.SpirvKernel` what LLVM makes
SPIR-V of.

Operands are `Value`s; a Python number takes the type of the other operand (a splat for vectors). Integer
arithmetic on Python integers folds, so index expressions of static shapes vanish. No fast-math flag is
implied: ``fadd(fmul(a, b), c)`` is two roundings, and only `fma` is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

from argosy_cinn.printers.arithmetic import Arithmetic
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
    bytes_of,
    constant,
    element_of,
    lanes_of,
    vector,
    vector_constant,
)

_Result = TypeVar("_Result")


_NAMES = re.compile(r"[%\w.]+")


def _taking_turns(parts: Sequence[Sequence[str]]) -> Iterator[str]:
    """A line of each part in turn, but for those that read a name which a line makes that is still to come."""
    left = [list(reversed(part)) for part in parts]
    to_come = {name for part in parts for name in map(_made, part) if name}
    while any(left):
        ready = [lines for lines in left if lines and to_come.isdisjoint(_read(lines[-1]))]
        for lines in ready or [next(filter(None, left))]:
            line = lines.pop()
            to_come.discard(_made(line))
            yield line


def _read(line: str) -> list[str]:
    """The names that a line reads, among other words."""
    return _NAMES.findall(line.partition(" = ")[2] or line)


def _made(line: str) -> str:
    """The name that a line gives a value; empty where it gives none."""
    before, equals, _ = line.partition(" = ")
    return before.split()[-1] if equals and before.split() else ""


class Instructions(Arithmetic):
    """Straight-line code: arithmetic, memory and vectors."""

    #: Lanes of the widest vectors that there are types of.
    widest_vector = 1 << 10

    def in_turns(self, pieces: Sequence[Callable[[], _Result]]) -> list[_Result]:
        """What pieces of code yield; their instructions take turns where all are straight lines, so that one is
        computed while another waits. A line that reads what an earlier piece makes comes after that."""
        results, parts, lines = [], [], self._lines
        for build in pieces:
            self._lines = []
            results.append(build())
            parts.append(self._lines)
        self._lines = lines
        branches = any(line.endswith((":", "{")) for part in parts for line in part)
        self._lines += chain(*parts) if branches else _taking_turns(parts)
        return results

    # -- memory

    def gep(self, pointer: Value, index: Index, element: str = FLOAT) -> Value:
        """The address of ``pointer[index]`` with elements of the given type."""
        if isinstance(index, int) and index == 0:
            return pointer
        return self.op(PTR, f"getelementptr {element}, {pointer}, {self.index(index)}")

    def load(self, type: str, pointer: Value, align: int = 0, nontemporal: bool = False) -> Value:
        """Load a scalar or vector; ``align`` in bytes, by default that of one element."""
        if self._moves_as_integers(type):
            bits = self.load(type.replace(element_of(type), I16), pointer, align, nontemporal)
            return self.bitcast(bits, type)
        tail = ", !nontemporal !0" if nontemporal else ""
        return self.op(type, f"load {type}, {pointer}, align {align or bytes_of(type)}{tail}")

    def store(self, value: Value, pointer: Value, align: int = 0, nontemporal: bool = False) -> None:
        """Store a scalar or vector. A non-temporal vector store needs its natural alignment."""
        if self._moves_as_integers(value.type):
            value = self._bits(value)
        tail = ", !nontemporal !0" if nontemporal else ""
        self.emit(f"store {value}, {pointer}, align {align or bytes_of(value.type)}{tail}")

    def store_alternately(self, x: Value, y: Value, pointer: Value) -> None:
        """Store the lanes of two vectors in turns, in pieces that are no wider than `widest_vector`."""
        lanes, element = lanes_of(x.type), element_of(x.type)
        size = min(2 * lanes, self.widest_vector)
        for start in range(0, 2 * lanes, size):
            picks = [i // 2 + i % 2 * lanes for i in range(start, start + size)]
            self.store(self.shuffle(x, y, picks), self.gep(pointer, start, element))

    def _moves_as_integers(self, type: str) -> bool:
        """Whether from block to block LLVM would carry numbers of 16 bits as floats, by library calls."""
        return element_of(type) == BFLOAT or (element_of(type) == HALF and not self.module.target.has_float16)

    def masked_load(self, type: str, pointer: Value, mask: Value | None, other: Operand = 0) -> Value:
        """Lanes where ``mask`` holds are loaded, the rest are ``other``; no mask is an ordinary load."""
        if mask is None:
            return self.load(type, pointer)
        if type[0] != "<":
            single = self.masked_load(f"<1 x {type}>", pointer, self._as_vector(mask), other)
            return self.op(type, f"extractelement {single}, i32 0")
        passthrough = self._bits(other if isinstance(other, Value) else self.number_in(type, other))
        align, moved = constant(I32, bytes_of(type)), passthrough.type
        value = self.intrinsic("llvm.masked.load", moved, pointer, align, mask, passthrough, overloads=(moved, PTR))
        return self.bitcast(value, type)

    def masked_store(self, value: Value, pointer: Value, mask: Value | None) -> None:
        """Store the lanes where ``mask`` holds; no mask is an ordinary store."""
        if mask is None:
            self.store(value, pointer)
            return
        if value.type[0] != "<":
            value, mask = self._as_vector(value), self._as_vector(mask)
        value = self._bits(value)
        if mask.name.count("true") == 1:
            # LLVM makes one store of a single lane, and of a vector that was narrowed it writes the wide element.
            lane = [part.split()[-1] for part in mask.name.strip("<>").split(",")].index("true")
            element = element_of(value.type)
            place = self.gep(pointer, lane, element)
            self.store(self.op(element, f"extractelement {value}, i32 {lane}"), place, bytes_of(element))
            return
        align = constant(I32, bytes_of(value.type))
        self.intrinsic("llvm.masked.store", VOID, value, pointer, align, mask, overloads=(value.type, PTR))

    def _as_vector(self, x: Value) -> Value:
        """A scalar as a vector of one lane, which masked memory operations need."""
        return self.op(f"<1 x {x.type}>", f"insertelement <1 x {x.type}> poison, {x}, i32 0")

    def gather(self, type: str, base: Value, indices: Value, mask: Value | None = None, other: Operand = 0) -> Value:
        """``base[indices]`` lane by lane: ``indices`` an integer vector counted in elements."""
        addresses = self._lane_addresses(type, base, indices)
        if type[0] != "<":
            return self.masked_load(type, addresses, mask, other)
        passthrough = self._bits(other if isinstance(other, Value) else self.number_in(type, other))
        moved = passthrough.type
        mask = mask or constant(vector(I1, lanes_of(type)), True)
        operands = (addresses, constant(I32, bytes_of(type)), mask, passthrough)
        value = self.intrinsic("llvm.masked.gather", moved, *operands, overloads=(moved, addresses.type))
        return self.bitcast(value, type)

    def scatter(self, value: Value, base: Value, indices: Value, mask: Value | None = None) -> None:
        """``base[indices] = value`` lane by lane, in lane order where indices repeat."""
        addresses = self._lane_addresses(value.type, base, indices)
        if value.type[0] != "<":
            self.masked_store(value, addresses, mask)
            return
        value = self._bits(value)
        mask = mask or constant(vector(I1, lanes_of(value.type)), True)
        operands = (value, addresses, constant(I32, bytes_of(value.type)), mask)
        self.intrinsic("llvm.masked.scatter", VOID, *operands, overloads=(value.type, addresses.type))

    def _lane_addresses(self, type: str, base: Value, indices: Value) -> Value:
        addresses = vector(PTR, lanes_of(type))
        return self.op(addresses, f"getelementptr {element_of(type)}, {base}, {indices}")

    def prefetch(self, pointer: Value, write: bool = False, level: int = 3) -> None:
        """Ask for a cache line; ``level`` 3 is the closest cache, 0 the farthest."""
        arguments = (constant(I32, int(write)), constant(I32, level), constant(I32, 1))
        self.intrinsic("llvm.prefetch", VOID, pointer, *arguments, overloads=(PTR,))

    def pin(self, x: Value) -> Value:
        """A vector that is computed here, after what is read before and before what is read after this place, by x86
        code: LLVM else reads so much first that registers do not hold it. No instruction is made of it."""
        return self.op(x.type, f'call {x.type} asm sideeffect "", "=v,0,~{{memory}}"({x})')

    def alloca(self, element: str, count: int, align: int = 64) -> Value:
        """Stack space for ``count`` elements (a constant), made once in the function's entry block."""
        name = "%" + self.name("stack")
        self._entry_allocas.append(f"  {name} = alloca {element}, i64 {count}, align {align}")
        return Value(PTR, name)

    # -- vectors

    def extract(self, x: Value, lane: Index) -> Value:
        """One lane of a vector (a scalar passes through)."""
        return x if lanes_of(x.type) == 1 else self.op(element_of(x.type), f"extractelement {x}, {self.index(lane)}")

    def insert(self, x: Value, value: Value, lane: Index) -> Value:
        """The vector with one lane replaced."""
        return self.op(x.type, f"insertelement {x}, {value}, {self.index(lane)}")

    def shuffle(self, x: Value, y: Value | None, picks: Sequence[int]) -> Value:
        """Lanes picked from ``x`` (0..n-1) and ``y`` (n..2n-1); -1 leaves a lane undefined."""
        if element_of(x.type) == BFLOAT:  # as in `select`
            moved = self.shuffle(self._bits(x), None if y is None else self._bits(y), picks)
            return self.bitcast(moved, vector(BFLOAT, len(picks)))
        other = y.name if y is not None else "poison"
        mask = ", ".join(f"i32 {p}" if p >= 0 else "i32 poison" for p in picks)
        type = vector(element_of(x.type), len(picks))
        return self.op(type, f"shufflevector {x}, {x.type} {other}, <{len(picks)} x i32> <{mask}>")

    def iota(self, element: str, lanes: int) -> Value:
        """The constant 0, 1, 2, ... as a vector of an integer or float element type (a scalar 0 for one
        lane).
        """
        return constant(element, 0) if lanes == 1 else vector_constant(element, list(range(lanes)))

    def tail_mask(self, count: Index, lanes: int) -> Value:
        """Lane ``i`` holds where ``i < count``; ``count`` may be negative or above ``lanes``."""
        if isinstance(count, int):
            return vector_constant(I1, [i < count for i in range(lanes)]) if lanes > 1 else constant(I1, count > 0)
        bounded = self.intrinsic("llvm.smin", I64, self.index(count), constant(I64, lanes))
        narrow = self.convert("trunc", bounded, I32)
        return self.icmp("slt", self.iota(I32, lanes), self.splat(narrow, lanes))

    def reduce(self, kind: str, x: Value, reassociate: bool = True) -> Value:
        """Horizontal ``fadd fmul fmax fmin add mul and or xor smax smin umax umin`` of the lanes, as a fixed
        tree.
        """
        if lanes_of(x.type) == 1:
            return x
        element = element_of(x.type)
        if kind not in ("fadd", "fmul"):
            return self.intrinsic(f"llvm.vector.reduce.{kind}", element, x, overloads=(x.type,))
        start = constant(element, -0.0 if kind == "fadd" else 1.0)
        flags = "reassoc" if reassociate else ""
        return self.intrinsic(f"llvm.vector.reduce.{kind}", element, start, x, overloads=(x.type,), flags=flags)

    def transpose(self, rows: Sequence[Value]) -> list[Value]:
        """The transposes of the n x n matrices that lie beside each other in n vectors (n a power of two, lanes a
        multiple of it): n/2 log2 n pairs of two-source shuffles.
        """
        n, lanes = len(rows), lanes_of(rows[0].type)
        out = list(rows)
        distance = 1
        while distance < n:
            low = [j if not j & distance else lanes + (j ^ distance) for j in range(lanes)]
            high = [j | distance if not j & distance else lanes + j for j in range(lanes)]
            for i in (i for i in range(n) if not i & distance):
                a, b = out[i], out[i | distance]
                out[i], out[i | distance] = self.shuffle(a, b, low), self.shuffle(a, b, high)
            distance *= 2
        return out
