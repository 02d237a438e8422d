"""Python's operators of two operands: ``apply(operator, left, right)``.

Operands are tensors, or a number beside a tensor. What a plan knows is done here: operands, kernel, result, node. For
anything else the result is :data:`SLOW`, with nothing done.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.plans import find_plan, mix, number_of
from argosy_cinn.eager.slot_offsets import PLAN_WORDS, SlotOffsets
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import DOUBLE, I32, I64, PTR, VOID, Value, constant

__all__ = [
    "SLOW", "add_application", "join_blockers", "leave_unrecorded", "memory_of", "need_no_layers", "need_silence",
    "payload_of", "silence",
    "wants_gradient", "wrap_result",
]  # fmt: skip

SLOW = Value(PTR, "@state")
"""What stands for a result where Python has to do the work."""

_NUMBER = 16  # ob_fval of a float
_CONTIGUOUS_ALIGNED = 0x101  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED


def add_application(module: Module, layout: SlotOffsets) -> None:
    """Define ``apply`` and what it needs."""
    _add_data(module, layout)
    _add_apply(module, layout)


def _add_data(module: Module, layout: SlotOffsets) -> None:
    """``data(payload)``: the first element of contiguous data that the host sees; null for any other."""
    with module.function("data", [(PTR, "payload")], PTR, export=False) as f:
        c = Code(f, layout)
        array = c.field(f.arguments[0], "payload.ndarray")
        with f.if_then(f.icmp("ne", array, NULL)):
            c.need(c.is_a(array, "ndarray"), "none")
            flags = f.binary("and", c.field(array, "ndarray.flags", I32), _CONTIGUOUS_ALIGNED)
            c.need(f.icmp("eq", flags, _CONTIGUOUS_ALIGNED), "none")
            f.ret(c.field(array, "ndarray.data"))
        memory = c.field(f.arguments[0], "payload._memory")
        c.need(f.icmp("ne", memory, NULL), "none")
        with f.if_then(c.is_a(memory, "bytearray")):
            f.ret(c.field(memory, "bytearray.start"))
        c.need(c.is_same(c.field(f.arguments[0], "payload.contiguous"), c.word("true")), "none")  # see `views`
        address = c.field(f.arguments[0], "payload.address")
        c.need(f.icmp("ne", address, NULL), "none")
        c.need(c.is_a(address, "int"), "none")
        f.ret(c.call("PyLong_AsVoidPtr", PTR, address))
        f.start("none")
        f.ret(NULL)


class _Operand(NamedTuple):
    """What ``apply`` knows of an operand: its type as plans name it, where its data is, its payload (null of a number
    and of nothing), 1 where it wants a gradient, else 0, and its blockers, None where it has none."""

    key: Value
    data: Value
    payload: Value
    wants: Value
    blockers: Value


def _add_apply(module: Module, layout: SlotOffsets) -> None:
    with module.function("apply", [(PTR, each) for each in ("operator", "left", "right")], PTR, export=False) as f:
        c = Code(f, layout)
        operator, left, right = f.arguments
        silent = need_no_layers(c)
        first, second = _operand(c, left), _operand(c, right)
        plan = _plan(c, operator, first.key, second.key)
        wants = f.binary("add", first.wants, f.binary("shl", second.wants, 1))
        blockers = f.alloca(PTR, 1)
        f.store(c.word("none"), blockers)
        some = [f.icmp("ne", each.blockers, c.word("none")) for each in (first, second)]
        with f.if_then(c.one_of(*some)):
            for each in (first, second):
                join_blockers(c, blockers, each.blockers)
        with f.if_then(c.logical_and(f.icmp("ne", wants, 0), f.icmp("ne", silent, c.word("zero")))):
            need_silence(c, silent)
            silence(c, blockers)
            f.jump("unrecorded")
        c.need(f.icmp("ne", wants, 0), "unrecorded")
        recipe, called, keeps = _recipe(c, plan, wants)
        for bit, payload in enumerate((first.payload, second.payload)):
            kept = f.icmp("ne", f.binary("and", keeps, 1 << bit), 0)
            with f.if_then(c.logical_and(kept, f.icmp("ne", payload, NULL))):
                c.need(f.icmp("ne", f.call("version", PTR, payload), NULL), "slow")
        operands = f.alloca(PTR, 3)
        f.store(left, operands)
        f.store(right, f.gep(operands, 1, PTR))
        result = _compute(c, plan, first.data, second.data)
        done = f.call("record", I32, recipe, called, keeps, wants, operands, constant(I64, 2), result)
        c.need(f.icmp("ne", done, 0), "undo")
        c.give(result, "tensor._gradient_blockers", f.load(PTR, blockers))
        f.ret(result)
        f.start("unrecorded")
        result_only = _compute(c, plan, first.data, second.data)
        leave_unrecorded(c, result_only, f.load(PTR, blockers))
        f.ret(result_only)
        f.start("undo")
        c.drop(result)
        f.jump("failed")
        f.start("failed")
        f.ret(NULL)
        f.start("slow")
        f.ret(SLOW)


def need_no_layers(c: Code) -> Value:
    """How many threads record nothing; at ``slow`` where layers are active that change what ordinary tensors do."""
    ambient = c.word("ambient")
    c.need(c.is_same(c.field(ambient, "ambient.word"), c.field(ambient, "ambient.quiet")), "slow")
    return c.field(ambient, "ambient.silent")


def need_silence(c: Code, silent: Value) -> None:
    """Go on where it is this thread, and no other one, that records nothing; else at ``slow``."""
    f = c.f
    c.need(c.is_same(silent, c.word("one")), "slow")
    silenced = c.call("PyLong_AsLongLong", I64, c.field(c.word("ambient"), "ambient.silenced"))
    c.need(f.icmp("eq", silenced, c.call("PyThread_get_thread_ident", I64)), "slow")


def leave_unrecorded(c: Code, result: Value, blockers: Value) -> None:
    """Fill in what a new tensor without a history says of gradients."""
    c.give(result, "tensor.stop_gradient", c.word("true"))
    c.give(result, "tensor._node", c.word("none"))
    c.give(result, "tensor._gradient_blockers", blockers)


def join_blockers(c: Code, place: Value, more: Value) -> None:
    """Add the blockers of an operand, None where it has none, to those at ``place``; at ``slow`` where both have some
    of their own, or where none were ever looked for."""
    f = c.f
    with f.if_then(f.icmp("ne", more, c.word("none"))):
        c.need(f.icmp("ne", more, NULL), "slow")
        found = f.load(PTR, place)
        c.need(c.one_of(c.is_same(found, c.word("none")), c.is_same(found, more)), "slow")
        f.store(more, place)


def silence(c: Code, place: Value) -> None:
    """Where there are no blockers at ``place``: the block that records nothing."""
    f = c.f
    found, cut = f.load(PTR, place), c.field(c.word("ambient"), "ambient.cut")
    f.store(f.select(c.is_same(found, c.word("none")), cut, found), place)


def _operand(c: Code, x: Value) -> _Operand:
    """An operand; at ``slow`` where it is neither a tensor with data that can be read here nor a plain number."""
    spot = c.f.alloca(DOUBLE, 1)
    return _Operand(*c.f.either(c.is_a(x, "tensor"), partial(_tensor, c, x), partial(_number, c, x, spot)))


def _tensor(c: Code, x: Value) -> list[Value]:
    payload = payload_of(c, x)
    data = c.f.call("data", PTR, payload)
    c.need(c.f.icmp("ne", data, NULL), "slow")
    key, blockers = c.field(payload, "payload.array_type"), c.field(x, "tensor._gradient_blockers")
    return [key, data, payload, wants_gradient(c, x), blockers]


def _number(c: Code, x: Value, spot: Value) -> list[Value]:
    """A float, or an int of one digit at most: both are doubles exactly."""
    f = c.f
    f.either(c.is_a(x, "float"), partial(_put_float, c, x, spot), partial(_put_int, c, x, spot))
    return [c.type_of(x), spot, NULL, constant(I64, 0), c.word("none")]


def _put_float(c: Code, x: Value, spot: Value) -> list[Value]:
    c.f.store(c.field(x, _NUMBER, DOUBLE), spot)
    return []


def _put_int(c: Code, x: Value, spot: Value) -> list[Value]:
    f = c.f
    c.need(c.is_a(x, "int"), "slow")
    small, whole = c.small_int(x)
    c.need(small, "slow")
    f.store(f.op(DOUBLE, f"sitofp {whole} to double"), spot)
    return []


def payload_of(c: Code, x: Value) -> Value:
    """The payload of a tensor; at ``slow`` where it is no strided one."""
    payload = c.field(x, "tensor.payload")
    c.need(c.f.icmp("ne", payload, NULL), "slow")
    c.need(c.is_a(payload, "payload"), "slow")
    return payload


def _plan(c: Code, operator: Value, left: Value, right: Value) -> Value:
    """The plan for operands of these types; at ``slow`` where there is none."""
    mixed = mix(c, mix(c, number_of(c, operator), number_of(c, left)), number_of(c, right))

    def need(plan: Value, label: str) -> None:
        for word, sought in (("left", left), ("right", right), ("operator", operator)):
            c.need(c.is_same(c.plan_word(plan, word), sought), label)

    return find_plan(c, mixed, need, "slow")


def wants_gradient(c: Code, x: Value) -> Value:
    """1 where a tensor wants a gradient, else 0; at ``slow`` where that is not said by a bool."""
    f = c.f
    said = c.field(x, "tensor.stop_gradient")
    wants = c.is_same(said, c.word("false"))
    c.need(c.one_of(wants, c.is_same(said, c.word("true"))), "slow")
    with f.if_then(wants):
        c.need(f.icmp("ne", c.field(x, "tensor._node"), NULL), "slow")
    return f.op(I64, f"zext {wants} to i64")


def _recipe(c: Code, plan: Value, wants: Value) -> tuple[Value, Value, Value]:
    """The recipe, its name and what it keeps; at ``slow`` where it is not known yet."""
    f = c.f
    at = f.gep(f.gep(plan, PLAN_WORDS.index("recipes"), I64), f.mul(f.index(f.sub(wants, 1)), 4), I64)
    recipe = f.load(PTR, f.gep(at, 1, I64))
    c.need(f.icmp("ne", recipe, NULL), "slow")
    return recipe, f.load(PTR, f.gep(at, 2, I64)), f.load(I64, f.gep(at, 3, I64))


def _compute(c: Code, plan: Value, left: Value, right: Value) -> Value:
    """A tensor with the result; its slots about gradients are empty. At ``failed`` when memory is out."""
    f = c.f
    payload = f.call("new_payload", PTR, plan)
    c.need(f.icmp("ne", payload, NULL), "failed")
    into = memory_of(c, payload)
    f.call_pointer(c.plan_word(plan, "kernel"), VOID, into, left, right, c.plan_word(plan, "elements", I64))
    return wrap_result(c, payload)


def memory_of(c: Code, payload: Value) -> Value:
    """Where the elements of a new payload are."""
    return c.field(c.field(payload, "payload._memory"), "bytearray.start")


def wrap_result(c: Code, payload: Value) -> Value:
    """A new tensor of a new payload; its slots about gradients are empty. At ``failed`` when memory is out."""
    result = c.f.call("new_tensor", PTR)
    with c.f.if_then(c.f.icmp("eq", result, NULL)):
        c.drop(payload)
        c.f.jump("failed")
    c.put(result, "tensor.payload", payload)
    return result
