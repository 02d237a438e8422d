"""Code on Python objects: fields, reference counts, shared words and calls of the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

from argosy_cinn.eager.layout import PLAN_WORDS, STATE, Layout
from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import I8, I64, PTR, VOID, Value, constant

__all__ = ["NULL", "Code"]

NULL = Value(PTR, "null")
_COUNT, _TYPE = 0, 8  # ob_refcnt and ob_type of a release build with the global lock, before 3.12
_DEALLOC = 48  # tp_dealloc of a type


class Code:
    """A function being built that works on objects. The type of a type's instances is written ``kind``: ``tensor``,
    ``payload``, ``node``; ``layout`` says where their slots are."""

    def __init__(self, function: Function, layout: Layout) -> None:
        self.f = function
        self.layout = layout

    # ---- shared words

    def _word(self, name: str) -> Value:
        return self.f.at(Value(PTR, "@state"), STATE.index(name), I64)

    def word(self, name: str, type: str = PTR) -> Value:
        """A shared word."""
        return self.f.load(type, self._word(name))

    def set_word(self, name: str, value: Value) -> None:
        """Write a shared word."""
        self.f.store(value, self._word(name))

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
        return self.f.load(type, self.f.at(x, at, I8))

    def put(self, x: Value, place: str | int, value: Value) -> None:
        """Write a field; no references are counted."""
        at = self.layout[place] if isinstance(place, str) else place
        self.f.store(value, self.f.at(x, at, I8))

    def type_of(self, x: Value) -> Value:
        """The type of an object."""
        return self.field(x, _TYPE)

    def planned(self, plan: Value, word: str, type: str = PTR) -> Value:
        """What a plan says."""
        return self.f.load(type, self.f.at(plan, PLAN_WORDS.index(word), I64))

    # ---- conditions

    def same(self, x: Value, y: Value) -> Value:
        """Whether two objects are the same."""
        return self.f.icmp("eq", x, y)

    def is_a(self, x: Value, type_word: str) -> Value:
        """Whether an object is of exactly this type."""
        return self.same(self.type_of(x), self.word(type_word))

    def both(self, x: Value, y: Value) -> Value:
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
        self.put(x, _COUNT, self.f.index(self.f.add(self.field(x, _COUNT, I64), 1)))

    def drop(self, x: Value) -> None:
        """Give up a reference."""
        left = self.f.index(self.f.sub(self.field(x, _COUNT, I64), 1))
        self.put(x, _COUNT, left)
        with self.f.when(self.f.icmp("eq", left, 0)):
            self.call("_Py_Dealloc", VOID, x)

    def drop_some(self, x: Value) -> None:
        """Give up a reference, where there is one."""
        with self.f.when(self.f.icmp("ne", x, NULL)):
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
