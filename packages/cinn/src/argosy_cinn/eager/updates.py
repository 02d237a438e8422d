"""Kernels of optimizers: a parameter and its states are read and written once, in place; and what runs one of them on
all parameters of a step.

They compute what the rules in `argosy.optimizer` do operator by operator, in the same order with the same roundings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from argosy_cinn.eager.application import payload_of
from argosy_cinn.eager.arithmetic import DTYPES
from argosy_cinn.eager.code import NULL, Code
from argosy_cinn.eager.slot_offsets import SlotOffsets
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import I64, PTR, VOID, Value, bytes_of, constant, vector

__all__ = ["UPDATES", "add_update_all", "add_updates", "update_name"]

UPDATES = {"sgd": 2, "momentum": 3, "nesterov": 3, "adam": 4}
"""How many arrays each one takes: the parameter, its gradient, and its states."""

_BYTES = 32  # of a vector
_SIZE, _ITEMS = 16, 24  # ob_size and ob_item of a tuple; ob_item of a list is a pointer


def update_name(rule: str, dtype: str) -> str:
    """The exported name of a kernel ``void name(arrays..., scalars, count)``."""
    return f"{rule}_{dtype}"


def add_updates(module: Module) -> None:
    """Define the kernels of all rules and dtypes."""
    for rule, step in _STEPS.items():
        for dtype, element in DTYPES.items():
            arrays = [(PTR, f"x{i}") for i in range(UPDATES[rule])]
            with module.function(update_name(rule, dtype), [*arrays, (PTR, "scalars"), (I64, "count")]) as f:
                _loops(f, element, step)


_Step = Callable[[Function, list[Value], Callable[[int], Value]], list[tuple[int, Value]]]


def _loops(f: Function, element: str, step: _Step) -> None:
    """Whole vectors, then one by one. ``step`` takes what the arrays hold and gives (array, new value)."""
    *arrays, scalars, count = f.arguments
    lanes = _BYTES // bytes_of(element)
    whole = f.binary("and", count, -lanes)
    for start, stop, width in ((0, whole, lanes), (whole, count, 1)):
        type = vector(element, width)

        def load_scalar(i: int, width: int = width) -> Value:
            loaded = f.load(element, f.gep(scalars, i, element))
            return f.splat(loaded, width) if width > 1 else loaded

        with f.loop(start, stop, width) as loop:
            places = [f.gep(array, loop.index, element) for array in arrays]
            values = [f.load(type, place, bytes_of(element)) for place in places]
            for array, value in step(f, values, load_scalar):
                f.store(value, places[array], bytes_of(element))


def _sgd(f: Function, values: list[Value], scalar: Callable[[int], Value]) -> list[tuple[int, Value]]:
    """``p -= rate * g``; scalars: rate."""
    p, g = values
    return [(0, f.fsub(p, f.fmul(scalar(0), g)))]


def _momentum(f: Function, values: list[Value], scalar: Callable[[int], Value]) -> list[tuple[int, Value]]:
    """``v = v m + g s``, ``p -= rate v``; scalars: rate, m, s."""
    p, g, v = values
    v = f.fadd(f.fmul(v, scalar(1)), f.fmul(g, scalar(2)))
    return [(0, f.fsub(p, f.fmul(scalar(0), v))), (2, v)]


def _nesterov(f: Function, values: list[Value], scalar: Callable[[int], Value]) -> list[tuple[int, Value]]:
    """The same, with ``p -= rate (g s + v m)``."""
    p, g, v = values
    g = f.fmul(g, scalar(2))
    v = f.fadd(f.fmul(v, scalar(1)), g)
    return [(0, f.fsub(p, f.fmul(scalar(0), f.fadd(g, f.fmul(v, scalar(1)))))), (2, v)]


def _adam(f: Function, values: list[Value], scalar: Callable[[int], Value]) -> list[tuple[int, Value]]:
    """``m = m b1 + g (1 - b1)``, ``v = v b2 + g g (1 - b2)``, ``p = p s - size (m / (sqrt(v) + e))``; scalars: b1,
    1 - b1, b2, 1 - b2, s, size, e."""
    p, g, m, v = values
    m = f.fadd(f.fmul(m, scalar(0)), f.fmul(g, scalar(1)))
    v = f.fadd(f.fmul(v, scalar(2)), f.fmul(f.fmul(g, g), scalar(3)))
    move = f.fmul(scalar(5), f.fdiv(m, f.fadd(f.unary("sqrt", v), scalar(6))))
    return [(0, f.fsub(f.fmul(p, scalar(4)), move)), (2, m), (3, v)]


_STEPS: dict[str, _Step] = {"sgd": _sgd, "momentum": _momentum, "nesterov": _nesterov, "adam": _adam}


class _Tensors(NamedTuple):
    """``total`` tensors, ``arrays`` for each kernel, of which those that have a bit in ``written`` are written."""

    items: Value
    total: Value
    arrays: Value
    written: Value


def add_update_all(module: Module, layout: SlotOffsets) -> None:
    """Define ``update_all(kernel, arrays, written, dtype, scalars, tensors)``, a builtin: run a kernel on each so many
    of the tensors, with the same scalars, and count versions of those that have a bit in ``written``. False, with
    nothing done, where one is no contiguous array of the host of this dtype, of another type than the first of its
    kernel's, a result of the graph, or to be written without a storage."""
    _add_elements(module, layout)
    with module.function("update_all", [(PTR, "self"), (PTR, "arguments"), (I64, "count")], PTR) as f:
        c = Code(f, layout)
        kernel, arrays, written, dtype, scalars, given = (f.load(PTR, f.gep(f.arguments[1], i, PTR)) for i in range(6))
        kernel, scalars = (c.call("PyLong_AsVoidPtr", PTR, each) for each in (kernel, scalars))
        arrays, written = (c.call("PyLong_AsLongLong", I64, each) for each in (arrays, written))
        total, items = c.field(given, _SIZE, I64), c.field(given, _ITEMS)
        table = c.call("PyMem_RawRealloc", PTR, NULL, f.index(f.mul(f.index(f.add(total, 1)), 16)))
        c.need(f.icmp("ne", table, NULL), "no")
        tensors = _Tensors(items, total, arrays, written)
        _read_arrays(c, tensors, dtype, table)
        state = c.call("PyEval_SaveThread", PTR)
        with f.loop(0, total, arrays) as loop:
            elements = f.load(I64, f.gep(f.gep(table, total, I64), loop.index, I64))
            places = [f.gep(f.gep(table, loop.index, PTR), i, PTR) for i in range(4)]
            for number in sorted(set(UPDATES.values())):
                with f.if_then(f.icmp("eq", arrays, number)):
                    f.call_pointer(kernel, VOID, *[f.load(PTR, place) for place in places[:number]], scalars, elements)
        c.call("PyEval_RestoreThread", VOID, state)
        c.call("PyMem_RawFree", VOID, table)
        _count_versions(c, tensors)
        c.hold(c.word("true"))
        f.ret(c.word("true"))
        f.start("slow")
        c.call("PyMem_RawFree", VOID, table)
        f.jump("no")
        f.start("no")
        c.hold(c.word("false"))
        f.ret(c.word("false"))
        f.start("lost")
        f.ret(NULL)


def _read_arrays(c: Code, tensors: _Tensors, dtype: Value, table: Value) -> None:
    """Fill the table with the data of all, and then with the elements of the first of each kernel; at ``slow`` where
    one has none that a kernel may have."""
    f = c.f
    kind = f.alloca(PTR, 1)
    with f.loop(0, tensors.total) as loop:
        x = f.load(PTR, f.gep(tensors.items, loop.index, PTR))
        number = f.rem(loop.index, tensors.arrays)
        c.need(c.is_a(x, "tensor"), "slow")
        payload = payload_of(c, x)
        known = c.field(payload, "payload.array_type")
        with f.if_then(f.icmp("eq", f.index(number), 0)):
            f.store(known, kind)
            elements = f.call("elements_of", I64, c.field(payload, "payload.shape"))
            f.store(elements, f.gep(f.gep(table, tensors.total, I64), loop.index, I64))
        data = f.call("data", PTR, payload)
        for good in (
            f.icmp("ne", known, NULL), c.is_same(known, f.load(PTR, kind)), f.icmp("ne", data, NULL),
            c.is_same(c.field(payload, "payload.dtype"), dtype),
            c.is_same(c.field(x, "tensor._node"), c.word("none")),
        ):  # fmt: skip
            c.need(good, "slow")
        f.store(data, f.gep(table, loop.index, PTR))
        with f.if_then(_is_written(c, tensors.written, number)):
            storage = c.field(payload, "payload._storage")
            c.need(f.icmp("ne", storage, NULL), "slow")
            c.need(c.is_a(storage, "storage"), "slow")


def _count_versions(c: Code, tensors: _Tensors) -> None:
    """Count the version of each that was written."""
    f = c.f
    with (
        f.loop(0, tensors.total) as loop,
        f.if_then(_is_written(c, tensors.written, f.rem(loop.index, tensors.arrays))),
    ):
        x = f.load(PTR, f.gep(tensors.items, loop.index, PTR))
        storage = c.field(c.field(x, "tensor.payload"), "payload._storage")
        old = c.field(storage, "storage.version")
        number = f.index(f.add(c.call("PyLong_AsLongLong", I64, old), 1))
        made = c.call("PyLong_FromLongLong", PTR, number)
        c.need(f.icmp("ne", made, NULL), "lost")
        c.put(storage, "storage.version", made)
        c.drop(old)


def _is_written(c: Code, written: Value, number: object) -> Value:
    return c.f.icmp("ne", c.f.binary("and", c.f.binary("lshr", written, c.f.index(number)), 1), 0)  # type: ignore[arg-type]


def _add_elements(module: Module, layout: SlotOffsets) -> None:
    """``elements_of(shape)``: the product of a tuple of sizes."""
    with module.function("elements_of", [(PTR, "shape")], I64, export=False) as f:
        c = Code(f, layout)
        shape = f.arguments[0]
        with f.loop(0, c.field(shape, _SIZE, I64), carry=[constant(I64, 1)]) as loop:
            size = f.load(PTR, f.gep(f.gep(shape, _ITEMS, "i8"), loop.index, PTR))
            loop.yield_values(f.index(f.mul(loop.carry[0], c.call("PyLong_AsLongLong", I64, size))))
        f.ret(loop.carry[0])
