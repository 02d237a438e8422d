"""Views: payloads that show a part of another one's memory, for operators such as ``reshape`` and ``transpose``.

``new_view(plan, base, data)`` makes one of a payload whose contiguous elements start at ``data``. Its memory belongs to
a ``Storage``, which is made now for results of native code. Null is for Python to do, with no exception set, or for
lack of memory.
"""

from __future__ import annotations

from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.objects import PLANNED, SAME, allocate_object
from argosy_cinn.eager.slot_offsets import SlotOffsets
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import I64, PTR, Value

__all__ = ["add_views"]


def add_views(module: Module, layout: SlotOffsets) -> None:
    """Define ``new_view``."""
    _add_storage(module, layout)
    _add_start(module, layout)
    _add_view(module, layout)


def _add_storage(module: Module, layout: SlotOffsets) -> None:
    """``storage_of(payload)``: the storage of a payload, with a new reference; null where Python has to make it, or
    when memory is out."""
    with module.function("storage_of", [(PTR, "payload")], PTR, export=False) as f:
        c = Code(f, layout)
        payload = f.arguments[0]
        found = c.field(payload, "payload._storage")
        c.need(f.icmp("ne", found, NULL), "none")
        with f.if_then(c.is_a(found, "storage")):
            c.hold(found)
            f.ret(found)
        memory = c.field(payload, "payload._memory")
        c.need(f.icmp("ne", memory, NULL), "none")
        c.need(c.is_a(memory, "bytearray"), "none")
        size = c.call("PyLong_FromLongLong", PTR, c.field(memory, "bytearray.size", I64))
        c.need(f.icmp("ne", size, NULL), "none")
        made = allocate_object(c, "storage")
        with f.if_then(f.icmp("eq", made, NULL)):
            c.drop(size)
            f.jump("none")
        c.put(made, "storage.nbytes", size)
        c.give(made, "storage._buffer", c.word("none"))
        c.give(made, "storage._source", memory)
        c.give(made, "storage.version", c.word("zero"))
        c.drop(found)  # None
        c.give(payload, "payload._storage", made)
        f.ret(made)
        f.start("none")
        f.ret(NULL)


def _add_start(module: Module, layout: SlotOffsets) -> None:
    """``start_of(storage)``: the first byte of host memory; null where that is not easily told."""
    with module.function("start_of", [(PTR, "storage")], PTR, export=False) as f:
        c = Code(f, layout)
        owner = c.field(f.arguments[0], "storage._owner")
        with f.if_then(f.icmp("ne", owner, NULL)):
            c.need(c.is_a(owner, "ndarray"), "none")
            f.ret(c.field(owner, "ndarray.data"))
        source = c.field(f.arguments[0], "storage._source")
        c.need(f.icmp("ne", source, NULL), "none")
        c.need(c.is_a(source, "bytearray"), "none")
        f.ret(c.field(source, "bytearray.start"))
        f.start("none")
        f.ret(NULL)


def _add_view(module: Module, layout: SlotOffsets) -> None:
    with module.function("new_view", [(PTR, each) for each in ("plan", "base", "data")], PTR, export=False) as f:
        c = Code(f, layout)
        plan, base, data = f.arguments
        storage = f.call("storage_of", PTR, base)
        c.need(f.icmp("ne", storage, NULL), "none")
        start = f.call("start_of", PTR, storage)
        c.need(f.icmp("ne", start, NULL), "undo0")
        here = f.gep(data, c.plan_word(plan, "distance", I64), "i8")
        first, last = (f.op(I64, f"ptrtoint {each} to i64") for each in (start, here))
        elements = f.op(I64, f"sdiv {f.index(f.sub(last, first))}, {c.plan_word(plan, 'itemsize', I64).name}")
        offset = c.call("PyLong_FromLongLong", PTR, elements)
        c.need(f.icmp("ne", offset, NULL), "undo0")
        address = c.call("PyLong_FromVoidPtr", PTR, here)
        c.need(f.icmp("ne", address, NULL), "undo1")
        made = allocate_object(c, "payload")
        c.need(f.icmp("ne", made, NULL), "undo2")
        for slot, word in zip(SAME, PLANNED, strict=True):
            c.give(made, f"payload.{slot}", c.plan_word(plan, word))
        for slot in ("strides", "contiguous"):
            c.give(made, f"payload.{slot}", c.plan_word(plan, slot))
        c.give(made, "payload._memory", c.word("none"))
        for slot, value in (("_storage", storage), ("offset", offset), ("address", address)):
            c.put(made, f"payload.{slot}", value)
        f.ret(made)
        _undo_blocks(c, [("undo2", address), ("undo1", offset), ("undo0", storage)])
        f.start("none")
        f.ret(NULL)


def _undo_blocks(c: Code, labels: list[tuple[str, Value]]) -> None:
    """Blocks that drop what was made, one after the other."""
    following = [label for label, _ in labels[1:]] + ["none"]
    for (label, value), after in zip(labels, following, strict=True):
        c.f.start(label)
        c.drop(value)
        c.f.jump(after)
