"""Reading the arguments of a call as words, so that calls that are alike read alike.

A tensor is its type (dtype and shape), a number its class and value, a list, tuple or slice its class, its length and
its items, and any other object itself: Python leaves plans for objects alone that never change. Names of keywords come
before their values. `argosy_phi_ops.eager.native.signatures` reads them in the same way.

A reading is an array: how many words there are, how many tensors, the words, the tensors.
"""

from __future__ import annotations

from argosy_cinn.eager.application import payload_of
from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.plans import find_plan, mix, number_of
from argosy_cinn.eager.slot_offsets import OPERANDS, WORDS, SlotOffsets
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import I32, I64, PTR, Value, constant

__all__ = ["add_signatures", "count_of", "make_reading", "need_read", "operands_of", "read_call"]

_SIZE, _ITEMS = 16, 24  # ob_size and ob_item of a tuple; ob_item of a list is a pointer
_NUMBER = 16  # ob_fval of a float
_SLICE = (16, 24, 32)  # start, stop, step


def add_signatures(module: Module, layout: SlotOffsets) -> None:
    """Define ``put``, ``read``, ``read_all`` and ``find_call``."""
    _add_put(module, layout)
    _add_read(module, layout)
    _add_read_all(module, layout)
    _add_find(module, layout)


def make_reading(c: Code) -> Value:
    """An empty reading; it has room for one more tensor."""
    reading = c.f.alloca(I64, 2 + WORDS + OPERANDS + 1)
    for i in range(2):
        c.f.store(constant(I64, 0), c.f.gep(reading, i, I64))
    return reading


def count_of(c: Code, reading: Value) -> Value:
    """How many tensors there are."""
    return c.f.load(I64, c.f.gep(reading, 1, I64))


def operands_of(c: Code, reading: Value) -> Value:
    """The address of the tensors."""
    return c.f.gep(reading, 2 + WORDS, I64)


def need_read(c: Code, items: Value, count: Value, reading: Value) -> None:
    """Add the words of an array of arguments; at ``slow`` where that cannot be."""
    read = c.f.call("read_all", I32, items, count, reading)
    c.need(c.f.icmp("ne", read, 0), "slow")


def read_call(c: Code, arguments: Value, count: Value, names: Value, reading: Value) -> None:
    """Add the words of a vector call: ``count`` arguments, then those of keywords, by a tuple of their names or null;
    at ``slow`` where that cannot be."""
    f = c.f
    need_read(c, arguments, count, reading)
    with f.if_then(f.icmp("ne", names, NULL)):
        values = f.gep(arguments, count, PTR)
        with f.loop(0, c.field(names, _SIZE, I64)) as loop:
            for items in (f.gep(names, _ITEMS, "i8"), values):
                read = f.call("read", I32, f.load(PTR, f.gep(items, loop.index, PTR)), reading)
                c.need(f.icmp("ne", read, 0), "slow")


def _add_put(module: Module, layout: SlotOffsets) -> None:
    """``put(word, reading)``: add a word; 0 where there is no room."""
    with module.function("put", [(PTR, "word"), (PTR, "reading")], I32, export=False) as f:
        c = Code(f, layout)
        word, reading = f.arguments
        count = f.load(I64, reading)
        c.need(f.icmp("ult", count, WORDS), "full")
        f.store(word, f.gep(f.gep(reading, 2, I64), count, I64))
        f.store(f.index(f.add(count, 1)), reading)
        f.ret(constant(I32, 1))
        f.start("full")
        f.ret(constant(I32, 0))


def _add_read(module: Module, layout: SlotOffsets) -> None:
    """``read(x, reading)``: add the words of an argument; 0 where there is no room, or it cannot be read."""
    with module.function("read", [(PTR, "x"), (PTR, "reading")], I32, export=False) as f:
        c = Code(f, layout)
        x, reading = f.arguments
        with f.if_then(c.is_a(x, "tensor")):
            payload = payload_of(c, x)
            count = count_of(c, reading)
            c.need(f.icmp("ult", count, OPERANDS), "slow")
            f.store(x, f.gep(operands_of(c, reading), count, PTR))
            f.store(f.index(f.add(count, 1)), f.gep(reading, 1, I64))
            kind = c.field(payload, "payload.array_type")
            c.need(f.icmp("ne", kind, NULL), "slow")
            f.ret(f.call("put", I32, kind, reading))
        with f.if_then(c.is_a(x, "int")):
            _put(c, c.type_of(x), reading)
            small, number = c.small_int(x)
            c.need(small, "slow")
            f.ret(f.call("put", I32, _pointer(c, number), reading))
        with f.if_then(c.is_a(x, "tuple")):
            _put(c, c.type_of(x), reading)
            count = c.field(x, _SIZE, I64)
            _put(c, _pointer(c, count), reading)
            f.ret(f.call("read_all", I32, f.gep(x, _ITEMS, "i8"), count, reading))
        with f.if_then(c.is_a(x, "list")):
            _put(c, c.type_of(x), reading)
            count = c.field(x, _SIZE, I64)
            _put(c, _pointer(c, count), reading)
            f.ret(f.call("read_all", I32, c.field(x, _ITEMS), count, reading))
        with f.if_then(c.is_a(x, "slice")):
            _put(c, c.type_of(x), reading)
            f.ret(f.call("read_all", I32, f.gep(x, _SLICE[0], "i8"), constant(I64, len(_SLICE)), reading))
        with f.if_then(c.is_a(x, "float")):
            _put(c, c.type_of(x), reading)
            f.ret(f.call("put", I32, c.field(x, _NUMBER), reading))
        f.ret(f.call("put", I32, x, reading))
        f.start("slow")
        f.ret(constant(I32, 0))


def _pointer(c: Code, number: Value) -> Value:
    return c.f.op(PTR, f"inttoptr {number} to ptr")


def _put(c: Code, word: Value, reading: Value) -> None:
    c.need(c.f.icmp("ne", c.f.call("put", I32, word, reading), 0), "slow")


def _add_read_all(module: Module, layout: SlotOffsets) -> None:
    """``read_all(items, count, reading)``: the words of some arguments one after the other."""
    parameters = [(PTR, "items"), (I64, "count"), (PTR, "reading")]
    with module.function("read_all", parameters, I32, export=False) as f:
        c = Code(f, layout)
        items, count, reading = f.arguments
        with f.loop(0, count) as loop:
            item = f.load(PTR, f.gep(items, loop.index, PTR))
            c.need(f.icmp("ne", f.call("read", I32, item, reading), 0), "slow")
        f.ret(constant(I32, 1))
        f.start("slow")
        f.ret(constant(I32, 0))


def _add_find(module: Module, layout: SlotOffsets) -> None:
    """``find_call(callee, reading)``: the plan of a call that reads so; null where there is none."""
    with module.function("find_call", [(PTR, "callee"), (PTR, "reading")], PTR, export=False) as f:
        c = Code(f, layout)
        callee, reading = f.arguments
        count, words = f.load(I64, reading), f.gep(reading, 2, I64)
        with f.loop(0, count, carry=[number_of(c, callee)]) as loop:
            loop.yield_values(mix(c, loop.carry[0], f.load(I64, f.gep(words, loop.index, I64))))
        hashed = loop.carry[0]

        def need(plan: Value, label: str) -> None:
            c.need(f.icmp("eq", c.plan_word(plan, "hash", I64), hashed), label)
            c.need(c.is_same(c.plan_word(plan, "operator"), callee), label)
            c.need(f.icmp("eq", c.plan_word(plan, "length", I64), count), label)
            expected = c.plan_word(plan, "words")
            with f.loop(0, count) as loop:
                same = f.icmp("eq", *[f.load(I64, f.gep(each, loop.index, I64)) for each in (words, expected)])
                c.need(same, label)

        f.ret(find_plan(c, hashed, need, "none"))
        f.start("none")
        f.ret(NULL)
