"""Code on Python objects: fields, reference counts, shared words and calls of the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

from argosy_cinn.eager.slot_offsets import PLAN_WORDS, STATE, SlotOffsets
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import I8, I32, I64, PTR, VOID, Value, constant

__all__ = ["NULL", "Code"]

NULL = Value(PTR, "null")
_COUNT, _TYPE = 0, 8  # ob_refcnt and ob_type of a release build with the global lock
_NUMBER, _DIGIT = 16, 24  # of an int: how many digits and its sign, and the first of them
_DEALLOC = 48  # tp_dealloc of a type


class Code:
    """A function being built that works on objects. The type of a type's instances is written ``kind``: ``tensor``,
    ``payload``, ``node``; ``layout`` says where their slots are."""

    def __init__(self, function: Function, layout: SlotOffsets) -> None:
        self.f = function
        self.layout = layout

    # ---- shared words

    def place_of(self, name: str) -> Value:
        """The address of a shared word."""
        return self.f.gep(Value(PTR, "@state"), STATE.index(name), I64)

    def word(self, name: str, type: str = PTR) -> Value:
        """A shared word."""
        return self.f.load(type, self.place_of(name))

    def set_word(self, name: str, value: Value) -> None:
        """Write a shared word."""
        self.f.store(value, self.place_of(name))

    def bump(self, name: str, by: int) -> Value:
        """Add to a shared counter; the new value."""
        made = self.f.index(self.f.add(self.word(name, I64), by))
        self.set_word(name, made)
        return made

    def call(self, name: str, result: str, *arguments: Value) -> Value:
        """Call a function of the interpreter."""
        return self.f.call_pointer(self.word(name), result, *arguments)

    # ---- fields

    def field(self, x: Value, place: str | int, type: str = PTR) -> Value:
        """A field of an object, by name or by its distance in bytes."""
        at = self.layout[place] if isinstance(place, str) else place
        return self.f.load(type, self.f.gep(x, at, I8))

    def put(self, x: Value, place: str | int, value: Value) -> None:
        """Write a field; no references are counted."""
        at = self.layout[place] if isinstance(place, str) else place
        self.f.store(value, self.f.gep(x, at, I8))

    def type_of(self, x: Value) -> Value:
        """The type of an object."""
        return self.field(x, _TYPE)

    def plan_word(self, plan: Value, word: str, type: str = PTR) -> Value:
        """What a plan says."""
        return self.f.load(type, self.f.gep(plan, PLAN_WORDS.index(word), I64))

    def small_int(self, x: Value) -> tuple[Value, Value]:
        """Whether an int has one digit (of 30 bits) at most, and its value if so."""
        f = self.f
        said, digit = self.field(x, _NUMBER, I64), f.op(I64, f"zext {self.field(x, _DIGIT, I32)} to i64")
        if self.layout["python"] < 12:  # digits, negative for negative numbers
            return f.icmp("ult", f.index(f.add(said, 1)), 3), f.index(f.mul(said, digit))
        sign = f.index(f.sub(1, f.binary("and", said, 3)))  # 0, 1, 2 for positive, zero, negative
        return f.icmp("ult", said, 16), f.index(f.mul(sign, digit))

    # ---- conditions

    def is_same(self, x: Value, y: Value) -> Value:
        """Whether two objects are the same."""
        return self.f.icmp("eq", x, y)

    def is_a(self, x: Value, type_word: str) -> Value:
        """Whether an object is of exactly this type."""
        return self.is_same(self.type_of(x), self.word(type_word))

    def logical_and(self, x: Value, y: Value) -> Value:
        """Logical and."""
        return self.f.binary("and", x, y)

    def one_of(self, x: Value, y: Value) -> Value:
        """Logical or."""
        return self.f.binary("or", x, y)

    def need(self, condition: Value, otherwise: str) -> None:
        """Go on where the condition holds, else at the block ``otherwise``."""
        label = self.f.name("N")
        self.f.branch(condition, label, otherwise)
        self.f.start(label)

    def any_bits(self, words: Sequence[Value]) -> Value:
        """The union of the bits of some pointers, as an integer: zero where all are null."""
        total = constant(I64, 0)
        for each in words:
            number = each if each.type == I64 else self.f.op(I64, f"ptrtoint {each} to i64")
            total = self.f.binary("or", total, number)
        return total

    # ---- references

    def hold(self, x: Value) -> None:
        """Count another reference."""
        self._count_by(x, 1)

    def lessen(self, x: Value) -> Value:
        """Count a reference less, without freeing anything; whether it was the last one."""
        return self.f.icmp("eq", self._count_by(x, -1), 0)

    def _count_by(self, x: Value, by: int) -> Value:
        """Change the number of references; the new one. From 3.12 on objects live forever whose number is negative as
        32 bits; it stays what it is."""
        f = self.f
        if self.layout["python"] < 12:
            made = f.index(f.add(self.field(x, _COUNT, I64), by))
        else:
            old = self.field(x, _COUNT, I32)
            made = f.select(f.icmp("slt", old, 0), old, f.op(I32, f"add {old}, {by}"))
        self.put(x, _COUNT, made)
        return made

    def drop(self, x: Value) -> None:
        """Give up a reference."""
        with self.f.if_then(self.lessen(x)):
            self.call("_Py_Dealloc", VOID, x)

    def drop_some(self, x: Value) -> None:
        """Give up a reference, where there is one."""
        with self.f.if_then(self.f.icmp("ne", x, NULL)):
            self.drop(x)

    def take(self, x: Value, place: str) -> Value:
        """What a slot holds; the slot is empty afterwards."""
        found = self.field(x, place)
        self.put(x, place, NULL)
        return found

    def give(self, x: Value, place: str, value: Value) -> None:
        """Put another reference to ``value`` in an empty slot."""
        self.hold(value)
        self.put(x, place, value)

    def set_count(self, x: Value, count: int) -> None:
        """Set the number of references."""
        self.put(x, _COUNT, constant(I64, count))

    def count(self, x: Value) -> Value:
        """The number of references."""
        return self.field(x, _COUNT, I64)

    def set_dealloc(self, type: Value, function: Value) -> None:
        """Set what frees the instances of a type."""
        self.put(type, _DEALLOC, function)
