"""Printing expressions as scalar and vector code.

An `Evaluator` stands at a point of a loop nest: it knows the values of loop variables, which variable runs along the
lanes, and which lanes exist. What does not depend on the lane is a scalar and is splatted where it meets vectors.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from argosy_cinn.forms.dtypes import NARROW, SIGNED, UNSIGNED
from argosy_cinn.forms.expressions import Expression, children, lookups
from argosy_cinn.forms.indices import Atom, Index, Lookup, Quotient, Remainder, Variable
from argosy_cinn.forms.nest import Store
from argosy_cinn.loops import elementwise, reductions
from argosy_cinn.loops.elementwise import REGISTER
from argosy_cinn.loops.random import random_word
from argosy_cinn.printers.instructions import Instructions
from argosy_cinn.printers.types import I1, I32, I64, LLVM_TYPES, Value, bytes_of, constant, lanes_of, vector
from argosy_cinn.printers.types import Index as MachineIndex
from argosy_pir.scalars import decode_scalar

#: Lanes of vectors that are permuted by numbers in a vector, each of which is a divisor at most.
_PERMUTED = 16
#: Zeros before the first bit and after the last one.
_ENDS = ("cttz", "ctlz")


class Evaluator:
    """Values of expressions at one point of a nest. ``parent`` holds what was computed in enclosing loops.

    ``pointers`` gives the address of each buffer; ``variables`` the value of each loop variable by number (of the lane
    variable: at lane 0); ``lane`` is the lane variable's number, or -1 in scalar code; ``mask`` tells the lanes that
    exist (None: all).
    """

    def __init__(
        self,
        b: Instructions,
        pointers: Callable[[Any], Value],
        variables: Mapping[int, MachineIndex],
        lane: int = -1,
        lanes: int = 1,
        mask: Value | None = None,
        parent: Evaluator | None = None,
    ) -> None:
        self.b, self.pointers, self.variables = b, pointers, variables
        self.lane, self.lanes, self.mask, self.parent = lane, lanes, mask, parent
        self.lane_bit = 1 << lane if lane >= 0 else 0
        self.known: dict[int, Value] = {}
        self._splats: dict[int, Value] = {}
        self._machine: dict[Any, MachineIndex] = {}

    # -- nodes

    def find(self, node: Expression) -> Value | None:
        """The value if it was computed here or around."""
        scope: Evaluator | None = self
        while scope is not None:
            found = scope.known.get(node.number)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def value(self, node: Expression) -> Value:
        """The value of a node: a scalar, or a vector where it depends on the lane."""
        found = self.find(node)
        if found is None:
            found = self.known[node.number] = self._compute(node)
        return found

    def full_vector(self, node: Expression) -> Value:
        """The value of a node in all lanes."""
        value = self.value(node)
        if self.lanes == 1 or lanes_of(value.type) > 1:
            return value
        found = self._splats.get(node.number)
        if found is None:
            found = self._splats[node.number] = self._splat(node, value)
        return found

    def _splat(self, node: Expression, value: Value) -> Value:
        if node.kind == "constant":
            return _constant(node.payload, node.dtype, self.lanes)
        return self.b.splat(value, self.lanes)

    def prepare(self, roots: Sequence[Expression], inner: int, available: int) -> None:
        """Compute here what the roots need and no variable of ``inner`` (a bit mask) or unfinished reduction
        changes."""
        seen: set[int] = set()
        stack = list(roots)
        while stack:
            node = stack.pop()
            if node.number in seen:
                continue
            seen.add(node.number)
            if not node.variables & inner and node.level <= available:
                if node.kind not in ("constant", "reduced"):
                    self.value(node)
            else:
                stack += children(node)

    def _compute(self, node: Expression) -> Value:
        if node.kind == "load":
            return self._load(node)
        if node.kind == "constant":
            return _constant(node.payload, node.dtype, 1)
        if node.kind == "index":
            return self._number(node)
        if node.kind == "within":
            return self._in_range(node)
        if node.kind == "rng_bits":
            return self._random(node)
        if node.kind == "reduced":
            raise RuntimeError(f"reduction {node.payload} is used before it is complete")
        wide = self.lanes > 1 and bool(node.variables & self.lane_bit)
        arguments = [self.full_vector(a) if wide else self.value(a) for a in node.arguments]
        return elementwise.emit(self.b, node, arguments)

    # -- indices

    def scalar_index(self, index: Index) -> MachineIndex:
        """An index at lane 0, as a machine integer."""
        b = self.b
        total: MachineIndex = index.constant
        for atom, coefficient in index.terms:
            total = b.add(total, b.mul(self._atom(atom), coefficient))
        return total

    def _atom(self, atom: Atom) -> MachineIndex:
        if isinstance(atom, Variable):
            return self.variables[atom.number]
        found = self._machine.get(atom.key)
        if found is None:
            found = self._machine[atom.key] = self._scalar_atom(atom)
        return found

    def _scalar_atom(self, atom: Atom) -> MachineIndex:
        b = self.b
        if isinstance(atom, Quotient):
            return b.div(self.scalar_index(atom.index), atom.divisor)
        if isinstance(atom, Remainder):
            return b.rem(self.scalar_index(atom.index), atom.divisor)
        assert isinstance(atom, Lookup)
        return self._clamp(self.value(atom.expression), atom, I64)

    def _clamp(self, value: Value, atom: Lookup, wide: str) -> Value:
        """A run-time integer brought into range; unsigned ones have no lower bound to cross."""
        b, dtype = self.b, atom.expression.dtype
        type = vector(I64, lanes_of(value.type))
        value = value if value.type == type else b.convert("sext" if dtype in SIGNED else "zext", value, I64)
        top = b.number_in(type, atom.extent - 1)
        if dtype in UNSIGNED:
            value = b.intrinsic("llvm.umin", type, value, top)
        else:
            value = b.intrinsic("llvm.smin", type, b.intrinsic("llvm.smax", type, value, b.zero(type)), top)
        return value if wide == I64 else b.convert("trunc", value, wide)

    def lanewise(self, index: Index, element: str) -> Value:
        """An index as a vector of integers, one for each lane."""
        b = self.b
        steady = Index([(a, c) for a, c in index.terms if not a.variables & self.lane_bit], index.constant)
        base = b.index(self.scalar_index(steady))
        total = b.splat(base if element == I64 else b.convert("trunc", base, element), self.lanes)
        for atom, coefficient in index.terms:
            if atom.variables & self.lane_bit:
                part = self._lanewise_atom(atom, element)
                total = b.binary("add", total, b.binary("mul", part, coefficient) if coefficient != 1 else part)
        return total

    def _lanewise_atom(self, atom: Atom, element: str) -> Value:
        b = self.b
        key = (atom.key, element)
        found = self._machine.get(key)
        if isinstance(found, Value):
            return found
        if isinstance(atom, Variable):
            base = b.index(self.variables[atom.number])
            start = b.splat(base if element == I64 else b.convert("trunc", base, element), self.lanes)
            made = b.binary("add", start, b.iota(element, self.lanes))
        elif isinstance(atom, Quotient):
            made = b.binary("udiv", self.lanewise(atom.index, element), atom.divisor)
        elif isinstance(atom, Remainder):
            made = b.binary("urem", self.lanewise(atom.index, element), atom.divisor)
        else:
            assert isinstance(atom, Lookup)
            made = self._clamp(self.full_vector(atom.expression), atom, element)
        self._machine[key] = made
        return made

    def _number(self, node: Expression) -> Value:
        index: Index = node.payload[0]
        if index.variables & self.lane_bit:
            return self._as_dtype(self.lanewise(index, _index_type(index)), node.dtype)
        return self._as_dtype(self.b.index(self.scalar_index(index)), node.dtype)

    def _as_dtype(self, x: Value, dtype: str) -> Value:
        source = "int64" if x.type in (I64, vector(I64, self.lanes)) else "int32"
        converted = elementwise.convert(self.b, x, source, dtype)
        return elementwise.round_to(self.b, converted, dtype) if dtype in NARROW else converted

    def _random(self, node: Expression) -> Value:
        index, counter = node.payload
        wide = bool(index.variables & self.lane_bit)
        position = self.lanewise(index, I64) if wide else self.b.index(self.scalar_index(index))
        seed, offset = (self.b.extract(self.value(a), 0) for a in node.arguments)  # numbers are in all lanes
        draw = self.b.binary("add", offset, counter)
        return random_word(self.b, position, seed, draw)

    def _in_range(self, node: Expression) -> Value:
        b = self.b
        index, low, high = node.payload
        if index.variables & self.lane_bit:
            x: Value = self.lanewise(index, _index_type(index))
        else:
            x = b.index(self.scalar_index(index))
        shifted = b.binary("sub", x, low) if low else x
        return b.icmp("ult", shifted, high - low)  # one unsigned comparison: what lies below wraps to the top

    # -- memory

    def _guard(self, node: Expression) -> tuple[Value | None, Value | None]:
        """(condition of the whole vector, condition by lane) under which the element exists."""
        b = self.b
        scalar: Value | None = None
        lanes: Value | None = None
        for condition in node.arguments:
            value = self.value(condition)
            if lanes_of(value.type) > 1:
                lanes = value if lanes is None else b.binary("and", lanes, value)
            else:
                scalar = value if scalar is None else b.binary("and", scalar, value)
        return scalar, lanes

    def _load(self, node: Expression) -> Value:
        buffer, index = node.payload
        b, memory = self.b, LLVM_TYPES[node.dtype]
        scalar, lanes = self._guard(node)
        varying = [(a, c) for a, c in index.terms if a.variables & self.lane_bit]
        if not varying:
            offset = self.scalar_index(index)
            exists = self._exists(scalar, lanes)
            if exists is not None:
                offset = b.select(exists, b.index(offset), 0)
            return elementwise.load_element(b, b.load(memory, b.gep(self.pointers(buffer), offset, memory)), node.dtype)
        mask = self._mask(scalar, lanes)
        type = vector(memory, self.lanes)
        step = varying[0][1] if len(varying) == 1 and isinstance(varying[0][0], Variable) else None
        if step == 1:
            place = b.gep(self.pointers(buffer), self.scalar_index(index), memory)
            loaded = b.masked_load(type, place, mask)
        elif step == 2 and mask is None:
            loaded = self._every_second(b.gep(self.pointers(buffer), self.scalar_index(index), memory), memory)
        elif (spread := self._lane_quotient(varying, memory)) is not None:
            place = b.gep(self.pointers(buffer), self.scalar_index(index), memory)
            loaded = self._repeat(place, memory, spread, mask)
        else:
            indices = self.lanewise(index, _index_type(index))
            loaded = b.gather(type, self.pointers(buffer), indices, mask)
        return elementwise.load_element(b, loaded, node.dtype)

    def _exists(self, scalar: Value | None, lanes: Value | None) -> Value | None:
        """The condition under which an element that is the same for all lanes exists: that of one lane is enough, of
        those that are computed."""
        if lanes is None:
            return scalar
        mask = self._mask(scalar, lanes)
        assert mask is not None
        return self.b.intrinsic("llvm.vector.reduce.or", I1, mask, overloads=(mask.type,))

    def _lane_quotient(self, varying: list[tuple[Atom, int]], element: str) -> Quotient | None:
        """The quotient by which lanes in a row read the same element, and then the next one (what lies between gaps, or
        is repeated), where a vector can be permuted."""
        atom, step = varying[0]
        if len(varying) > 1 or step != 1 or not isinstance(atom, Quotient) or not isinstance(atom.divisor, int):
            return None
        inner = [(a, c) for a, c in atom.index.terms if a.variables & self.lane_bit]
        plain = atom.divisor <= _PERMUTED and len(inner) == 1 and isinstance(inner[0][0], Variable) and inner[0][1] == 1
        fits = self.lanes == _PERMUTED and bytes_of(element) == 4 and self.b.module.target.has("avx512f")
        return atom if plain and fits else None

    def _repeat(self, place: Value, element: str, spread: Quotient, mask: Value | None) -> Value:
        """Elements that are read by several lanes each: one load of those between the first and the last lane that
        exist, permuted. A gather would take a load for every lane."""
        b, lanes, divisor = self.b, self.lanes, spread.divisor
        before = b.rem(b.index(self.scalar_index(spread.index)), divisor)
        shifted = b.binary("add", b.iota(I32, lanes), b.splat(b.convert("trunc", b.index(before), I32), lanes))
        picks = b.binary("udiv", shifted, divisor)
        last: MachineIndex = lanes - 1
        needed: Value | None = None
        if mask is not None:
            bits = b.convert("zext", b.bitcast(mask, f"i{lanes}"), I32)
            ends = [b.intrinsic(f"llvm.{kind}", I32, bits, b.constant(I1, False), overloads=(I32,)) for kind in _ENDS]
            first, last = (b.convert("sext", x, I64) for x in (ends[0], b.binary("sub", 31, ends[1])))
            low = b.convert("trunc", b.index(b.div(b.add(first, before), divisor)), I32)
            needed = b.icmp("sge", b.iota(I32, lanes), b.splat(low, lanes))
        beyond = b.div(b.add(b.add(last, before), divisor), divisor)
        within = b.tail_mask(beyond, lanes)
        needed = within if needed is None else b.binary("and", needed, within)
        read = b.bitcast(b.masked_load(vector(element, lanes), place, needed), vector("float", lanes))
        permuted = b.call("llvm.x86.avx512.permvar.sf.512", read.type, read, picks)
        return b.bitcast(permuted, vector(element, lanes))

    def _every_second(self, place: Value, element: str) -> Value:
        """Elements 0, 2, 4, ... from two loads, of which the second ends with the last of them."""
        b, lanes = self.b, self.lanes
        type = vector(element, lanes)
        low, high = b.load(type, place), b.load(type, b.gep(place, lanes - 1, element))
        return b.shuffle(low, high, [2 * i if 2 * i < lanes else 2 * i + 1 for i in range(lanes)])

    def _mask(self, scalar: Value | None, lanes: Value | None) -> Value | None:
        b, mask = self.b, self.mask
        for condition in (lanes, b.splat(scalar, self.lanes) if scalar is not None else None):
            if condition is not None:
                mask = condition if mask is None else b.binary("and", mask, condition)
        return mask

    def store_all(self, stores: Sequence[Store]) -> None:
        """Evaluate, then store: what is stored may lie over what another value is computed from."""
        values = [self.full_vector(s.node) if s.index.variables & self.lane_bit else self.value(s.node) for s in stores]
        pairs = list(zip(stores, values, strict=True))
        while pairs:
            s, value = pairs.pop(0)
            if pairs and self._alternate(s, pairs[0][0]):
                self._store_pair(s, value, pairs.pop(0)[1])
            else:
                self.store_value(s.buffer, s.index, value, s.dtype, s.streaming)

    def _alternate(self, s: Store, following: Store) -> bool:
        """Whether two stores write every second element each, the second between those of the first."""
        varying = [(a, c) for a, c in s.index.terms if a.variables & self.lane_bit]
        steps = len(varying) == 1 and varying[0][1] == 2 and isinstance(varying[0][0], Variable)
        whole = self.lanes > 1 and self.mask is None
        return steps and whole and following.buffer is s.buffer and following.index == s.index + 1

    def _store_pair(self, s: Store, first: Value, second: Value) -> None:
        """Two stores as one of their values in turns."""
        b, memory = self.b, LLVM_TYPES[s.dtype]
        x, y = (elementwise.store_element(b, v, s.dtype) for v in (first, second))
        b.store_alternately(x, y, b.gep(self.pointers(s.buffer), self.scalar_index(s.index), memory))

    def store_value(self, buffer: Any, index: Index, value: Value, dtype: str, streaming: bool = False) -> None:
        """Store a register at an index."""
        b, memory = self.b, LLVM_TYPES[dtype]
        stored = elementwise.store_element(b, value, dtype)
        varying = [(a, c) for a, c in index.terms if a.variables & self.lane_bit]
        if not varying:
            stored = b.extract(stored, 0)  # a product of one column has one lane
            b.store(stored, b.gep(self.pointers(buffer), self.scalar_index(index), memory))
        elif len(varying) == 1 and varying[0][1] == 1 and isinstance(varying[0][0], Variable):
            place = b.gep(self.pointers(buffer), self.scalar_index(index), memory)
            if streaming and self.mask is None:
                b.store(stored, place, align=self.lanes * bytes_of(stored.type), nontemporal=True)
            else:
                b.masked_store(stored, place, self.mask)
        else:
            b.scatter(stored, self.pointers(buffer), self.lanewise(index, _index_type(index)), self.mask)

    def update(self, store: Store) -> None:
        """Store where the condition holds; combined with what is there already where the store says so."""
        value = self.full_vector(store.node)
        for atom in lookups(store.index):
            self.value(atom.expression)
        if store.condition is None:
            self._combine(store, value)
            return
        with self.b.if_then(self.value(store.condition)):
            self._combine(store, value)

    def _combine(self, store: Store, value: Value) -> None:
        if store.combine:
            old = self._load(Expression(-1, "load", store.dtype, (), (store.buffer, store.index), 0, 0))
            old = old if lanes_of(old.type) == lanes_of(value.type) else self.b.splat(old, self.lanes)
            value = reductions.combine(self.b, store.combine, store.dtype, old, value)
        self.store_value(store.buffer, store.index, value, store.dtype)


def _index_type(index: Index) -> str:
    """32-bit lanes where they hold every intermediate value."""
    reached = [index.low, index.high, *(c * a.extent for a, c in index.terms)]
    # Run-time sizes are checked before: programs with larger tensors are compiled for their sizes.
    bound = max([abs(n) for n in reached if isinstance(n, int)], default=1)
    return I32 if bound < 1 << 30 else I64


def _constant(data: bytes, dtype: str, lanes: int) -> Value:
    type = vector(REGISTER[dtype], lanes)
    if dtype == "float32":  # by its bits: a NaN keeps its payload
        (number,) = struct.unpack("<f", data)
        return constant(type, number)
    return constant(type, decode_scalar(data, dtype))  # type: ignore[arg-type]


__all__ = ["I1", "Evaluator"]
