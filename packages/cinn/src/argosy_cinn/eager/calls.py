"""Calls of operators with any arguments: ``invoke(callee, reading)``, see `signatures`.

A plan that is found says all about the result: a compiled program makes it, or it is a view of the first operand. For
anything else the result is :data:`~argosy_cinn.eager.application.SLOW`, with nothing done.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy_cinn.eager.application import (
    SLOW,
    join_blockers,
    leave_unrecorded,
    memory_of,
    need_no_layers,
    need_silence,
    silence,
    wants_gradient,
    wrap_result,
)
from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.recording import bit_of
from argosy_cinn.eager.signatures import operands_of
from argosy_cinn.eager.slot_offsets import OPERANDS, PLAN_WORDS, RECIPES, TABLE, SlotOffsets
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import I32, I64, PTR, VOID, Value, constant

__all__ = ["add_calls"]

_TUPLE_ITEMS = 24  # ob_item


@dataclass(frozen=True)
class _Call:
    """A call as it is read: its ``plan``, ``count`` operands, the ``given`` data of those that are tensors and of the
    generator's state, and what blocks the gradient of the result."""

    plan: Value
    count: Value
    operands: Value
    datas: Value
    given: Value
    blockers: Value


def add_calls(module: Module, layout: SlotOffsets) -> None:
    """Define ``invoke``."""
    _add_several(module, layout)
    _add_compute(module, layout)
    _add_bounds(module)
    with module.function("invoke", [(PTR, "callee"), (PTR, "reading")], PTR, export=False) as f:
        c = Code(f, layout)
        callee, reading = f.arguments
        silent = need_no_layers(c)
        plan = f.call("find_call", PTR, callee, reading)
        c.need(f.icmp("ne", plan, NULL), "slow")
        call, wishes = _read_operands(c, plan, reading)
        draws = _read_generator(c, call)
        inputs = f.load(I64, call.given)
        with f.if_then(f.icmp("ne", c.plan_word(plan, "bounds"), NULL)):
            c.need(f.icmp("ne", f.call("in_bounds", I32, c.plan_word(plan, "bounds"), call.datas), 0), "slow")
        wants = _recorded_wishes(c, call, wishes, silent)
        several = c.plan_word(plan, "several")
        c.need(f.icmp("ne", wants, 0), "unrecorded")
        c.need(f.icmp("eq", several, NULL), "slow")  # the tape has a node for all of them
        c.need(f.icmp("eq", draws, NULL), "slow")  # the tape keeps the state as a tensor
        _give_recorded(c, call, wants, inputs)
        f.start("unrecorded")
        _give_unrecorded(c, call, inputs, several, draws)
        f.start("none")
        with f.if_then(f.icmp("ne", c.call("PyErr_Occurred", PTR), NULL)):
            f.ret(NULL)
        f.jump("slow")
        f.start("slow")
        f.ret(SLOW)


def _read_operands(c: Code, plan: Value, reading: Value) -> tuple[_Call, Value]:
    """The call of a plan, and which of its operands want gradients."""
    f = c.f
    count, tensors = c.plan_word(plan, "operands", I64), operands_of(c, reading)
    operands, numbers = f.alloca(PTR, OPERANDS + 1), c.plan_word(plan, "numbers")
    datas, given = f.alloca(PTR, OPERANDS + 1), f.alloca(I64, 1)
    f.store(constant(I64, 0), given)
    spot, blockers = f.alloca(I64, 1), f.alloca(PTR, 1)
    f.store(constant(I64, 0), spot)
    f.store(c.word("none"), blockers)
    with f.loop(0, count, carry=[constant(I64, 0)]) as loop:
        number = f.load(PTR, f.gep(numbers, loop.index, PTR))
        place = f.gep(operands, loop.index, PTR)
        tensor, following = f.name("tensor"), f.name("following")
        f.store(number, place)
        before = f.label
        f.branch(f.icmp("eq", number, NULL), tensor, following)
        f.start(tensor)
        at = f.load(I64, given)
        x = f.load(PTR, f.gep(tensors, at, PTR))
        f.store(x, place)
        data = _data(c, plan, c.field(x, "tensor.payload"), spot)
        f.store(data, f.gep(datas, at, PTR))
        f.store(f.index(f.add(at, 1)), given)
        join_blockers(c, blockers, c.field(x, "tensor._gradient_blockers"))
        wish = f.binary("or", loop.carry[0], f.binary("shl", wants_gradient(c, x), loop.index))
        after = f.label
        f.jump(following)
        f.start(following)
        loop.yield_values(f.phi([(loop.carry[0], before), (wish, after)]))
    return _Call(plan, count, operands, datas, given, blockers), loop.carry[0]


def _read_generator(c: Code, call: _Call) -> Value:
    """The state of the generator that the plan draws from, which is one more input, or null."""
    f = c.f
    draws = c.plan_word(call.plan, "draws")
    with f.if_then(f.icmp("ne", draws, NULL)):
        _need_generator(c, call.plan, draws)
        at = f.load(I64, call.given)
        f.store(c.field(draws, "ndarray.data"), f.gep(call.datas, at, PTR))
        f.store(f.index(f.add(at, 1)), call.given)
    return draws


def _recorded_wishes(c: Code, call: _Call, wishes: Value, silent: Value) -> Value:
    """The operands whose gradients are recorded: none under a blocker, or where the plan has no derivative."""
    f = c.f
    wanted = f.alloca(I64, 1)
    f.store(wishes, wanted)
    with f.if_then(f.icmp("ne", wishes, 0)):
        unrecorded = c.plan_word(call.plan, "unrecorded", I64)
        with f.if_then(f.icmp("ne", silent, c.word("zero"))):
            need_silence(c, silent)
            silence(c, call.blockers)
            f.store(constant(I64, 0), wanted)
        c.need(c.one_of(f.icmp("ne", unrecorded, 1), f.icmp("eq", f.load(I64, wanted), 0)), "slow")  # a blocker
        with f.if_then(f.icmp("ne", unrecorded, 0)):
            f.store(constant(I64, 0), wanted)
    return f.load(I64, wanted)


def _give_recorded(c: Code, call: _Call, wants: Value, inputs: Value) -> None:
    """Compute, record and return the result."""
    f = c.f
    recipe = _recipe(c, call.plan, wants)
    called, keeps = f.load(PTR, f.gep(recipe, 2, I64)), f.load(I64, f.gep(recipe, 3, I64))
    with f.loop(0, call.count) as loop, f.if_then(bit_of(c, keeps, loop.index)):
        x = f.load(PTR, f.gep(call.operands, loop.index, PTR))
        with f.if_then(c.is_a(x, "tensor")):
            version = f.call("version", PTR, c.field(x, "tensor.payload"))
            c.need(f.icmp("ne", version, NULL), "slow")
    result = f.call("computed", PTR, call.plan, call.operands, call.datas, inputs)
    c.need(_is_object(c, result), "none")
    recipe = f.load(PTR, f.gep(recipe, 1, I64))
    done = f.call("record", I32, recipe, called, keeps, wants, call.operands, call.count, result)
    c.need(f.icmp("ne", done, 0), "undo")
    c.give(result, "tensor._gradient_blockers", f.load(PTR, call.blockers))
    f.ret(result)
    f.start("undo")
    c.drop(result)
    f.ret(NULL)


def _give_unrecorded(c: Code, call: _Call, inputs: Value, several: Value, draws: Value) -> None:
    """Compute and return the result, or all of ``several``, and count what was drawn."""
    f = c.f
    result = f.call("computed", PTR, call.plan, call.operands, call.datas, inputs)
    c.need(_is_object(c, result), "none")
    with f.if_then(f.icmp("ne", several, NULL)):
        with f.loop(0, f.load(I64, several)) as loop:
            one = f.load(PTR, f.gep(f.gep(result, _TUPLE_ITEMS, "i8"), loop.index, PTR))
            leave_unrecorded(c, one, f.load(PTR, call.blockers))
        f.ret(result)
    leave_unrecorded(c, result, f.load(PTR, call.blockers))
    with f.if_then(f.icmp("ne", draws, NULL)):
        drawn = f.gep(c.field(draws, "ndarray.data"), 1, I64)
        f.store(f.index(f.add(f.load(I64, drawn), 1)), drawn)
    f.ret(result)


def _data(c: Code, plan: Value, payload: Value, spot: Value) -> Value:
    """Contiguous data of a payload, or of its copy, but for views; at ``slow`` where there is none."""
    f = c.f
    data, found = f.call("data", PTR, payload), f.alloca(PTR, 1)
    f.store(data, found)
    with f.if_then(f.icmp("eq", data, NULL)):
        c.need(f.icmp("eq", c.plan_word(plan, "strides"), NULL), "slow")
        f.store(f.call("packed", PTR, payload, spot), found)
    c.need(f.icmp("ne", f.load(PTR, found), NULL), "slow")
    return f.load(PTR, found)


def _need_generator(c: Code, plan: Value, draws: Value) -> None:
    """Go on where numbers are still drawn from the plan's generator, whose state is in that array; else at ``slow``."""
    generator = c.plan_word(plan, "generator")
    c.need(c.is_same(c.field(c.word("context"), "context._generator"), generator), "slow")
    c.need(c.is_same(c.field(generator, "generator._state"), draws), "slow")


def _is_object(c: Code, x: Value) -> Value:
    return c.f.icmp("ne", x, NULL)


def _recipe(c: Code, plan: Value, wants: Value) -> Value:
    """Where the recipe for operands that want gradients is; at ``slow`` where it is not known yet."""
    f = c.f
    found, table = f.name("found"), f.gep(plan, PLAN_WORDS.index("recipes"), I64)
    place = f.alloca(PTR, 1)
    with f.loop(0, RECIPES) as loop:
        at = f.gep(table, f.mul(loop.index, 4), I64)
        f.store(at, place)
        other = f.name("other")
        c.need(f.icmp("eq", f.load(I64, at), wants), other)
        f.jump(found)
        f.start(other)
    f.jump("slow")
    f.start(found)
    return f.load(PTR, place)


def _add_compute(module: Module, layout: SlotOffsets) -> None:
    """``computed(plan, operands, datas, count)``: a tensor with the result, or a tuple of several; their slots about
    gradients are empty. Null where Python has to do it, or when memory is out."""
    parameters = [(PTR, "plan"), (PTR, "operands"), (PTR, "datas"), (I64, "count")]
    # the short copies below must not become calls of memcpy, which a shared object without a linker cannot make
    with module.function("computed", parameters, PTR, export=False, attributes='"no-builtins"') as f:
        c = Code(f, layout)
        plan, operands, datas, count = f.arguments
        with f.if_then(f.icmp("ne", c.plan_word(plan, "several"), NULL)):
            f.ret(f.call("computed_several", PTR, plan, operands, datas, count))
        with f.if_then(f.icmp("ne", c.plan_word(plan, "strides"), NULL)):
            base = c.field(f.load(PTR, operands), "tensor.payload")
            view = f.call("new_view", PTR, plan, base, f.load(PTR, datas))
            c.need(f.icmp("ne", view, NULL), "failed")
            f.ret(wrap_result(c, view))
        payload = f.call("new_payload", PTR, plan)
        c.need(f.icmp("ne", payload, NULL), "failed")
        kernel, table = c.plan_word(plan, "kernel"), c.plan_word(plan, "table")
        into = memory_of(c, payload)
        with f.if_then(f.icmp("eq", table, NULL)):  # one of our own kernels
            other = f.load(PTR, f.gep(datas, 1, PTR))
            f.call_pointer(kernel, VOID, into, f.load(PTR, datas), other, c.plan_word(plan, "elements", I64))
            f.ret(wrap_result(c, payload))
        filled = _fill(c, table, datas, count)
        f.store(into, f.gep(filled, c.plan_word(plan, "output", I64), PTR))
        f.call_pointer(kernel, VOID, filled, NULL)
        f.ret(wrap_result(c, payload))
        f.start("failed")
        f.ret(NULL)


def _fill(c: Code, table: Value, datas: Value, count: Value) -> Value:
    """The table of a compiled program, with the data of its inputs."""
    f = c.f
    filled = f.alloca(PTR, TABLE)
    for i in range(TABLE):
        f.store(f.load(PTR, f.gep(table, i, PTR)), f.gep(filled, i, PTR))
    with f.loop(0, count) as loop:
        f.store(f.load(PTR, f.gep(datas, loop.index, PTR)), f.gep(filled, f.add(loop.index, 1), PTR))
    return filled


def _add_several(module: Module, layout: SlotOffsets) -> None:
    """``computed_several(plan, operands, datas, count)``: a tuple of tensors, what a compiled program gives or views of
    the first operand; their slots about gradients are empty. Null as for ``computed``."""
    parameters = [(PTR, "plan"), (PTR, "operands"), (PTR, "datas"), (I64, "count")]
    with module.function("computed_several", parameters, PTR, export=False, attributes='"no-builtins"') as f:
        c = Code(f, layout)
        plan, operands, datas, count = f.arguments
        several, kernel = c.plan_word(plan, "several"), c.plan_word(plan, "kernel")
        total = f.load(I64, several)
        results = c.call("PyTuple_New", PTR, total)
        c.need(f.icmp("ne", results, NULL), "none")
        views = f.icmp("ne", c.plan_word(plan, "strides"), NULL)
        table = c.plan_word(plan, "table")
        spare = f.alloca(PTR, TABLE)  # for views
        filled = _fill(c, f.select(views, spare, table), datas, f.select(views, constant(I64, 0), count))
        output = c.plan_word(plan, "output", I64)
        made = f.alloca(PTR, 1)
        with f.loop(0, total) as loop:
            one = f.load(PTR, f.gep(several, f.add(loop.index, 1), PTR))
            with f.if_then(views):
                base = c.field(f.load(PTR, operands), "tensor.payload")
                f.store(f.call("new_view", PTR, one, base, f.load(PTR, datas)), made)
            with f.if_then(f.icmp("eq", c.plan_word(plan, "strides"), NULL)):
                f.store(f.call("new_payload", PTR, one), made)
            payload = f.load(PTR, made)
            c.need(f.icmp("ne", payload, NULL), "failed")
            with f.if_then(f.icmp("eq", c.plan_word(plan, "strides"), NULL)):
                f.store(memory_of(c, payload), f.gep(filled, f.add(output, loop.index), PTR))
            result = wrap_result(c, payload)
            f.store(result, f.gep(f.gep(results, _TUPLE_ITEMS, "i8"), loop.index, PTR))
        with f.if_then(f.icmp("eq", c.plan_word(plan, "strides"), NULL)):
            f.call_pointer(kernel, VOID, filled, NULL)
        f.ret(results)
        f.start("failed")
        c.drop(results)
        f.jump("none")
        f.start("none")
        f.ret(NULL)


def _add_bounds(module: Module) -> None:
    """``in_bounds(bounds, datas)``: whether all indices are in range."""
    with module.function("in_bounds", [(PTR, "bounds"), (PTR, "datas")], I32, export=False) as f:
        bounds, datas = f.arguments
        with f.loop(0, f.load(I64, bounds)) as loop:
            said = f.gep(bounds, f.add(f.mul(loop.index, 6), 1), I64)
            at, count, size, low, high, besides = (f.load(I64, f.gep(said, i, I64)) for i in range(6))
            data = f.load(PTR, f.gep(datas, at, PTR))
            for bytes_, element in ((4, I32), (8, I64)):
                with f.if_then(f.icmp("eq", size, bytes_)), f.loop(0, count) as each:
                    index = f.load(element, f.gep(data, each.index, element))
                    wide = index if element == I64 else f.op(I64, f"sext {index} to i64")
                    good = f.binary("and", f.icmp("sge", wide, low), f.icmp("sle", wide, high))
                    good = f.binary("or", good, f.icmp("eq", wide, besides))
                    inside = f.name("inside")
                    f.branch(good, inside, "out")
                    f.start(inside)
        f.ret(constant(I32, 1))
        f.start("out")
        f.ret(constant(I32, 0))
