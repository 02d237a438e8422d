"""What Python's binary operators call on tensors: ``enter_add(left, right)`` and the like.

An application that a plan knows is done here; any other one by the method of the class, which may leave a plan.
"""

from __future__ import annotations

from functools import partial

from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.layout import OPERATORS, PLAN_WORDS, PLANS, Layout
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import I32, I64, PTR, VOID, Value, constant

__all__ = ["ENTRIES", "add_entries"]

ENTRIES = {name: f"enter_{name}" for name in OPERATORS}
"""The exported functions, by operator."""

_CONTIGUOUS_ALIGNED = 0x101  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
_ITEMS = 24  # ob_item of a tuple


def add_entries(module: Module, layout: Layout) -> None:
    """Define the entries of all operators."""
    _add_data(module, layout)
    _add_version(module, layout)
    _add_edge(module, layout)
    _add_saved(module, layout)
    _add_record(module, layout)
    _add_method(module, layout)
    for name in OPERATORS:
        _add_entry(module, layout, name)


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
    """``saved(keeps, left, right, result)``: the tuple of (payload, version) of those that have a bit."""
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
        for bit, tensor in enumerate(tensors):
            with f.when(f.icmp("ne", f.binary("and", keeps, 1 << bit), 0)):
                payload = c.field(tensor, "tensor.payload")
                version = f.call("version", PTR, payload)
                version = f.select(c.same(version, NULL), c.word("zero"), version)
                entry = _pair(c, payload, version)
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
        edges = c.call("PyTuple_New", PTR, constant(I64, 2))
        c.need(f.icmp("ne", edges, NULL), "failed")
        c.put(node, "node.edges", edges)
        for bit, place, operand in ((2, _ITEMS, left), (1, _ITEMS + 8, right)):
            wanted = f.icmp("ne", f.binary("and", wants, bit), 0)
            (edge,) = f.either(wanted, partial(_edge, c, operand), partial(_no_edge, c))
            c.need(f.icmp("ne", edge, NULL), "failed")
            c.put(edges, place, edge)
        f.ret(constant(I32, 1))
        f.start("failed")
        f.ret(constant(I32, 0))


def _edge(c: Code, operand: Value) -> list[Value]:
    return [c.f.call("edge", PTR, operand)]


def _no_edge(c: Code) -> list[Value]:
    nothing = c.word("none")
    c.hold(nothing)
    return [nothing]


def _add_method(module: Module, layout: Layout) -> None:
    """``by_method(left, right, method, reflected)``: as Python does where a class has these methods."""
    parameters = [(PTR, each) for each in ("left", "right", "method", "reflected")]
    with module.function("by_method", parameters, PTR, export=False) as f:
        c = Code(f, layout)
        left, right, method, reflected = f.arguments
        ours = c.is_a(left, "tensor")
        arguments = f.alloca(PTR, 2)
        f.store(f.select(ours, left, right), arguments)
        f.store(f.select(ours, right, left), f.at(arguments, 1, PTR))
        chosen = f.select(ours, method, reflected)
        f.ret(c.call("PyObject_Vectorcall", PTR, chosen, arguments, constant(I64, 2), NULL))


def _add_entry(module: Module, layout: Layout, name: str) -> None:
    with module.function(ENTRIES[name], [(PTR, "left"), (PTR, "right")], PTR) as f:
        c = Code(f, layout)
        left, right = f.arguments
        for x in (left, right):
            c.need(c.is_a(x, "tensor"), "slow")
        c.need(c.same(c.field(c.word("ambient"), "ambient.word"), c.word("zero")), "slow")
        payloads = [_payload(c, x) for x in (left, right)]
        plan = _plan(c, OPERATORS.index(name) + 1, *[c.field(p, "payload.array_type") for p in payloads])
        wants = f.binary("add", f.binary("shl", _wants(c, left), 1), _wants(c, right))
        data = [f.call("data", PTR, p) for p in payloads]
        for each in data:
            c.need(f.icmp("ne", each, NULL), "slow")
        with f.when(f.icmp("eq", wants, 0)):
            result = _computed(c, plan, data)
            c.give(result, "tensor.stop_gradient", c.word("true"))
            c.give(result, "tensor._node", c.word("none"))
            f.ret(result)
        recipe, called, keeps = _recipe(c, plan, wants)
        for bit, payload in enumerate(payloads):
            with f.when(f.icmp("ne", f.binary("and", keeps, 1 << bit), 0)):
                c.need(f.icmp("ne", f.call("version", PTR, payload), NULL), "slow")
        result = _computed(c, plan, data)
        done = f.call("record", I32, recipe, called, keeps, wants, left, right, result)
        c.need(f.icmp("ne", done, 0), "undo")
        f.ret(result)
        f.start("undo")
        c.drop(result)
        f.jump("failed")
        f.start("failed")
        f.ret(NULL)
        f.start("slow")
        f.ret(f.call("by_method", PTR, left, right, c.word(f"{name}.method"), c.word(f"{name}.reflected")))


def _payload(c: Code, x: Value) -> Value:
    """The payload of a tensor; at ``slow`` where it is no strided one."""
    payload = c.field(x, "tensor.payload")
    c.need(c.f.icmp("ne", payload, NULL), "slow")
    c.need(c.is_a(payload, "payload"), "slow")
    return payload


def _plan(c: Code, operator: int, left: Value, right: Value) -> Value:
    """The plan for operands of these types; at ``slow`` where there is none. See ``plans.place``."""
    f = c.f
    x, y = (f.op(I64, f"ptrtoint {each} to i64") for each in (left, right))
    mixed = f.binary("xor", f.binary("lshr", x, 4), f.binary("lshr", y, 5))
    place = f.binary("and", f.binary("xor", mixed, operator * 37), PLANS - 1)
    plan = f.at(Value(PTR, "@plans"), f.mul(place, len(PLAN_WORDS)), I64)
    c.need(c.same(c.planned(plan, "left"), left), "slow")
    c.need(c.same(c.planned(plan, "right"), right), "slow")
    c.need(f.icmp("eq", c.planned(plan, "operator", I64), operator), "slow")
    return plan


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


def _computed(c: Code, plan: Value, data: list[Value]) -> Value:
    """A tensor with the result; its slots about gradients are empty. At ``failed`` when memory is out."""
    f = c.f
    kernel, elements = c.planned(plan, "kernel"), c.planned(plan, "elements", I64)
    payload = f.call("new_payload", PTR, plan)
    c.need(f.icmp("ne", payload, NULL), "failed")
    into = c.field(c.field(payload, "payload._memory"), "bytearray.start")
    f.call_pointer(kernel, VOID, into, *data, elements)
    result = f.call("new_tensor", PTR)
    with f.when(f.icmp("eq", result, NULL)):
        c.drop(payload)
        f.jump("failed")
    c.put(result, "tensor.payload", payload)
    return result
