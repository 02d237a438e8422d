"""Calls of in-place methods: ``x.add_(y)`` is what ``x + y`` gives, written over ``x``.

Done here is what nobody has to be told of: no gradient is recorded, the target is no result of the graph, has a
storage that counts its writes, and contiguous data of the result's type. The result is computed first, as the operands
may be the target or views of it. Everything else goes to the function that was there before, with nothing done.
"""

from __future__ import annotations

from argosy_cinn.eager.application import SLOW, need_no_layers, payload_of
from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.signatures import make_reading, read_call
from argosy_cinn.eager.slot_offsets import METHOD, SlotOffsets
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import I8, I32, I64, PTR, Value, constant

__all__ = ["add_inplace"]

_WRITEABLE = 0x400  # NPY_ARRAY_WRITEABLE
_COUNT = (1 << 63) - 1  # of the arguments of a vector call: the highest bit says something else


def add_inplace(module: Module, layout: SlotOffsets) -> None:
    """Define ``enter_inplace``, a vector call as ``enter_method``."""
    _add_target(module, layout)
    _add_put_over(module, layout)
    parameters = [(PTR, "method"), (PTR, "arguments"), (I64, "flags"), (PTR, "names")]
    with module.function("enter_inplace", parameters, PTR) as f:
        c = Code(f, layout)
        method, arguments, flags, names = f.arguments
        count, operator = f.binary("and", flags, _COUNT), c.field(method, METHOD["operator"])
        c.need(f.icmp("ne", count, 0), "slow")
        target = f.load(PTR, arguments)
        c.need(f.icmp("ne", f.call("is_target", I32, target), 0), "slow")
        _need_unrecorded(c, arguments, count)
        made = f.alloca(PTR, 1)
        f.store(SLOW, made)
        with f.if_then(
            c.logical_and(f.icmp("eq", count, 2), f.icmp("eq", names, NULL))
        ):  # it may be one of Python's operators
            f.store(f.call("apply", PTR, operator, target, f.load(PTR, f.gep(arguments, 1, PTR))), made)
        with f.if_then(f.icmp("eq", f.load(PTR, made), SLOW)):
            reading = make_reading(c)
            read_call(c, arguments, count, names, reading)
            f.store(f.call("invoke", PTR, operator, reading), made)
        result = f.load(PTR, made)
        c.need(f.icmp("ne", result, SLOW), "slow")
        c.need(f.icmp("ne", result, NULL), "failed")
        done = f.call("put_over", I32, target, result)
        c.drop(result)
        c.need(f.icmp("ne", done, 0), "again")
        c.hold(target)
        f.ret(target)
        f.start("again")
        c.need(f.icmp("eq", c.call("PyErr_Occurred", PTR), NULL), "failed")
        f.jump("slow")
        f.start("slow")
        f.ret(c.call("PyObject_Vectorcall", PTR, c.field(method, METHOD["before"]), arguments, flags, names))
        f.start("failed")
        f.ret(NULL)


def _need_unrecorded(c: Code, arguments: Value, count: Value) -> None:
    """Go on where no argument wants a gradient, or some thread records none, of which the result tells; else at
    ``slow``. An argument in a list is looked at through the result, too."""
    f = c.f
    silent = need_no_layers(c)
    with f.if_then(c.is_same(silent, c.word("zero"))), f.loop(0, count) as loop:
        x = f.load(PTR, f.gep(arguments, loop.index, PTR))
        with f.if_then(c.is_a(x, "tensor")):
            c.need(c.is_same(c.field(x, "tensor.stop_gradient"), c.word("true")), "slow")


def _add_target(module: Module, layout: SlotOffsets) -> None:
    """``is_target(x)``: whether it is a tensor that can be written here."""
    with module.function("is_target", [(PTR, "x")], I32, export=False) as f:
        c = Code(f, layout)
        x = f.arguments[0]
        c.need(c.is_a(x, "tensor"), "slow")
        payload = payload_of(c, x)
        c.need(c.is_same(c.field(x, "tensor._node"), c.word("none")), "slow")
        c.need(f.icmp("ne", f.call("data", PTR, payload), NULL), "slow")
        array = c.field(payload, "payload.ndarray")
        with f.if_then(f.icmp("ne", array, NULL)):
            flags = f.binary("and", c.field(array, "ndarray.flags", I32), _WRITEABLE)
            c.need(f.icmp("ne", flags, 0), "slow")
        f.ret(constant(I32, 1))
        f.start("slow")
        f.ret(constant(I32, 0))


def _add_put_over(module: Module, layout: SlotOffsets) -> None:
    """``put_over(target, result)``: write the elements of a new tensor over a target's and count that; 0 where it
    cannot, with nothing done."""
    # the copy must not become a call of memcpy, which a shared object without a linker cannot make
    parameters = [(PTR, "target"), (PTR, "result")]
    with module.function("put_over", parameters, I32, export=False, attributes='"no-builtins"') as f:
        c = Code(f, layout)
        target, result = (c.field(x, "tensor.payload") for x in f.arguments)
        said = c.field(f.arguments[1], "tensor.stop_gradient")
        kinds = [c.field(x, "payload.array_type") for x in (target, result)]
        c.need(c.logical_and(c.is_same(said, c.word("true")), c.is_same(*kinds)), "no")
        source, into = (f.call("data", PTR, x) for x in (result, target))
        c.need(f.icmp("ne", source, NULL), "no")
        storage = f.call("storage_of", PTR, target)
        c.need(f.icmp("ne", storage, NULL), "no")
        old = c.field(storage, "storage.version")
        number = f.index(f.add(c.call("PyLong_AsLongLong", I64, old), 1))
        made = c.call("PyLong_FromLongLong", PTR, number)
        c.need(f.icmp("ne", made, NULL), "undo")
        c.put(storage, "storage.version", made)
        elements = f.call("elements_of", I64, c.field(target, "payload.shape"))
        itemsize = c.field(c.field(target, "payload.dtype"), "dtype.itemsize")
        count = f.index(f.mul(elements, c.call("PyLong_AsLongLong", I64, itemsize)))
        with f.loop(0, count) as loop:
            f.store(f.load(I8, f.gep(source, loop.index, I8)), f.gep(into, loop.index, I8))
        c.drop(old)
        c.drop(storage)
        f.ret(constant(I32, 1))
        f.start("undo")
        c.drop(storage)
        f.jump("no")
        f.start("no")
        f.ret(constant(I32, 0))
