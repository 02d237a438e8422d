"""The backward loop: ``backward_loop(start, leaves, retain, pull, add)``, a builtin that `argosy_autograd.sweep` calls.

Nodes wait in a heap by sequence number, each with its gradient in its slot ``waiting``, a list where it has several
results. Nodes that pass a gradient on as it is (``recipe.code`` is 1) are done here, those whose derivative is compiled
by `derivatives`, other ones by ``pull(node, g)``, which gives a list of ``(edge, gradient)``. Gradients of tensors go
to ``leaves`` (id to ``[tensor, gradient]``). Nodes of other kinds are for Python: what goes to them is returned, as a
list of ``(node, slot, gradient)``, as soon as one of them is next. One pass at a time: while one runs, another thread
or a hook gets None.
"""

from __future__ import annotations

from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.derivatives import SLOW
from argosy_cinn.eager.slot_offsets import SlotOffsets
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import I1, I8, I32, I64, PTR, Value, constant

__all__ = ["add_backward_loop"]

_ITEMS, _SIZE = 24, 16  # ob_item and ob_size of a tuple
_LIST_ITEMS = 24  # ob_item of a list, a pointer
_ENTRY = 16  # bytes of an entry of the heap: sequence number, node


def add_backward_loop(module: Module, layout: SlotOffsets) -> None:
    """Define ``backward_loop`` and what it needs."""
    _add_push(module, layout)
    _add_pop(module, layout)
    _add_total(module, layout)
    _add_leaf(module, layout)
    _add_aside(module, layout)
    _add_nothings(module, layout)
    _add_send_one_of(module, layout)
    _add_all_aside(module, layout)
    _add_send(module, layout)
    _add_send_all(module, layout)
    _add_step(module, layout)
    _add_give_back(module, layout)
    _add_entry(module, layout)


def _heap_entry(c: Code, index: Value) -> Value:
    """The address of an entry of the heap."""
    return c.f.gep(c.word("heap"), c.f.mul(index, 2), I64)


def _put(c: Code, entry: Value, number: Value, node: Value) -> None:
    """Write an entry of the heap."""
    c.f.store(number, entry)
    c.f.store(node, c.f.gep(entry, 1, I64))


def _add_push(module: Module, layout: SlotOffsets) -> None:
    """``push(node)``: put a node in the heap, with a reference; 0 when that fails."""
    with module.function("push", [(PTR, "node")], I32, export=False) as f:
        c = Code(f, layout)
        node = f.arguments[0]
        count, capacity = c.word("heap.count", I64), c.word("heap.capacity", I64)
        with f.if_then(f.icmp("eq", count, capacity)):
            larger = f.index(f.add(f.index(f.mul(capacity, 2)), 64))
            memory = c.call("PyMem_RawRealloc", PTR, c.word("heap"), f.index(f.mul(larger, _ENTRY)))
            c.need(f.icmp("ne", memory, NULL), "failed")
            c.set_word("heap", memory)
            c.set_word("heap.capacity", larger)
        number = c.call("PyLong_AsLongLong", I64, c.field(node, "node.sequence"))
        c.need(f.icmp("sgt", number, 0), "failed")
        c.hold(node)
        place = f.alloca(I64, 1)
        f.store(count, place)
        f.jump("up")
        f.start("up")  # parents with smaller numbers move down
        here = f.load(I64, place)
        c.need(f.icmp("ne", here, 0), "found")
        parent = f.binary("lshr", f.index(f.sub(here, 1)), 1)
        above = _heap_entry(c, parent)
        c.need(f.icmp("slt", f.load(I64, above), number), "found")
        below = _heap_entry(c, here)
        _put(c, below, f.load(I64, above), f.load(PTR, f.gep(above, 1, I64)))
        f.store(parent, place)
        f.jump("up")
        f.start("found")
        _put(c, _heap_entry(c, f.load(I64, place)), number, node)
        c.bump("heap.count", 1)
        f.ret(constant(I32, 1))
        f.start("failed")
        f.ret(constant(I32, 0))


def _add_pop(module: Module, layout: SlotOffsets) -> None:
    """``pop()``: take the node with the largest number, with its reference; the heap is not empty."""
    with module.function("pop", [], PTR, export=False) as f:
        c = Code(f, layout)
        top = f.load(PTR, f.gep(_heap_entry(c, constant(I64, 0)), 1, I64))
        count = c.bump("heap.count", -1)
        last = _heap_entry(c, count)
        number, node = f.load(I64, last), f.load(PTR, f.gep(last, 1, I64))
        place = f.alloca(I64, 1)
        f.store(constant(I64, 0), place)
        f.jump("down")
        f.start("down")  # children with larger numbers move up
        here = f.load(I64, place)
        left = f.index(f.add(f.index(f.mul(here, 2)), 1))
        c.need(f.icmp("slt", left, count), "found")
        right = f.index(f.add(left, 1))
        paired = f.icmp("slt", right, count)
        rival = f.select(paired, right, left)
        larger = f.icmp("sgt", f.load(I64, _heap_entry(c, rival)), f.load(I64, _heap_entry(c, left)))
        child = f.select(larger, rival, left)
        at = _heap_entry(c, child)
        c.need(f.icmp("sgt", f.load(I64, at), number), "found")
        _put(c, _heap_entry(c, here), f.load(I64, at), f.load(PTR, f.gep(at, 1, I64)))
        f.store(child, place)
        f.jump("down")
        f.start("found")
        _put(c, _heap_entry(c, f.load(I64, place)), number, node)
        f.ret(top)


def _add_total(module: Module, layout: SlotOffsets) -> None:
    """``total(x, y)``: the sum of two gradients, by Python's function; null when that fails."""
    with module.function("total", [(PTR, "x"), (PTR, "y")], PTR, export=False) as f:
        c = Code(f, layout)
        arguments = f.alloca(PTR, 2)
        f.store(f.arguments[0], arguments)
        f.store(f.arguments[1], f.gep(arguments, 1, PTR))
        f.ret(c.call("PyObject_Vectorcall", PTR, c.word("backward_loop.add"), arguments, constant(I64, 2), NULL))


def _add_leaf(module: Module, layout: SlotOffsets) -> None:
    """``send_leaf(tensor, g)``: add to the gradient of a tensor; 0 when that fails."""
    with module.function("send_leaf", [(PTR, "tensor"), (PTR, "g")], I32, export=False) as f:
        c = Code(f, layout)
        tensor, g = f.arguments
        leaves = c.word("backward_loop.leaves")
        key = c.call("PyLong_FromVoidPtr", PTR, tensor)
        c.need(f.icmp("ne", key, NULL), "failed")
        entry = c.call("PyDict_GetItemWithError", PTR, leaves, key)
        with f.if_then(f.icmp("ne", entry, NULL)):
            c.drop(key)
            old = c.call("PyList_GetItem", PTR, entry, constant(I64, 1))
            c.need(f.icmp("ne", old, NULL), "failed")
            c.hold(entry)
            made = f.call("total", PTR, old, g)
            with f.if_then(f.icmp("eq", made, NULL)):
                c.drop(entry)
                f.jump("failed")
            c.call("PyList_SetItem", I32, entry, constant(I64, 1), made)
            c.drop(entry)
            f.ret(constant(I32, 1))
        entry = c.call("PyList_New", PTR, constant(I64, 2))
        with f.if_then(f.icmp("eq", entry, NULL)):
            c.drop(key)
            f.jump("failed")
        items = c.field(entry, _LIST_ITEMS)
        for place, value in ((0, tensor), (8, g)):
            c.hold(value)
            c.put(items, place, value)
        bad = c.call("PyDict_SetItem", I32, leaves, key, entry)
        c.drop(key)
        c.drop(entry)
        f.ret(_is_done(c, bad))
        f.start("failed")
        f.ret(constant(I32, 0))


def _add_aside(module: Module, layout: SlotOffsets) -> None:
    """``put_aside(to, slot, g)``: leave a gradient to Python; 0 when that fails."""
    with module.function("put_aside", [(PTR, each) for each in ("to", "slot", "g")], I32, export=False) as f:
        c = Code(f, layout)
        made = c.call("PyTuple_New", PTR, constant(I64, 3))
        c.need(f.icmp("ne", made, NULL), "failed")
        for i, value in enumerate(f.arguments):
            c.hold(value)
            c.put(made, _ITEMS + 8 * i, value)
        bad = c.call("PyList_Append", I32, c.word("backward_loop.rest"), made)
        c.drop(made)
        c.need(f.icmp("eq", bad, 0), "failed")
        told = c.call("PyObject_GetAttr", PTR, f.arguments[0], c.word("sequence"))
        c.need(f.icmp("ne", told, NULL), "failed")
        number = c.call("PyLong_AsLongLong", I64, told)
        c.drop(told)
        c.need(f.icmp("sgt", number, 0), "failed")
        with f.if_then(f.icmp("sgt", number, c.word("backward_loop.limit", I64))):
            c.set_word("backward_loop.limit", number)
        f.ret(constant(I32, 1))
        f.start("failed")
        f.ret(constant(I32, 0))


def _add_all_aside(module: Module, layout: SlotOffsets) -> None:
    """``put_all_aside(node, waiting)``: leave what waits at a node to Python; 0 when that fails."""
    with module.function("put_all_aside", [(PTR, each) for each in ("node", "waiting")], I32, export=False) as f:
        c = Code(f, layout)
        node, waiting = f.arguments
        with f.if_then(c.is_same(c.field(node, "node.results"), c.word("one"))):
            f.ret(f.call("put_aside", I32, node, c.word("zero"), waiting))
        with f.loop(0, c.field(waiting, _SIZE, I64)) as loop:
            g = f.load(PTR, f.gep(c.field(waiting, _LIST_ITEMS), loop.index, PTR))
            with f.if_then(f.icmp("ne", g, c.word("none"))):
                slot = c.call("PyLong_FromLongLong", PTR, loop.index)
                c.need(f.icmp("ne", slot, NULL), "failed")
                kept = f.call("put_aside", I32, node, slot, g)
                c.drop(slot)
                c.need(f.icmp("ne", kept, 0), "failed")
        f.ret(constant(I32, 1))
        f.start("failed")
        f.ret(constant(I32, 0))


def _add_send(module: Module, layout: SlotOffsets) -> None:
    """``send(to, slot, g)``: a gradient arrives somewhere; 0 when that fails."""
    with module.function("send", [(PTR, each) for each in ("to", "slot", "g")], I32, export=False) as f:
        c = Code(f, layout)
        to, slot, g = f.arguments
        with f.if_then(c.is_a(to, "tensor")):
            f.ret(f.call("send_leaf", I32, to, g))
        c.need(c.is_a(to, "node"), "aside")
        c.need(c.is_same(c.field(to, "node.on_tensors"), c.word("false")), "aside")
        c.need(c.is_same(c.field(to, "node.results"), c.word("one")), "several")
        c.need(c.is_same(slot, c.word("zero")), "aside")
        old = c.field(to, "node.waiting")
        with f.if_then(f.icmp("eq", old, NULL)):
            pushed = f.call("push", I32, to)
            c.need(f.icmp("ne", pushed, 0), "failed")
            c.give(to, "node.waiting", g)
            f.ret(constant(I32, 1))
        made = f.call("total", PTR, old, g)
        c.need(f.icmp("ne", made, NULL), "failed")
        c.put(to, "node.waiting", made)
        c.drop(old)
        f.ret(constant(I32, 1))
        f.start("several")
        f.ret(f.call("send_one_of", I32, to, slot, g))
        f.start("aside")
        f.ret(f.call("put_aside", I32, to, slot, g))
        f.start("failed")
        f.ret(constant(I32, 0))


def _add_send_one_of(module: Module, layout: SlotOffsets) -> None:
    """``send_one_of(to, slot, g)``: a gradient of one of several results arrives at a node; 0 when that fails. What
    waits there is a list, with None for results that have got none yet."""
    with module.function("send_one_of", [(PTR, each) for each in ("to", "slot", "g")], I32, export=False) as f:
        c = Code(f, layout)
        to, slot, g = f.arguments
        place = c.call("PyLong_AsLongLong", I64, slot)
        with f.if_then(f.icmp("eq", c.field(to, "node.waiting"), NULL)):
            made = f.call("nothings", PTR, c.field(to, "node.results"))
            c.need(f.icmp("ne", made, NULL), "failed")
            pushed = f.call("push", I32, to)
            with f.if_then(f.icmp("eq", pushed, 0)):
                c.drop(made)
                f.jump("failed")
            c.put(to, "node.waiting", made)
        waiting = c.field(to, "node.waiting")
        old = c.call("PyList_GetItem", PTR, waiting, place)
        c.need(f.icmp("ne", old, NULL), "failed")
        with f.if_then(c.is_same(old, c.word("none"))):
            c.hold(g)
            f.ret(_is_done(c, c.call("PyList_SetItem", I32, waiting, place, g)))
        made = f.call("total", PTR, old, g)
        c.need(f.icmp("ne", made, NULL), "failed")
        f.ret(_is_done(c, c.call("PyList_SetItem", I32, waiting, place, made)))
        f.start("failed")
        f.ret(constant(I32, 0))


def _is_done(c: Code, status: Value) -> Value:
    """1 where a function of the interpreter says that it did what it was asked to (0), else 0."""
    return c.f.op(I32, f"zext {c.f.icmp('eq', status, 0)} to i32")


def _add_nothings(module: Module, layout: SlotOffsets) -> None:
    """``nothings(count)``: a list of so many (an int) Nones; null when that fails."""
    with module.function("nothings", [(PTR, "count")], PTR, export=False) as f:
        c = Code(f, layout)
        count = c.call("PyLong_AsLongLong", I64, f.arguments[0])
        c.need(f.icmp("sgt", count, 0), "failed")
        made = c.call("PyList_New", PTR, count)
        c.need(f.icmp("ne", made, NULL), "failed")
        items = c.field(made, _LIST_ITEMS)
        with f.loop(0, count) as loop:
            c.hold(c.word("none"))
            f.store(c.word("none"), f.gep(items, loop.index, PTR))
        f.ret(made)
        f.start("failed")
        f.ret(NULL)


def _add_send_all(module: Module, layout: SlotOffsets) -> None:
    """``send_all(pairs)``: send a list of ``(edge, gradient)``; 0 when that fails."""
    with module.function("send_all", [(PTR, "pairs")], I32, export=False) as f:
        c = Code(f, layout)
        pairs = f.arguments[0]
        with f.loop(0, c.field(pairs, _SIZE, I64)) as loop:
            pair = f.load(PTR, f.gep(c.field(pairs, _LIST_ITEMS), loop.index, PTR))
            edge, g = c.field(pair, _ITEMS), c.field(pair, _ITEMS + 8)
            sent = f.call("send", I32, c.field(edge, _ITEMS), c.field(edge, _ITEMS + 8), g)
            c.need(f.icmp("ne", sent, 0), "failed")
        f.ret(constant(I32, 1))
        f.start("failed")
        f.ret(constant(I32, 0))


def _add_step(module: Module, layout: SlotOffsets) -> None:
    """``step(node, g)``: pass the gradient of a node, or the list of those of its results, on to where its edges lead;
    0 when that fails."""
    with module.function("step", [(PTR, "node"), (PTR, "g")], I32, export=False) as f:
        c = Code(f, layout)
        node, g = f.arguments
        for slot, usual in (("hooks", "none"), ("retained", "none"), ("results", "one")):
            c.need(c.is_same(c.field(node, f"node.{slot}"), c.word(usual)), "pull")
        recipe = c.field(node, "node.recipe")
        c.need(f.icmp("ne", recipe, NULL), "pull")
        edges = c.field(node, "node.edges")
        c.need(c.is_same(c.field(recipe, "recipe.code"), c.word("one")), "derive")
        with f.if_then(c.is_same(edges, NULL)):  # see `application`
            for slot in ("before", "other"):
                to = c.field(node, f"node.{slot}")
                with f.if_then(c.logical_and(f.icmp("ne", to, c.word("none")), f.icmp("ne", to, NULL))):
                    c.hold(to)
                    sent = f.call("send", I32, to, c.word("zero"), g)
                    c.drop(to)
                    c.need(f.icmp("ne", sent, 0), "failed")
            f.ret(constant(I32, 1))
        c.need(c.is_a(edges, "tuple"), "pull")
        c.hold(edges)
        with f.loop(0, c.field(edges, _SIZE, I64)) as loop:
            edge = f.load(PTR, f.gep(f.gep(edges, _ITEMS, I8), loop.index, PTR))
            with f.if_then(f.icmp("ne", edge, c.word("none"))):
                sent = f.call("send", I32, c.field(edge, _ITEMS), c.field(edge, _ITEMS + 8), g)
                c.need(f.icmp("ne", sent, 0), "lost")
        c.drop(edges)
        f.ret(constant(I32, 1))
        f.start("lost")
        c.drop(edges)
        f.ret(constant(I32, 0))
        f.start("derive")
        back = c.field(recipe, "recipe.back")
        c.need(f.icmp("ne", back, NULL), "pull")
        c.need(f.icmp("ne", back, c.word("none")), "pull")
        c.need(f.icmp("ne", edges, c.word("none")), "pull")  # freed
        c.hold(back)
        record = f.call("item", PTR, back, constant(I64, 0))
        went = f.call("go_back", I32, node, g, c.field(record, "bytearray.start"))
        c.drop(back)
        c.need(f.icmp("eq", went, SLOW), "went")
        f.jump("pull")
        f.start("went")
        f.ret(went)
        f.start("pull")
        arguments = f.alloca(PTR, 2)
        f.store(node, arguments)
        f.store(g, f.gep(arguments, 1, PTR))
        pairs = c.call("PyObject_Vectorcall", PTR, c.word("backward_loop.pull"), arguments, constant(I64, 2), NULL)
        c.need(f.icmp("ne", pairs, NULL), "failed")
        sent = f.call("send_all", I32, pairs)
        c.drop(pairs)
        f.ret(sent)
        f.start("failed")
        f.ret(constant(I32, 0))


def _add_give_back(module: Module, layout: SlotOffsets) -> None:
    """``give_back()``: empty the heap, leaving what waits there to Python; 0 when that fails, empty all the same."""
    with module.function("give_back", [], I32, export=False) as f:
        c = Code(f, layout)
        fine = f.alloca(I32, 1)
        f.store(constant(I32, 1), fine)
        f.jump("next")
        f.start("next")
        c.need(f.icmp("ne", c.word("heap.count", I64), 0), "done")
        node = f.call("pop", PTR)
        g = c.take(node, "node.waiting")
        kept = f.call("put_all_aside", I32, node, g)
        f.store(f.binary("and", f.load(I32, fine), kept), fine)
        c.drop(g)
        c.drop(node)
        f.jump("next")
        f.start("done")
        f.ret(f.load(I32, fine))


def _add_entry(module: Module, layout: SlotOffsets) -> None:
    parameters = [(PTR, "self"), (PTR, "arguments"), (I64, "count")]
    with module.function("backward_loop", parameters, PTR) as f:
        c = Code(f, layout)
        start, leaves, retain, pull, add = (f.load(PTR, f.gep(f.arguments[1], i, PTR)) for i in range(5))
        with f.if_then(f.icmp("ne", c.word("backward_loop.running", I64), 0)):
            c.hold(c.word("none"))
            f.ret(c.word("none"))
        rest = c.call("PyList_New", PTR, constant(I64, 0))
        c.need(f.icmp("ne", rest, NULL), "none")
        c.set_word("backward_loop.running", constant(I64, 1))
        c.set_word("backward_loop.limit", constant(I64, 0))
        for word, value in (("rest", rest), ("leaves", leaves), ("pull", pull), ("add", add)):
            c.set_word(f"backward_loop.{word}", value)
        sent = f.call("send_all", I32, start)
        c.need(f.icmp("ne", sent, 0), "failed")
        f.jump("next")
        f.start("next")
        c.need(f.icmp("ne", c.word("heap.count", I64), 0), "done")
        largest = f.load(I64, _heap_entry(c, constant(I64, 0)))
        c.need(f.icmp("sgt", largest, c.word("backward_loop.limit", I64)), "done")
        node = f.call("pop", PTR)
        g = c.take(node, "node.waiting")
        went = f.call("step", I32, node, g)
        c.drop(g)
        last = f.icmp("eq", c.count(node), 1)  # it is freed anyway
        released = c.logical_and(c.is_same(retain, c.word("false")), f.icmp("ne", went, 0))
        with f.if_then(c.logical_and(released, f.op(I1, f"xor {last}, true"))):
            for slot in ("edges", "saved", "before", "other"):
                old = c.field(node, f"node.{slot}")
                c.give(node, f"node.{slot}", c.word("none"))
                c.drop_some(old)
        c.drop(node)
        f.branch(f.icmp("ne", went, 0), "next", "failed")
        f.start("done")
        given = f.call("give_back", I32)
        c.set_word("backward_loop.running", constant(I64, 0))
        c.need(f.icmp("ne", given, 0), "lost")
        f.ret(rest)
        f.start("failed")
        _abandon(c)
        c.set_word("backward_loop.running", constant(I64, 0))
        f.jump("lost")
        f.start("lost")
        c.drop(rest)
        f.ret(NULL)
        f.start("none")
        f.ret(NULL)


def _abandon(c: Code) -> None:
    """Empty the heap after an error, which stays as it is."""
    f = c.f
    f.jump("abandon")
    f.start("abandon")
    c.need(f.icmp("ne", c.word("heap.count", I64), 0), "abandoned")
    node = f.call("pop", PTR)
    c.drop_some(c.take(node, "node.waiting"))
    c.drop(node)
    f.jump("abandon")
    f.start("abandoned")
