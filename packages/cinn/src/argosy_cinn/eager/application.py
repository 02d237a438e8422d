"""Applying an operator to one or two operands: ``apply(operator, left, right)``, with nothing on the right for one.

Operands are tensors, or a number beside a tensor. What a plan knows is done here: operands, kernel, result, node. For
anything else the result is :data:`SLOW`, with nothing done.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.layout import PLAN_WORDS, PLANS, TABLE, Layout
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import DOUBLE, I1, I32, I64, PTR, VOID, Value, constant

__all__ = ["SLOW", "add_application"]

SLOW = Value(PTR, "@state")
"""What stands for a result where Python has to do the work."""

_ITEMS = 24  # ob_item of a tuple
_NUMBER, _DIGIT = 16, 24  # ob_fval of a float; ob_size and the first digit of an int
_CONTIGUOUS_ALIGNED = 0x101  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
_ITEMS = 24  # ob_item of a tuple


def add_application(module: Module, layout: Layout) -> None:
    """Define ``apply`` and what it needs."""
    _add_data(module, layout)
    _add_version(module, layout)
    _add_edge(module, layout)
    _add_saved(module, layout)
    _add_record(module, layout)
    _add_apply(module, layout)


def _add_data(module: Module, layout: Layout) -> None:
    """``data(payload)``: the first element of contiguous data that the host sees; null for any other."""
    with module.function("data", [(PTR, "payload")], PTR, export=False) as f:
        c = Code(f, layout)
        array = c.field(f.arguments[0], "payload.ndarray")
        with f.when(f.icmp("ne", array, NULL)):
            c.need(c.is_a(array, "ndarray"), "none")
            flags = f.binary("and", c.field(array, "ndarray.flags", I32), _CONTIGUOUS_ALIGNED)
            c.need(f.icmp("eq", flags, _CONTIGUOUS_ALIGNED), "none")
            f.ret(c.field(array, "ndarray.data"))
        memory = c.field(f.arguments[0], "payload._memory")
        c.need(f.icmp("ne", memory, NULL), "none")
        c.need(c.is_a(memory, "bytearray"), "none")
        f.ret(c.field(memory, "bytearray.start"))
        f.start("none")
        f.ret(NULL)


def _add_version(module: Module, layout: Layout) -> None:
    """``version(payload)``: how often the data was written, as an object that is not counted; null where that is not
    easily told."""
    with module.function("version", [(PTR, "payload")], PTR, export=False) as f:
        c = Code(f, layout)
        storage = c.field(f.arguments[0], "payload._storage")
        with f.when(c.same(storage, c.word("none"))):
            f.ret(c.word("zero"))
        c.need(f.icmp("ne", storage, NULL), "unknown")
        c.need(c.is_a(storage, "storage"), "unknown")
        f.ret(c.field(storage, "storage.version"))
        f.start("unknown")
        f.ret(NULL)


def _pair(c: Code, first: Value, second: Value) -> Value:
    """A new tuple of two objects, which are counted; null when memory is out."""
    made = c.call("PyTuple_New", PTR, constant(I64, 2))
    with c.f.when(c.f.icmp("ne", made, NULL)):
        c.hold(first)
        c.put(made, _ITEMS, first)
        c.hold(second)
        c.put(made, _ITEMS + 8, second)
    return made


def _add_edge(module: Module, layout: Layout) -> None:
    """``edge(x)``: where the gradient of a tensor goes, see ``tape.Edge``."""
    with module.function("edge", [(PTR, "x")], PTR, export=False) as f:
        c = Code(f, layout)
        x = f.arguments[0]
        node, slot = c.field(x, "tensor._node"), c.field(x, "tensor._slot")
        leaf = c.same(node, c.word("none"))
        slot = f.select(c.one_of(leaf, c.same(slot, NULL)), c.word("zero"), slot)
        f.ret(_pair(c, f.select(leaf, x, node), slot))


def _add_saved(module: Module, layout: Layout) -> None:
    """``saved(keeps, left, right, result)``: the tuple of (payload, version) of those that have a bit; of a number
    (number, None)."""
    parameters = [(I64, "keeps"), (PTR, "left"), (PTR, "right"), (PTR, "result")]
    with module.function("saved", parameters, PTR, export=False) as f:
        c = Code(f, layout)
        keeps, *tensors = f.arguments
        with f.when(f.icmp("eq", keeps, 0)):
            c.hold(c.word("empty"))
            f.ret(c.word("empty"))
        made = c.call("PyTuple_New", PTR, f.intrinsic("llvm.ctpop", I64, keeps))
        c.need(f.icmp("ne", made, NULL), "failed")
        at = f.alloca(PTR, 1)
        f.store(f.at(made, _ITEMS, "i8"), at)
        for bit, operand in enumerate(tensors):
            with f.when(f.icmp("ne", f.binary("and", keeps, 1 << bit), 0)):
                (entry,) = f.either(
                    c.is_a(operand, "tensor"),
                    partial(_saved_tensor, c, operand),
                    partial(_saved_number, c, operand),
                )
                c.need(f.icmp("ne", entry, NULL), "incomplete")
                place = f.load(PTR, at)
                f.store(entry, place)
                f.store(f.at(place, 8, "i8"), at)
        f.ret(made)
        f.start("incomplete")
        c.drop(made)
        f.jump("failed")
        f.start("failed")
        f.ret(NULL)


def _saved_tensor(c: Code, x: Value) -> list[Value]:
    payload = c.field(x, "tensor.payload")
    version = c.f.call("version", PTR, payload)
    return [_pair(c, payload, c.f.select(c.same(version, NULL), c.word("zero"), version))]


def _saved_number(c: Code, x: Value) -> list[Value]:
    return [_pair(c, x, c.word("none"))]


def _add_record(module: Module, layout: Layout) -> None:
    """``record(recipe, name, keeps, wants, left, right, result)``: leave a node; 0 when memory is out."""
    parameters = [(PTR, "recipe"), (PTR, "name"), (I64, "keeps"), (I64, "wants")]
    parameters += [(PTR, "left"), (PTR, "right"), (PTR, "result")]
    with module.function("record", parameters, I32, export=False) as f:
        c = Code(f, layout)
        recipe, name, keeps, wants, left, right, result = f.arguments
        node = f.call("new_node", PTR, recipe, name)
        c.need(f.icmp("ne", node, NULL), "failed")
        c.put(result, "tensor._node", node)
        c.give(result, "tensor._slot", c.word("zero"))
        c.give(result, "tensor.stop_gradient", c.word("false"))
        saved = f.call("saved", PTR, keeps, left, right, result)
        c.need(f.icmp("ne", saved, NULL), "failed")
        c.put(node, "node.saved", saved)
        alone = c.same(right, NULL)
        first, second = (_wanted(c, wants, bit, x) for bit, x in ((2, left), (1, right)))
        with f.when(c.both(_is_first_result(c, first), _is_first_result(c, second))):
            c.give(node, "node.before", _onward(c, first))
            with f.when(f.icmp("ne", right, NULL)):
                c.give(node, "node.other", _onward(c, second))
            f.ret(constant(I32, 1))
        edges = c.call("PyTuple_New", PTR, f.select(alone, constant(I64, 1), constant(I64, 2)))
        c.need(f.icmp("ne", edges, NULL), "failed")
        c.put(node, "node.edges", edges)
        _fill_edge(c, edges, 0, f.binary("and", wants, 2), left)
        with f.when(alone):
            f.ret(constant(I32, 1))
        _fill_edge(c, edges, 1, f.binary("and", wants, 1), right)
        f.ret(constant(I32, 1))
        f.start("failed")
        f.ret(constant(I32, 0))


def _wanted(c: Code, wants: Value, bit: int, operand: Value) -> Value:
    """The operand, null where it wants no gradient."""
    return c.f.select(c.f.icmp("ne", c.f.binary("and", wants, bit), 0), operand, NULL)


def _is_first_result(c: Code, x: Value) -> Value:
    """Whether the gradient of a tensor goes to a leaf or to the first result of a node; also of null."""

    def of_tensor() -> list[Value]:
        slot = c.field(x, "tensor._slot")
        leaf = c.same(c.field(x, "tensor._node"), c.word("none"))
        return [c.one_of(leaf, c.one_of(c.same(slot, NULL), c.same(slot, c.word("zero"))))]

    return c.f.either(c.f.icmp("ne", x, NULL), of_tensor, lambda: [constant(I1, True)])[0]


def _onward(c: Code, x: Value) -> Value:
    """Where the gradient of a tensor goes: a node or a leaf; None for null."""

    def of_tensor() -> list[Value]:
        node = c.field(x, "tensor._node")
        return [c.f.select(c.same(node, c.word("none")), x, node)]

    return c.f.either(c.f.icmp("ne", x, NULL), of_tensor, lambda: [c.word("none")])[0]


def _fill_edge(c: Code, edges: Value, at: int, wanted: Value, operand: Value) -> None:
    """Put the edge of an operand in the tuple, None where no gradient is wanted; at ``failed`` when memory is out."""
    (edge,) = c.f.either(c.f.icmp("ne", wanted, 0), partial(_edge, c, operand), partial(_no_edge, c))
    c.need(c.f.icmp("ne", edge, NULL), "failed")
    c.put(edges, _ITEMS + 8 * at, edge)


def _edge(c: Code, operand: Value) -> list[Value]:
    return [c.f.call("edge", PTR, operand)]


def _no_edge(c: Code) -> list[Value]:
    nothing = c.word("none")
    c.hold(nothing)
    return [nothing]


class _Operand(NamedTuple):
    """What ``apply`` knows of an operand: its type as plans name it, where its data is, its payload (null of a number
    and of nothing), and 1 where it wants a gradient, else 0."""

    key: Value
    data: Value
    payload: Value
    wants: Value


def _add_apply(module: Module, layout: Layout) -> None:
    with module.function("apply", [(PTR, each) for each in ("operator", "left", "right")], PTR, export=False) as f:
        c = Code(f, layout)
        operator, left, right = f.arguments
        departs = c.field(c.word("ambient"), "ambient.word")
        c.need(c.same(departs, c.field(c.word("ambient"), "ambient.silent")), "slow")  # no layers
        alone = c.same(right, NULL)
        first = _operand(c, left)
        second = _Operand(*f.either(alone, lambda: [NULL, NULL, NULL, constant(I64, 0)], lambda: [*_operand(c, right)]))
        plan = _plan(c, operator, first.key, second.key)
        wants = f.binary("add", f.binary("shl", first.wants, 1), second.wants)
        with f.when(c.both(f.icmp("ne", wants, 0), f.icmp("ne", departs, c.word("zero")))):
            _need_silence(c, departs)
            f.jump("unrecorded")
        c.need(f.icmp("ne", wants, 0), "unrecorded")
        recipe, called, keeps = _recipe(c, plan, f.select(alone, f.binary("lshr", wants, 1), wants))
        for bit, payload in enumerate((first.payload, second.payload)):
            kept = f.icmp("ne", f.binary("and", keeps, 1 << bit), 0)
            with f.when(c.both(kept, f.icmp("ne", payload, NULL))):
                c.need(f.icmp("ne", f.call("version", PTR, payload), NULL), "slow")
        result = _computed(c, plan, first.data, second.data)
        done = f.call("record", I32, recipe, called, keeps, wants, left, right, result)
        c.need(f.icmp("ne", done, 0), "undo")
        f.ret(result)
        f.start("unrecorded")
        result_only = _computed(c, plan, first.data, second.data)
        c.give(result_only, "tensor.stop_gradient", c.word("true"))
        c.give(result_only, "tensor._node", c.word("none"))
        f.ret(result_only)
        f.start("undo")
        c.drop(result)
        f.jump("failed")
        f.start("failed")
        f.ret(NULL)
        f.start("slow")
        f.ret(SLOW)


def _need_silence(c: Code, departs: Value) -> None:
    """Go on where it is this thread, and no other one, that records nothing; else at ``slow``."""
    f = c.f
    c.need(c.same(departs, c.word("one")), "slow")
    silenced = c.call("PyLong_AsLongLong", I64, c.field(c.word("ambient"), "ambient.silenced"))
    c.need(f.icmp("eq", silenced, c.call("PyThread_get_thread_ident", I64)), "slow")


def _operand(c: Code, x: Value) -> _Operand:
    """An operand; at ``slow`` where it is neither a tensor with data that can be read here nor a plain number."""
    spot = c.f.alloca(DOUBLE, 1)
    return _Operand(*c.f.either(c.is_a(x, "tensor"), partial(_tensor, c, x), partial(_number, c, x, spot)))


def _tensor(c: Code, x: Value) -> list[Value]:
    payload = _payload(c, x)
    data = c.f.call("data", PTR, payload)
    c.need(c.f.icmp("ne", data, NULL), "slow")
    return [c.field(payload, "payload.array_type"), data, payload, _wants(c, x)]


def _number(c: Code, x: Value, spot: Value) -> list[Value]:
    """A float, or an int of one digit at most: both are doubles exactly."""
    f = c.f
    f.either(c.is_a(x, "float"), partial(_put_float, c, x, spot), partial(_put_int, c, x, spot))
    return [c.type_of(x), spot, NULL, constant(I64, 0)]


def _put_float(c: Code, x: Value, spot: Value) -> list[Value]:
    c.f.store(c.field(x, _NUMBER, DOUBLE), spot)
    return []


def _put_int(c: Code, x: Value, spot: Value) -> list[Value]:
    f = c.f
    c.need(c.is_a(x, "int"), "slow")
    digits = c.field(x, _NUMBER, I64)  # negative for negative numbers
    c.need(f.icmp("ult", f.index(f.add(digits, 1)), 3), "slow")
    digit = f.op(I64, f"zext {c.field(x, _DIGIT, I32)} to i64")
    whole = f.index(f.mul(digits, digit))
    f.store(f.op(DOUBLE, f"sitofp {whole} to double"), spot)
    return []


def _payload(c: Code, x: Value) -> Value:
    """The payload of a tensor; at ``slow`` where it is no strided one."""
    payload = c.field(x, "tensor.payload")
    c.need(c.f.icmp("ne", payload, NULL), "slow")
    c.need(c.is_a(payload, "payload"), "slow")
    return payload


def _plan(c: Code, operator: Value, left: Value, right: Value) -> Value:
    """The plan for operands of these types; at ``slow`` where there is none. See ``plans.place``."""
    f = c.f
    mixed = [
        f.binary("lshr", f.op(I64, f"ptrtoint {each} to i64"), by)
        for each, by in ((left, 4), (right, 5), (operator, 6))
    ]
    place = f.binary("and", f.binary("xor", f.binary("xor", mixed[0], mixed[1]), mixed[2]), PLANS - 1)
    sought = {"left": left, "right": right, "operator": operator}
    first, other = (
        f.at(Value(PTR, "@plans"), f.mul(each, len(PLAN_WORDS)), I64) for each in (place, f.binary("xor", place, 1))
    )
    plan = f.select(_is_plan(c, first, sought), first, other)
    c.need(_is_plan(c, plan, sought), "slow")
    return plan


def _is_plan(c: Code, plan: Value, sought: dict[str, Value]) -> Value:
    same = [c.same(c.planned(plan, word), found) for word, found in sought.items()]
    return c.both(c.both(same[0], same[1]), same[2])


def _wants(c: Code, x: Value) -> Value:
    """1 where a tensor wants a gradient, else 0; at ``slow`` where that is not said by a bool."""
    f = c.f
    said = c.field(x, "tensor.stop_gradient")
    wants = c.same(said, c.word("false"))
    c.need(c.one_of(wants, c.same(said, c.word("true"))), "slow")
    with f.when(wants):
        c.need(f.icmp("ne", c.field(x, "tensor._node"), NULL), "slow")
    return f.op(I64, f"zext {wants} to i64")


def _recipe(c: Code, plan: Value, wants: Value) -> tuple[Value, Value, Value]:
    """The recipe, its name and what it keeps; at ``slow`` where it is not known yet."""
    f = c.f
    first = f.at(plan, PLAN_WORDS.index("recipe1"), I64)
    at = f.at(first, f.mul(f.index(f.sub(wants, 1)), 3), I64)
    recipe = f.load(PTR, at)
    c.need(f.icmp("ne", recipe, NULL), "slow")
    return recipe, f.load(PTR, f.at(at, 1, I64)), f.load(I64, f.at(at, 2, I64))


def _computed(c: Code, plan: Value, left: Value, right: Value) -> Value:
    """A tensor with the result; its slots about gradients are empty. At ``failed`` when memory is out."""
    f = c.f
    payload = f.call("new_payload", PTR, plan)
    c.need(f.icmp("ne", payload, NULL), "failed")
    into = c.field(c.field(payload, "payload._memory"), "bytearray.start")
    kernel, table = c.planned(plan, "kernel"), c.planned(plan, "table")
    f.either(
        c.same(table, NULL),
        partial(_run_kernel, c, kernel, into, left, right, c.planned(plan, "elements", I64)),
        partial(_run_program, c, kernel, into, left, right, table, c.planned(plan, "output", I64)),
    )
    result = f.call("new_tensor", PTR)
    with f.when(f.icmp("eq", result, NULL)):
        c.drop(payload)
        f.jump("failed")
    c.put(result, "tensor.payload", payload)
    return result


def _run_kernel(c: Code, kernel: Value, into: Value, left: Value, right: Value, count: Value) -> list[Value]:
    c.f.call_pointer(kernel, VOID, into, left, right, count)
    return []


def _run_program(
    c: Code, kernel: Value, into: Value, left: Value, right: Value, table: Value, output: Value
) -> list[Value]:
    """A compiled program: its arena is empty, its constants are in the table."""
    f = c.f
    filled = f.alloca(PTR, TABLE)
    for i in range(TABLE):
        f.store(f.load(PTR, f.at(table, i, PTR)), f.at(filled, i, PTR))
    f.store(left, f.at(filled, 1, PTR))
    with f.when(f.icmp("ne", right, NULL)):
        f.store(right, f.at(filled, 2, PTR))
    f.store(into, f.at(filled, output, PTR))
    f.call_pointer(kernel, VOID, filled, NULL)
    return []
