"""Derivatives that are compiled, on the way back: ``go_back(node, g, record)`` for a node with one result.

It gives 1 when the gradients of the operands were computed and sent on, 0 after an error, and 2 with nothing done where
Python has to see to it: data that is not contiguous or not on the host, saved values that changed or that hooks packed.
"""

from __future__ import annotations

from functools import partial

from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.slot_offsets import BACK_WORDS, GRADIENTS, TABLE, SlotOffsets
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import I32, I64, PTR, VOID, Value, constant

__all__ = ["SLOW", "add_derivatives"]

_DONE, _FAILED, SLOW = constant(I32, 1), constant(I32, 0), constant(I32, 2)
_ITEMS, _SIZE = 24, 16  # ob_item and ob_size of a tuple; of a list the first is a pointer
_CONTIGUOUS_ALIGNED = 0x101  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
_OUTPUT_WORDS = 3  # of a gradient: its operand, shape, dtype


def add_derivatives(module: Module, layout: SlotOffsets) -> None:
    """Define ``go_back`` and what it needs; ``send`` is defined elsewhere."""
    _add_item(module, layout)
    _add_kept(module, layout)
    _add_onward(module, layout)
    # the short copies below must not become calls of memcpy, which a shared object without a linker cannot make
    parameters = [(PTR, "node"), (PTR, "g"), (PTR, "record")]
    with module.function("go_back", parameters, I32, export=False, attributes='"no-builtins"') as f:
        c = Code(f, layout)
        node, g, record = f.arguments
        filled = f.alloca(PTR, TABLE)
        template = _record_word(c, record, "table")
        for i in range(TABLE):
            f.store(f.load(PTR, f.gep(template, i, PTR)), f.gep(filled, i, PTR))
        _fill_inputs(c, node, g, record, filled)
        made = f.alloca(PTR, GRADIENTS)
        count = _record_word(c, record, "gradients", I64)
        _make_results(c, record, made, filled)
        f.call_pointer(_record_word(c, record, "kernel"), VOID, filled, NULL)
        fine = f.alloca(I32, 1)
        f.store(_DONE, fine)
        with f.loop(0, count) as loop:
            result = f.load(PTR, f.gep(made, loop.index, PTR))
            with f.if_then(f.icmp("ne", f.load(I32, fine), 0)):
                operand = f.load(I64, _output(c, record, loop.index))
                f.store(f.call("send_onward", I32, node, operand, result), fine)
            c.drop(result)
        f.ret(f.load(I32, fine))
        f.start("failed")
        f.ret(_FAILED)
        f.start("slow")
        f.ret(SLOW)


def _record_word(c: Code, record: Value, word: str, type: str = PTR) -> Value:
    """What the record of a derivative says."""
    return c.f.load(type, c.f.gep(record, BACK_WORDS.index(word), I64))


def _output(c: Code, record: Value, index: Value) -> Value:
    """Where the record speaks of a gradient."""
    return c.f.gep(_record_word(c, record, "outputs"), c.f.mul(index, _OUTPUT_WORDS), I64)


def _fill_inputs(c: Code, node: Value, g: Value, record: Value, filled: Value) -> None:
    """Put the addresses of what was saved and of the gradient in their places; at ``slow`` where that is not easy."""
    f = c.f
    saved, places = c.field(node, "node.saved"), _record_word(c, record, "places")
    inputs = _record_word(c, record, "saved", I64)
    with f.loop(0, inputs) as loop:
        entry = f.call("item", PTR, saved, f.load(I64, f.gep(places, loop.index, I64)))
        c.need(f.icmp("ne", entry, NULL), "slow")
        data = f.call("kept", PTR, entry)
        c.need(f.icmp("ne", data, NULL), "slow")
        f.store(data, f.gep(filled, f.add(loop.index, 1), PTR))
    with f.if_then(f.icmp("ne", _record_word(c, record, "reads", I64), 0)):
        c.need(c.is_a(g, "ndarray"), "slow")
        flags = f.binary("and", c.field(g, "ndarray.flags", I32), _CONTIGUOUS_ALIGNED)
        c.need(f.icmp("eq", flags, _CONTIGUOUS_ALIGNED), "slow")
        f.store(c.field(g, "ndarray.data"), f.gep(filled, f.add(inputs, 1), PTR))


def _make_results(c: Code, record: Value, made: Value, filled: Value) -> None:
    """Make the arrays of the gradients; at ``failed`` when memory is out."""
    f = c.f
    first = _record_word(c, record, "output", I64)
    with f.loop(0, _record_word(c, record, "gradients", I64)) as loop:
        described = f.gep(_output(c, record, loop.index), 1, I64)
        array = c.call("PyObject_Vectorcall", PTR, c.word("new_array"), described, constant(I64, 2), NULL)
        with f.if_then(f.icmp("eq", array, NULL)):
            with f.loop(0, loop.index) as before:
                c.drop(f.load(PTR, f.gep(made, before.index, PTR)))
            f.jump("failed")
        f.store(array, f.gep(made, loop.index, PTR))
        f.store(c.field(array, "ndarray.data"), f.gep(filled, f.add(loop.index, first), PTR))


def _add_item(module: Module, layout: SlotOffsets) -> None:
    """``item(row, index)``: of a tuple or a list, not counted; null for any other object, and past the end."""
    with module.function("item", [(PTR, "row"), (I64, "index")], PTR, export=False) as f:
        c = Code(f, layout)
        row, index = f.arguments
        c.need(f.icmp("ne", row, NULL), "none")
        listed = c.is_a(row, "list")
        c.need(c.one_of(listed, c.is_a(row, "tuple")), "none")
        c.need(f.icmp("ult", index, c.field(row, _SIZE, I64)), "none")
        (items,) = f.either(listed, lambda: [c.field(row, _ITEMS)], lambda: [f.gep(row, _ITEMS, "i8")])
        f.ret(f.load(PTR, f.gep(items, index, PTR)))
        f.start("none")
        f.ret(NULL)


def _add_kept(module: Module, layout: SlotOffsets) -> None:
    """``kept(pair)``: the data of a payload that was saved, with its version; null where it is not as it was, or is
    no contiguous data on the host."""
    with module.function("kept", [(PTR, "pair")], PTR, export=False) as f:
        c = Code(f, layout)
        payload = f.call("item", PTR, f.arguments[0], constant(I64, 0))
        version = f.call("item", PTR, f.arguments[0], constant(I64, 1))
        c.need(f.icmp("ne", version, NULL), "none")
        c.need(c.is_a(payload, "payload"), "none")
        c.need(c.is_same(f.call("version", PTR, payload), version), "none")
        f.ret(f.call("data", PTR, payload))
        f.start("none")
        f.ret(NULL)


def _add_onward(module: Module, layout: SlotOffsets) -> None:
    """``send_onward(node, operand, g)``: send the gradient of an operand where its edge leads; 0 when that fails."""
    parameters = [(PTR, "node"), (I64, "operand"), (PTR, "g")]
    with module.function("send_onward", parameters, I32, export=False) as f:
        c = Code(f, layout)
        node, operand, g = f.arguments
        edges = c.field(node, "node.edges")

        def plain_edge() -> list[Value]:  # see `application`
            first = f.icmp("eq", operand, 0)
            (to,) = f.either(first, partial(_slot, c, node, "before"), partial(_slot, c, node, "other"))
            return [to, c.word("zero")]

        def listed_edge() -> list[Value]:
            edge = f.call("item", PTR, edges, operand)
            c.need(f.icmp("ne", edge, NULL), "nowhere")
            c.need(f.icmp("ne", edge, c.word("none")), "nowhere")
            return [c.field(edge, _ITEMS), c.field(edge, _ITEMS + 8)]

        to, slot = f.either(c.is_same(edges, NULL), plain_edge, listed_edge)
        c.need(f.icmp("ne", to, NULL), "nowhere")
        c.need(f.icmp("ne", to, c.word("none")), "nowhere")
        c.hold(to)
        sent = f.call("send", I32, to, slot, g)
        c.drop(to)
        f.ret(sent)
        f.start("nowhere")
        f.ret(_DONE)


def _slot(c: Code, node: Value, name: str) -> list[Value]:
    return [c.field(node, f"node.{name}")]
