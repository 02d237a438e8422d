"""What Python enters: ``enter_add(left, right)`` and the like for its operators on tensors, ``enter_call(operator,
arguments, keywords)`` for calls of operators, ``enter_method`` for those of tensors' methods.

An application that a plan knows is done by `application` or `calls`; any other one by what was there before, which may
leave a plan.
"""

from __future__ import annotations

from argosy_cinn.eager.application import SLOW
from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.signatures import make_reading, need_read, read_call
from argosy_cinn.eager.slot_offsets import CALLED, METHOD, OPERATORS, SlotOffsets
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import I32, I64, PTR, Value, constant

__all__ = ["add_entries"]

_SIZE, _ITEMS = 16, 24  # ob_size and ob_item of a tuple
_COUNT = (1 << 63) - 1  # of the arguments of a vector call: the highest bit says something else


def add_entries(module: Module, layout: SlotOffsets) -> None:
    """Define the entries."""
    _add_method(module, layout)
    for name in OPERATORS:
        _add_operator(module, layout, name)
    _add_call(module, layout)
    _add_method_call(module, layout)
    _add_binding(module, layout)
    _add_slots(module, layout)


def _add_method(module: Module, layout: SlotOffsets) -> None:
    """``by_method(left, right, method, reflected)``: as Python does where a class has these methods."""
    parameters = [(PTR, each) for each in ("left", "right", "method", "reflected")]
    with module.function("by_method", parameters, PTR, export=False) as f:
        c = Code(f, layout)
        left, right, method, reflected = f.arguments
        ours = c.is_a(left, "tensor")
        arguments = f.alloca(PTR, 2)
        f.store(f.select(ours, left, right), arguments)
        f.store(f.select(ours, right, left), f.gep(arguments, 1, PTR))
        chosen = f.select(ours, method, reflected)
        f.ret(c.call("PyObject_Vectorcall", PTR, chosen, arguments, constant(I64, 2), NULL))


def _add_operator(module: Module, layout: SlotOffsets, name: str) -> None:
    with module.function(f"enter_{name}", [(PTR, "left"), (PTR, "right")], PTR) as f:
        c = Code(f, layout)
        left, right = f.arguments
        done = f.call("apply", PTR, c.word(f"{name}.operator"), left, right)
        with f.if_then(f.icmp("ne", done, SLOW)):
            f.ret(done)
        _call(c, name)


def _call(c: Code, name: str) -> None:
    """Return what a call of an operator of two operands gives."""
    left, right = c.f.arguments[:2]
    reading = _read_two(c)
    _invoke(c, c.word(f"{name}.operator"), reading)
    c.f.jump("slow")
    c.f.start("slow")
    c.f.ret(c.f.call("by_method", PTR, left, right, c.word(f"{name}.method"), c.word(f"{name}.reflected")))


def _invoke(c: Code, callee: Value, reading: Value) -> None:
    """Return what the plan for a reading gives; go on where there is none."""
    done = c.f.call("invoke", PTR, callee, reading)
    with c.f.if_then(c.f.icmp("ne", done, SLOW)):
        c.f.ret(done)


def _add_call(module: Module, layout: SlotOffsets) -> None:
    """As ``tp_call`` of operators: a tuple, and a dictionary or null."""
    parameters = [(PTR, each) for each in ("operator", "arguments", "keywords")]
    with module.function("enter_call", parameters, PTR) as f:
        c = Code(f, layout)
        operator, arguments, keywords = f.arguments
        reading = make_reading(c)
        need_read(c, f.gep(arguments, _ITEMS, "i8"), c.field(arguments, _SIZE, I64), reading)
        with f.if_then(f.icmp("ne", keywords, NULL)):
            place, pair = f.alloca(I64, 1), f.alloca(PTR, 2)
            f.store(constant(I64, 0), place)
            following, done = f.name("following"), f.name("done")
            f.jump(following)
            f.start(following)
            more = c.call("PyDict_Next", I32, keywords, place, pair, f.gep(pair, 1, PTR))
            c.need(f.icmp("ne", more, 0), done)
            need_read(c, pair, constant(I64, 2), reading)
            f.jump(following)
            f.start(done)
        _invoke(c, operator, reading)
        f.jump("slow")
        f.start("slow")
        f.ret(f.call_pointer(c.word("call"), PTR, operator, arguments, keywords))


def _add_method_call(module: Module, layout: SlotOffsets) -> None:
    """A vector call of a method: an array of arguments, those of keywords last, and a tuple of their names or null."""
    parameters = [(PTR, "method"), (PTR, "arguments"), (I64, "flags"), (PTR, "names")]
    with module.function("enter_method", parameters, PTR) as f:
        c = Code(f, layout)
        method, arguments, flags, names = f.arguments
        reading = make_reading(c)
        read_call(c, arguments, f.binary("and", flags, _COUNT), names, reading)
        _invoke(c, c.field(method, METHOD["operator"]), reading)
        f.jump("slow")
        f.start("slow")
        before = c.field(method, METHOD["before"])
        f.ret(c.call("PyObject_Vectorcall", PTR, before, arguments, flags, names))


def _add_binding(module: Module, layout: SlotOffsets) -> None:
    """``bind_method(method, instance, type)``, as ``tp_descr_get``."""
    with module.function("bind_method", [(PTR, each) for each in ("method", "instance", "type")], PTR) as f:
        c = Code(f, layout)
        method, instance = f.arguments[:2]
        with f.if_then(c.one_of(f.icmp("eq", instance, NULL), c.is_same(instance, c.word("none")))):
            c.hold(method)
            f.ret(method)
        f.ret(c.call("PyMethod_New", PTR, method, instance))


def _add_slots(module: Module, layout: SlotOffsets) -> None:
    """``enter_matmul`` and the other ways in which Python calls operators; what was in the slot does the rest."""
    for name, more in zip(CALLED, ([], [(PTR, "modulus")]), strict=True):
        _add_called(module, layout, name, more)
    two = [(PTR, "left"), (PTR, "right")]
    _add_slot(module, layout, "getitem", two)
    _add_slot(module, layout, "negative", two[:1])
    with module.function("enter_compare", [*two, (I32, "which")], PTR) as f:
        c = Code(f, layout)
        which = f.op(I64, f"zext {f.arguments[2]} to i64")
        first = c.place_of("compare0.operator")
        callee = f.load(PTR, f.gep(first, f.mul(which, 2), I64))
        c.need(f.icmp("ne", callee, NULL), "slow")
        reading = _read_two(c)
        _invoke(c, callee, reading)
        f.jump("slow")
        f.start("slow")
        f.ret(f.call_pointer(c.word("compare0.before"), PTR, *f.arguments))


def _add_called(module: Module, layout: SlotOffsets, name: str, more: list[tuple[str, str]]) -> None:
    with module.function(f"enter_{name}", [(PTR, "left"), (PTR, "right"), *more], PTR) as f:
        c = Code(f, layout)
        for modulus in f.arguments[2:]:
            c.need(c.is_same(modulus, c.word("none")), "slow")
        _call(c, name)


def _add_slot(module: Module, layout: SlotOffsets, name: str, parameters: list[tuple[str, str]]) -> None:
    with module.function(f"enter_{name}", parameters, PTR) as f:
        c = Code(f, layout)
        reading = _read_two(c) if len(parameters) > 1 else _read_one(c)
        _invoke(c, c.word(f"{name}.operator"), reading)
        f.jump("slow")
        f.start("slow")
        f.ret(f.call_pointer(c.word(f"{name}.before"), PTR, *f.arguments))


def _read_two(c: Code) -> Value:
    pair = c.f.alloca(PTR, 2)
    c.f.store(c.f.arguments[0], pair)
    c.f.store(c.f.arguments[1], c.f.gep(pair, 1, PTR))
    reading = make_reading(c)
    need_read(c, pair, constant(I64, 2), reading)
    return reading


def _read_one(c: Code) -> Value:
    reading = make_reading(c)
    read = c.f.call("read", I32, c.f.arguments[0], reading)
    c.need(c.f.icmp("ne", read, 0), "slow")
    return reading
