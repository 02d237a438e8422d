"""Making and freeing tensors, payloads and nodes: objects of Python classes with ``__slots__``.

Freed ones that nobody can tell from new ones wait in free lists, linked by a slot of theirs; a payload keeps its
memory, shape and dtype there, a node what its recipe said. Everything out of the ordinary (attributes, weak references,
hooks, memory that an array still shows) is freed as the class itself does it. The type says how its instances are
freed, and what was there looks for itself in the type, so it is put back while it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.slot_offsets import LEAST, LIMIT, SIZES, STATE, SlotOffsets
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import I8, I32, I64, PTR, VOID, Value, constant

__all__ = ["DEALLOCS", "PLANNED", "SAME", "add_objects", "allocate_object"]

DEALLOCS = {kind: f"free_{kind}" for kind in ("tensor", "payload", "node")}
"""The exported functions that free objects."""

_DICT, _VALUES, _GC_NEXT, _GC_PREVIOUS = -24, -32, -16, -8  # before an object of a class with a dictionary
SAME = ("array_type", "dtype", "shape", "ndim")
PLANNED = ("type", "dtype", "shape", "ndim")
_DERIVED = ("address", "contiguous", "nbytes", "offset", "size", "strides", "ndarray")


def add_objects(module: Module, layout: SlotOffsets) -> None:
    """Define ``new_*`` (internal; null when memory is out, with an exception set) and ``free_*``."""
    _new_tensor(module, layout)
    _new_payload(module, layout)
    _new_node(module, layout)
    for kind in DEALLOCS:
        _free_slowly(module, layout, kind)
    _free_tensor(module, layout)
    _free_payload(module, layout)
    _free_node(module, layout)


# ---- making


@contextmanager
def _function(module: Module, layout: SlotOffsets, name: str, *parameters: str, result: str = PTR) -> Iterator[Code]:
    """An internal function of pointers."""
    with module.function(name, [(PTR, each) for each in parameters], result, export=False) as f:
        yield Code(f, layout)


def allocate_object(c: Code, kind: str) -> Value:
    """A new object with empty slots. No collection may run Python code now: operands are only borrowed."""
    enabled = c.call("PyGC_Disable", I32)
    made = c.call("PyType_GenericAlloc", PTR, c.word(kind), constant(I64, 0))
    with c.f.if_then(c.f.icmp("ne", enabled, 0)):
        c.call("PyGC_Enable", I32)
    return made


def _revive(c: Code, kind: str, x: Value) -> None:
    """Make an object of a free list, which was taken from it, an object again; it is not yet tracked."""
    c.set_count(x, 1)
    c.hold(c.word(kind))
    c.put(x, _GC_PREVIOUS, constant(I64, 0))


def _new_tensor(module: Module, layout: SlotOffsets) -> None:
    """A tensor with empty slots."""
    with _function(module, layout, "new_tensor") as c:
        head = c.word("tensor.free")
        with c.f.if_then(c.f.icmp("ne", head, NULL)):
            c.set_word("tensor.free", c.take(head, "tensor.payload"))
            c.bump("tensor.kept", -1)
            _revive(c, "tensor", head)
            c.call("PyObject_GC_Track", VOID, head)
            c.f.ret(head)
        c.f.ret(allocate_object(c, "tensor"))


def _list_of(c: Code, word: str, size_class: Value) -> Value:
    """The address of a free list of payloads, or of its length."""
    first = c.f.gep(Value(PTR, "@state"), STATE.index(f"payload0.{word}"), I64)
    return c.f.gep(first, size_class, I64)


def _new_payload(module: Module, layout: SlotOffsets) -> None:
    """A payload as a plan says, with memory of its own."""
    with _function(module, layout, "new_payload", "plan") as c:
        plan, f = c.f.arguments[0], c.f
        size_class = c.plan_word(plan, "class", I64)
        free = _list_of(c, "free", size_class)
        head = f.load(PTR, free)
        with f.if_then(f.icmp("ne", head, NULL)):
            f.store(c.take(head, "payload.ndarray"), free)
            kept = _list_of(c, "kept", size_class)
            f.store(f.index(f.sub(f.load(I64, kept), 1)), kept)
            _revive(c, "payload", head)
            with f.if_then(f.icmp("ne", c.field(head, "payload.array_type"), c.plan_word(plan, "type"))):
                for slot, word in zip(SAME, PLANNED, strict=True):
                    c.drop(c.field(head, f"payload.{slot}"))
                    c.give(head, f"payload.{slot}", c.plan_word(plan, word))
            f.ret(head)  # not tracked: nothing that a payload of its own memory holds can hold the payload
        capacity = f.binary("shl", constant(I64, SIZES[0]), f.index(f.mul(size_class, 2)))
        memory = c.call("PyByteArray_FromStringAndSize", PTR, NULL, capacity)
        with f.if_then(f.icmp("eq", memory, NULL)):
            f.ret(NULL)
        made = allocate_object(c, "payload")
        with f.if_then(f.icmp("eq", made, NULL)):
            c.drop(memory)
            f.ret(NULL)
        for slot, word in zip(SAME, PLANNED, strict=True):
            c.give(made, f"payload.{slot}", c.plan_word(plan, word))
        c.give(made, "payload._storage", c.word("none"))
        c.put(made, "payload._memory", memory)
        f.ret(made)


def _new_node(module: Module, layout: SlotOffsets) -> None:
    """A node of a recipe with its sequence number; edges and what is saved are for the caller to fill in."""
    with _function(module, layout, "new_node", "recipe", "name") as c:
        f = c.f
        recipe, name = f.arguments
        number = c.call("PyIter_Next", PTR, c.word("counter"))
        with f.if_then(f.icmp("eq", number, NULL)):
            f.ret(NULL)
        head = c.word("node.free")
        with f.if_then(f.icmp("ne", head, NULL)):
            c.set_word("node.free", c.take(head, "node.sequence"))
            c.bump("node.kept", -1)
            _revive(c, "node", head)
            c.put(head, "node.sequence", number)
            old = c.field(head, "node.recipe")
            with f.if_then(f.icmp("ne", old, recipe)):
                c.drop(c.field(head, "node.name"))
                c.give(head, "node.name", name)
                c.give(head, "node.recipe", recipe)
                c.drop(old)
            c.call("PyObject_GC_Track", VOID, head)
            f.ret(head)
        made = allocate_object(c, "node")
        with f.if_then(f.icmp("eq", made, NULL)):
            c.drop(number)
            f.ret(NULL)
        c.put(made, "node.sequence", number)
        for slot, value in (("name", name), ("recipe", recipe)):
            c.give(made, f"node.{slot}", value)
        for slot, word in (("results", "one"), ("on_tensors", "false"), ("hooks", "none"), ("retained", "none")):
            c.give(made, f"node.{slot}", c.word(word))
        f.ret(made)


# ---- freeing


def _free_slowly(module: Module, layout: SlotOffsets, kind: str) -> None:
    """As the class does it."""
    with _function(module, layout, f"free_{kind}_slowly", "x", result=VOID) as c:
        type, original = c.word(kind), c.word(f"{kind}.dealloc")
        c.bump(f"{kind}.slow", 1)
        c.set_dealloc(type, original)
        c.f.call_pointer(original, VOID, c.f.arguments[0])
        left = c.bump(f"{kind}.slow", -1)
        with c.f.if_then(c.f.icmp("eq", left, 0)):
            c.set_dealloc(c.word(kind), Value(PTR, f"@{DEALLOCS[kind]}"))


@contextmanager
def _free_function(module: Module, layout: SlotOffsets, kind: str) -> Iterator[Code]:
    """The exported function that frees; jump to ``slow`` for what is out of the ordinary."""
    with module.function(DEALLOCS[kind], [(PTR, "x")]) as f:
        c = Code(f, layout)
        yield c
        f.ret()
        f.start("slow")
        f.call(f"free_{kind}_slowly", VOID, f.arguments[0])
        f.ret()


def _is_zero(c: Code, words: list[Value]) -> Value:
    return c.f.icmp("eq", c.any_bits(words), 0)


def _forget_type(c: Code, kind: str) -> None:
    """The type has an instance less; it has others."""
    c.lessen(c.word(kind))


def _need_no_attributes(c: Code, x: Value) -> None:
    """Go on where a tensor has no attributes besides its slots, else at ``slow``. Before 3.13 they are at first kept
    without a dictionary, as values whose count is two bytes before them."""
    f, python = c.f, c.layout["python"]
    held = c.field(x, _DICT)
    if python >= 13:
        c.need(f.icmp("eq", held, NULL), "slow")
    elif python == 12:  # a dictionary, or the address of values less one
        with f.if_then(f.icmp("ne", held, NULL)):
            bits = f.op(I64, f"ptrtoint {held} to i64")
            c.need(f.icmp("ne", f.binary("and", bits, 1), 0), "slow")
            c.need(f.icmp("eq", c.field(held, -1, I8), 0), "slow")
    else:
        c.need(f.icmp("eq", held, NULL), "slow")
        values = c.field(x, _VALUES)
        with f.if_then(f.icmp("ne", values, NULL)):
            c.need(f.icmp("eq", c.field(values, -2, I8), 0), "slow")


def _free_tensor(module: Module, layout: SlotOffsets) -> None:
    rare = [
        ("_grad", "none"),
        ("_hooks", "none"),
        ("_name", "none"),
        ("persistable", "false"),
        ("is_parameter", "false"),
    ]
    with _free_function(module, layout, "tensor") as c:
        x, f = c.f.arguments[0], c.f
        c.need(_is_zero(c, [c.field(x, "tensor.weak")]), "slow")
        _need_no_attributes(c, x)
        with f.if_then(f.icmp("ne", c.any_bits([c.field(x, f"tensor.{slot}") for slot, _ in rare]), 0)):
            for slot, word in rare:  # read once, they hold what they are when empty
                value = c.field(x, f"tensor.{slot}")
                c.need(c.one_of(c.is_same(value, NULL), c.is_same(value, c.word(word))), "slow")
        c.need(f.icmp("slt", c.word("tensor.kept", I64), LIMIT), "slow")
        c.call("PyObject_GC_UnTrack", VOID, x)
        for slot, _ in rare:
            c.drop_some(c.take(x, f"tensor.{slot}"))
        parts = [
            c.take(x, f"tensor.{slot}") for slot in ("payload", "_node", "stop_gradient", "_slot", "_gradient_blockers")
        ]
        c.put(x, "tensor.payload", c.word("tensor.free"))
        c.set_word("tensor.free", x)
        c.bump("tensor.kept", 1)
        _forget_type(c, "tensor")
        for part in parts:
            c.drop_some(part)


def _free_payload(module: Module, layout: SlotOffsets) -> None:
    with _free_function(module, layout, "payload") as c:
        x, f = c.f.arguments[0], c.f
        memory = c.field(x, "payload._memory")
        c.need(f.icmp("ne", memory, NULL), "slow")
        c.need(c.is_same(c.field(x, "payload._storage"), c.word("none")), "slow")
        for slot in SAME:
            c.need(f.icmp("ne", c.field(x, f"payload.{slot}"), NULL), "slow")
        with f.if_then(f.icmp("ne", c.field(x, _GC_NEXT, I64), 0)):
            c.call("PyObject_GC_UnTrack", VOID, x)
        derived = [f"payload.{slot}" for slot in _DERIVED]
        with f.if_then(f.icmp("ne", c.any_bits([c.field(x, slot) for slot in derived]), 0)):
            for slot in derived:
                c.drop_some(c.take(x, slot))
        c.need(c.is_a(memory, "bytearray"), "slow")
        c.need(f.icmp("eq", c.count(memory), 1), "slow")  # an array or a view shows it
        capacity = c.field(memory, "bytearray.size", I64)
        size_class = _class_of(c, capacity)
        kept = _list_of(c, "kept", size_class)
        few = f.binary("lshr", constant(I64, LIMIT), f.index(f.mul(size_class, 2)))
        room = f.select(f.icmp("ult", few, LEAST), constant(I64, LEAST), few)
        c.need(f.icmp("slt", f.load(I64, kept), room), "slow")
        free = _list_of(c, "free", size_class)
        c.put(x, "payload.ndarray", f.load(PTR, free))
        f.store(x, free)
        f.store(f.index(f.add(f.load(I64, kept), 1)), kept)
        _forget_type(c, "payload")


def _class_of(c: Code, capacity: Value) -> Value:
    """The number of the class of this capacity; at ``slow`` where there is none."""
    f = c.f
    power = f.intrinsic("llvm.cttz", I64, capacity, constant("i1", False))
    size_class = f.binary("lshr", f.index(f.sub(power, SIZES[0].bit_length() - 1)), 1)
    c.need(f.icmp("ult", size_class, len(SIZES)), "slow")
    exact = f.binary("shl", constant(I64, SIZES[0]), f.index(f.mul(size_class, 2)))
    c.need(f.icmp("eq", exact, capacity), "slow")
    return size_class


def _free_node(module: Module, layout: SlotOffsets) -> None:
    with _free_function(module, layout, "node") as c:
        x, f = c.f.arguments[0], c.f
        c.need(_is_zero(c, [c.field(x, "node.weak"), c.field(x, "node.waiting")]), "slow")
        for slot, word in (("hooks", "none"), ("retained", "none"), ("on_tensors", "false"), ("results", "one")):
            c.need(c.is_same(c.field(x, f"node.{slot}"), c.word(word)), "slow")
        for slot in ("recipe", "name"):
            c.need(f.icmp("ne", c.field(x, f"node.{slot}"), NULL), "slow")
        c.need(f.icmp("slt", c.word("node.kept", I64), LIMIT), "slow")
        c.call("PyObject_GC_UnTrack", VOID, x)
        onwards = [c.take(x, f"node.{slot}") for slot in ("before", "other")]
        parts = [c.take(x, f"node.{slot}") for slot in ("edges", "saved", "sequence")]
        c.put(x, "node.sequence", c.word("node.free"))
        c.set_word("node.free", x)
        c.bump("node.kept", 1)
        _forget_type(c, "node")
        for part in parts:
            c.drop_some(part)
        for onward in onwards:
            with f.if_then(f.icmp("ne", onward, NULL)):
                _drop_onward(c, onward)
        with f.if_then(f.icmp("eq", c.word("node.freeing", I64), 0)):
            _free_pending(c)


def _drop_onward(c: Code, x: Value) -> None:
    """Give up a reference to where a gradient goes. A node that is freed by that waits until this one is done, as
    histories may be longer than the stack."""
    f = c.f
    ends, done = f.name("ends"), f.name("done")
    c.need(c.lessen(x), done)
    c.need(c.is_a(x, "node"), ends)
    c.need(c.is_same(c.field(x, "node.waiting"), NULL), ends)
    c.call("PyObject_GC_UnTrack", VOID, x)
    c.put(x, "node.waiting", c.word("node.pending"))
    c.set_word("node.pending", x)
    f.jump(done)
    f.start(ends)
    c.call("_Py_Dealloc", VOID, x)
    f.jump(done)
    f.start(done)


def _free_pending(c: Code) -> None:
    f = c.f
    following, none = f.name("following"), f.name("none")
    c.set_word("node.freeing", constant(I64, 1))
    f.jump(following)
    f.start(following)
    x = c.word("node.pending")
    c.need(f.icmp("ne", x, NULL), none)
    c.set_word("node.pending", c.take(x, "node.waiting"))
    c.call("_Py_Dealloc", VOID, x)
    f.jump(following)
    f.start(none)
    c.set_word("node.freeing", constant(I64, 0))
