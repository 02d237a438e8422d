"""Operands that are not contiguous: ``packed(payload, spot)`` copies their elements, row-major, to where kernels may
read them: memory of the build, whose first free byte ``spot`` says, as the global lock is held until the kernel is
done. Null is for Python to do: memory that is not the host's, many axes, large operands.
"""

from __future__ import annotations

from functools import partial

from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.slot_offsets import PACKED, SlotOffsets
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import I8, I16, I32, I64, PTR, VOID, Value, constant

__all__ = ["add_packing"]

_SIZE, _ITEMS = 16, 24  # ob_size and ob_item of a tuple
_ALIGNED = 0x100  # NPY_ARRAY_ALIGNED
_AXES = 8
_BY_SIZE = {1: I8, 2: I16, 4: I32, 8: I64}
_ROUNDED = 63  # copies begin at multiples of 64 bytes
_ATTRIBUTES = 'noinline "no-builtins"'
"""Loops must not become calls of memcpy, which a shared object without a linker cannot make, even where they
are inlined."""


def add_packing(module: Module, layout: SlotOffsets) -> None:
    """Define ``packed``."""
    module.variable("packed_operands", "i64", PACKED // 8)
    _add_walk(module)
    with module.function("packed", [(PTR, "payload"), (PTR, "spot")], PTR, export=False, attributes=_ATTRIBUTES) as f:
        c = Code(f, layout)
        payload, spot = f.arguments
        shape = c.field(payload, "payload.shape")
        axes = c.field(shape, _SIZE, I64)
        c.need(f.icmp("ult", f.index(f.sub(axes, 1)), _AXES), "none")
        dims, steps = f.alloca(I64, _AXES), f.alloca(I64, _AXES)
        itemsize = c.call("PyLong_AsLongLong", I64, c.field(c.field(payload, "payload.dtype"), "dtype.itemsize"))
        _numbers(c, shape, dims, axes)
        array = c.field(payload, "payload.ndarray")
        of_array, of_view = partial(_array, c, array, steps, axes), partial(_view, c, payload, steps, axes, itemsize)
        (source,) = f.either(f.icmp("ne", array, NULL), of_array, of_view)
        with f.loop(0, axes, carry=[itemsize]) as loop:
            loop.yield_values(f.index(f.mul(loop.carry[0], f.load(I64, f.gep(dims, loop.index, I64)))))
        size, start = loop.results[0], f.load(I64, spot)
        c.need(f.icmp("ne", size, 0), "none")
        end = f.index(f.add(start, size))
        c.need(f.icmp("ule", end, PACKED), "none")
        into = f.gep(Value(PTR, "@packed_operands"), start, I8)
        f.store(f.binary("and", f.index(f.add(end, _ROUNDED)), ~_ROUNDED), spot)
        done = f.call("walk", I32, source, into, dims, steps, axes, itemsize)
        c.need(f.icmp("ne", done, 0), "none")
        f.ret(into)
        f.start("none")
        f.ret(NULL)


def _numbers(c: Code, items: Value, into: Value, count: Value) -> None:
    """The integers of a tuple."""
    f = c.f
    with f.loop(0, count) as loop:
        item = f.load(PTR, f.gep(f.gep(items, _ITEMS, I8), loop.index, PTR))
        f.store(c.call("PyLong_AsLongLong", I64, item), f.gep(into, loop.index, I64))


def _array(c: Code, array: Value, steps: Value, axes: Value) -> list[Value]:
    """The first element of an array, with its strides in bytes."""
    f = c.f
    c.need(c.is_a(array, "ndarray"), "none")
    c.need(f.icmp("ne", f.binary("and", c.field(array, "ndarray.flags", I32), _ALIGNED), 0), "none")
    strides = c.field(array, "ndarray.strides")
    with f.loop(0, axes) as loop:
        f.store(f.load(I64, f.gep(strides, loop.index, I64)), f.gep(steps, loop.index, I64))
    return [c.field(array, "ndarray.data")]


def _view(c: Code, payload: Value, steps: Value, axes: Value, itemsize: Value) -> list[Value]:
    """The first element of a view that native code made (see `views`), with its strides in bytes."""
    f = c.f
    c.need(c.is_same(c.field(payload, "payload.contiguous"), c.word("false")), "none")
    strides, address = c.field(payload, "payload.strides"), c.field(payload, "payload.address")
    for found, kind in ((strides, "tuple"), (address, "int")):
        c.need(f.icmp("ne", found, NULL), "none")
        c.need(c.is_a(found, kind), "none")
    _numbers(c, strides, steps, axes)
    with f.loop(0, axes) as loop:
        place = f.gep(steps, loop.index, I64)
        f.store(f.index(f.mul(f.load(I64, place), itemsize)), place)
    return [c.call("PyLong_AsVoidPtr", PTR, address)]


def _add_walk(module: Module) -> None:
    """``walk(source, into, dims, steps, axes, itemsize)``: copy row after row; 0 for elements of unknown size."""
    for size, element in _BY_SIZE.items():
        _add_row(module, size, element)
    parameters = [(PTR, each) for each in ("source", "into", "dims", "steps")] + [(I64, "axes"), (I64, "itemsize")]
    with module.function("walk", parameters, I32, export=False, attributes=_ATTRIBUTES) as f:
        axes, itemsize = f.arguments[4:]
        for size in _BY_SIZE:
            with f.if_then(f.icmp("eq", itemsize, size)):
                f.call(f"rows{size}", VOID, *f.arguments[:4], axes)
                f.ret(constant(I32, 1))
        f.ret(constant(I32, 0))


def _add_row(module: Module, size: int, element: str) -> None:
    """``rows4(source, into, dims, steps, axes)`` and the like: an odometer over all axes but the last one."""
    parameters = [(PTR, each) for each in ("source", "into", "dims", "steps")] + [(I64, "axes")]
    with module.function(f"rows{size}", parameters, export=False, attributes=_ATTRIBUTES) as f:
        source, into, dims, steps, axes = f.arguments
        last = f.index(f.sub(axes, 1))
        length, step = (f.load(I64, f.gep(each, last, I64)) for each in (dims, steps))
        counts, here, there = f.alloca(I64, _AXES), f.alloca(PTR, 1), f.alloca(PTR, 1)
        with f.loop(0, axes) as loop:
            f.store(constant(I64, 0), f.gep(counts, loop.index, I64))
        f.store(source, here)
        f.store(into, there)
        row, onward, done = f.name("row"), f.name("onward"), f.name("done")
        at = f.alloca(I64, 1)
        f.jump(row)
        f.start(row)
        first, target = f.load(PTR, here), f.load(PTR, there)
        _copy_row(f, first, target, length, step, element, size)
        f.store(f.gep(target, length, element), there)
        f.store(last, at)
        f.jump(onward)
        f.start(onward)
        axis = f.index(f.sub(f.load(I64, at), 1))
        turn = f.name("turn")
        f.branch(f.icmp("slt", axis, 0), done, turn)
        f.start(turn)
        f.store(axis, at)
        count, extent, by = (
            f.gep(counts, axis, I64),
            f.load(I64, f.gep(dims, axis, I64)),
            f.load(I64, f.gep(steps, axis, I64)),
        )
        new, moved = f.index(f.add(f.load(I64, count), 1)), f.gep(f.load(PTR, here), by, I8)
        f.store(new, count)
        f.store(moved, here)
        back = f.name("back")
        f.branch(f.icmp("slt", new, extent), row, back)
        f.start(back)
        f.store(constant(I64, 0), count)
        f.store(f.gep(moved, f.index(f.sub(0, f.mul(extent, by))), I8), here)
        f.jump(onward)
        f.start(done)


def _copy_row(f: Function, source: Value, into: Value, length: Value, step: Value, element: str, size: int) -> None:
    """Elements that lie together are copied many at once, by the optimiser's doing."""
    together, apart, done = f.name("together"), f.name("apart"), f.name("done")
    f.branch(f.icmp("eq", step, size), together, apart)
    f.start(together)
    with f.loop(0, length) as loop:
        f.store(f.load(element, f.gep(source, loop.index, element)), f.gep(into, loop.index, element))
    f.jump(done)
    f.start(apart)
    with f.loop(0, length) as loop:
        f.store(f.load(element, f.gep(source, f.mul(loop.index, step), I8)), f.gep(into, loop.index, element))
    f.jump(done)
    f.start(done)
