"""Recording: nodes of the tape, with where gradients go and what the derivative will read."""

from __future__ import annotations

from functools import partial

from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.slot_offsets import SlotOffsets
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import I1, I32, I64, PTR, Value, constant

__all__ = ["add_recording", "bit_of"]

_ITEMS = 24  # ob_item of a tuple


def add_recording(module: Module, layout: SlotOffsets) -> None:
    """Define ``version`` and ``record`` and what they need."""
    _add_version(module, layout)
    _add_edge(module, layout)
    _add_saved(module, layout)
    _add_record(module, layout)


def bit_of(c: Code, bits: Value, number: Value) -> Value:
    """Whether a bit is set."""
    return c.f.icmp("ne", c.f.binary("and", c.f.binary("lshr", bits, number), 1), 0)


def _add_version(module: Module, layout: SlotOffsets) -> None:
    """``version(payload)``: how often the data was written, as an object that is not counted; null where that is not
    easily told."""
    with module.function("version", [(PTR, "payload")], PTR, export=False) as f:
        c = Code(f, layout)
        storage = c.field(f.arguments[0], "payload._storage")
        with f.if_then(c.is_same(storage, c.word("none"))):
            f.ret(c.word("zero"))
        c.need(f.icmp("ne", storage, NULL), "unknown")
        c.need(c.is_a(storage, "storage"), "unknown")
        f.ret(c.field(storage, "storage.version"))
        f.start("unknown")
        f.ret(NULL)


def _pair(c: Code, first: Value, second: Value) -> Value:
    """A new tuple of two objects, which are counted; null when memory is out."""
    made = c.call("PyTuple_New", PTR, constant(I64, 2))
    with c.f.if_then(c.f.icmp("ne", made, NULL)):
        c.hold(first)
        c.put(made, _ITEMS, first)
        c.hold(second)
        c.put(made, _ITEMS + 8, second)
    return made


def _add_edge(module: Module, layout: SlotOffsets) -> None:
    """``edge(x)``: where the gradient of a tensor goes, see ``tape.Edge``."""
    with module.function("edge", [(PTR, "x")], PTR, export=False) as f:
        c = Code(f, layout)
        x = f.arguments[0]
        node, slot = c.field(x, "tensor._node"), c.field(x, "tensor._slot")
        leaf = c.is_same(node, c.word("none"))
        slot = f.select(c.one_of(leaf, c.is_same(slot, NULL)), c.word("zero"), slot)
        f.ret(_pair(c, f.select(leaf, x, node), slot))


def _add_saved(module: Module, layout: SlotOffsets) -> None:
    """``saved(keeps, operands, count, result)``: the tuple of (payload, version) of those that have a bit; of a number
    (number, None)."""
    parameters = [(I64, "keeps"), (PTR, "operands"), (I64, "count"), (PTR, "result")]
    with module.function("saved", parameters, PTR, export=False) as f:
        c = Code(f, layout)
        keeps, operands, count, result = f.arguments
        with f.if_then(f.icmp("eq", keeps, 0)):
            c.hold(c.word("empty"))
            f.ret(c.word("empty"))
        made = c.call("PyTuple_New", PTR, f.intrinsic("llvm.ctpop", I64, keeps))
        c.need(f.icmp("ne", made, NULL), "failed")
        f.store(result, f.gep(operands, count, PTR))  # the array has room for it
        at = f.alloca(PTR, 1)
        f.store(f.gep(made, _ITEMS, "i8"), at)
        with f.loop(0, f.index(f.add(count, 1))) as loop, f.if_then(bit_of(c, keeps, loop.index)):
            operand = f.load(PTR, f.gep(operands, loop.index, PTR))
            (entry,) = f.either(
                c.is_a(operand, "tensor"), partial(_saved_tensor, c, operand), partial(_saved_number, c, operand)
            )
            c.need(f.icmp("ne", entry, NULL), "incomplete")
            place = f.load(PTR, at)
            f.store(entry, place)
            f.store(f.gep(place, 8, "i8"), at)
        f.ret(made)
        f.start("incomplete")
        c.drop(made)
        f.jump("failed")
        f.start("failed")
        f.ret(NULL)


def _saved_tensor(c: Code, x: Value) -> list[Value]:
    payload = c.field(x, "tensor.payload")
    version = c.f.call("version", PTR, payload)
    return [_pair(c, payload, c.f.select(c.is_same(version, NULL), c.word("zero"), version))]


def _saved_number(c: Code, x: Value) -> list[Value]:
    return [_pair(c, x, c.word("none"))]


def _add_record(module: Module, layout: SlotOffsets) -> None:
    """``record(recipe, name, keeps, wants, operands, count, result)``: leave a node; 0 when memory is out. Operands are
    bits by number, the result the one after; ``operands`` has room for one more."""
    parameters = [(PTR, "recipe"), (PTR, "name"), (I64, "keeps"), (I64, "wants")]
    parameters += [(PTR, "operands"), (I64, "count"), (PTR, "result")]
    with module.function("record", parameters, I32, export=False) as f:
        c = Code(f, layout)
        recipe, name, keeps, wants, operands, count, result = f.arguments
        node = f.call("new_node", PTR, recipe, name)
        c.need(f.icmp("ne", node, NULL), "failed")
        c.put(result, "tensor._node", node)
        c.give(result, "tensor._slot", c.word("zero"))
        c.give(result, "tensor.stop_gradient", c.word("false"))
        saved = f.call("saved", PTR, keeps, operands, count, result)
        c.need(f.icmp("ne", saved, NULL), "failed")
        c.put(node, "node.saved", saved)
        c.need(f.icmp("ule", count, 2), "many")
        paired = f.icmp("eq", count, 2)
        first = _wanted_operand(c, bit_of(c, wants, constant(I64, 0)), f.load(PTR, operands))
        wanted = c.logical_and(paired, bit_of(c, wants, constant(I64, 1)))
        second = _wanted_operand(c, wanted, f.load(PTR, f.gep(operands, 1, PTR)))
        c.need(c.logical_and(_is_first_result(c, first), _is_first_result(c, second)), "many")
        c.give(node, "node.before", _onward(c, first))
        with f.if_then(paired):
            c.give(node, "node.other", _onward(c, second))
        f.ret(constant(I32, 1))
        f.start("many")
        edges = c.call("PyTuple_New", PTR, count)
        c.need(f.icmp("ne", edges, NULL), "failed")
        c.put(node, "node.edges", edges)
        with f.loop(0, count) as loop:
            operand = f.load(PTR, f.gep(operands, loop.index, PTR))
            wanted = bit_of(c, wants, loop.index)
            (edge,) = f.either(wanted, partial(_edge, c, operand), partial(_no_edge, c))
            c.need(f.icmp("ne", edge, NULL), "failed")
            f.store(edge, f.gep(f.gep(edges, _ITEMS, "i8"), loop.index, PTR))
        f.ret(constant(I32, 1))
        f.start("failed")
        f.ret(constant(I32, 0))


def _wanted_operand(c: Code, wants: Value, operand: Value) -> Value:
    """The operand, null where it wants no gradient."""
    return c.f.select(wants, operand, NULL)


def _is_first_result(c: Code, x: Value) -> Value:
    """Whether the gradient of a tensor goes to a leaf or to the first result of a node; also of null."""

    def of_tensor() -> list[Value]:
        slot = c.field(x, "tensor._slot")
        leaf = c.is_same(c.field(x, "tensor._node"), c.word("none"))
        return [c.one_of(leaf, c.one_of(c.is_same(slot, NULL), c.is_same(slot, c.word("zero"))))]

    return c.f.either(c.f.icmp("ne", x, NULL), of_tensor, lambda: [constant(I1, True)])[0]


def _onward(c: Code, x: Value) -> Value:
    """Where the gradient of a tensor goes: a node or a leaf; None for null."""

    def of_tensor() -> list[Value]:
        node = c.field(x, "tensor._node")
        return [c.f.select(c.is_same(node, c.word("none")), x, node)]

    return c.f.either(c.f.icmp("ne", x, NULL), of_tensor, lambda: [c.word("none")])[0]


def _edge(c: Code, operand: Value) -> list[Value]:
    return [c.f.call("edge", PTR, operand)]


def _no_edge(c: Code) -> list[Value]:
    nothing = c.word("none")
    c.hold(nothing)
    return [nothing]
