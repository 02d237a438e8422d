"""The code of grouped products: a chunk is a part of the columns of one group, which is a problem of `contraction`
whose size is read when it runs. Groups of one row and of few have code of their own, as products of unknown size have.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from argosy_cinn.assembly.products import choose_variant, variant, variants_of
from argosy_cinn.contraction import Cells, Contraction, Matrix, emit, grid
from argosy_cinn.contraction.packing import convert_element
from argosy_cinn.contraction.problem import Prologue
from argosy_cinn.emitter import Emitter
from argosy_cinn.forms.grouped_product import GroupedForm
from argosy_cinn.grouped_gemm.half_bytes import numbers_of_bytes, read_half
from argosy_cinn.loops.elementwise import load_element, store_element
from argosy_cinn.loops.nest import PARAMETERS, Pointers
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import DOUBLE, FLOAT, I32, I64, LLVM_TYPES, VOID, Index, Value, lanes_of, vector
from argosy_cinn.shapes import sizes


def emit_grouped(module: Module, name: str, form: GroupedForm, slots: Mapping[Any, int]) -> None:
    """Define the kernel function ``name``, and one for each variant of its products."""

    def define(name: str, what: str) -> list[str]:
        with module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
            b.sizes_from(b.arguments[0], len(slots))
            group, part = _split(b, form)
            whole = _problem(b, form, Pointers(b, b.arguments[0], slots), group)
            problem, blocking = variant(b, whole, what)
            total = b.index(grid(b, problem, blocking))
            each = b.ceil_div(total, form.parts)
            first = b.mul(part, each)
            with b.loop(first, b.minimum(b.add(first, each), total)) as loop:
                emit(b, problem, loop.index, total, blocking)
            return variants_of(b, whole)

    variants = define(f"{name}.any", "any")
    for what in (kind for kind in variants if kind != "any"):
        define(f"{name}.{what}", what)
    with module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
        b.sizes_from(b.arguments[0], len(slots))
        group, _ = _split(b, form)
        pointers = Pointers(b, b.arguments[0], slots)

        def call(what: str) -> list[Value]:
            b.call(f"{name}.{what}", VOID, *b.arguments)
            return []

        with b.if_then(b.icmp("slt", group, b.number(form.groups))):
            problem = _problem(b, form, pointers, group)
            if form.outer:
                call("any")
            else:
                with b.if_then(b.icmp("sgt", problem.m, 0)):
                    choose_variant(b, problem, variants, call)
        if not form.outer:
            with b.if_then(b.icmp("eq", group, b.number(form.groups))):
                _clear_others(b, form, pointers)


EMITTER = Emitter(emit_grouped, lambda form, target: form.chunks)
"""For `argosy_cinn.kinds`."""


def _split(b: Function, form: GroupedForm) -> tuple[Value, Index]:
    """The chunk's group, and its part of that."""
    chunk = b.arguments[1]
    return b.index(b.div(chunk, form.parts)), b.rem(chunk, form.parts)


class _Rows(NamedTuple):
    first: Value
    number: Value


def _rows(b: Function, form: GroupedForm, pointers: Pointers, group: Index) -> _Rows:
    """The rows of a group, within those that there are."""
    bounds = [_start(b, form, pointers, b.add(group, i)) for i in range(2)]
    return _Rows(bounds[0], b.index(b.maximum(b.sub(bounds[1], bounds[0]), 0)))


def _start(b: Function, form: GroupedForm, pointers: Pointers, group: Index) -> Value:
    start = b.load(I64, b.gep(pointers(form.starts), group, I64))
    return b.index(b.minimum(b.maximum(start, 0), b.number(sizes(form.lhs)[0])))


def _problem(b: Function, form: GroupedForm, pointers: Pointers, group: Index) -> Contraction:
    """The product of one group; of numbers that share bytes that of the first columns, and beside it that of the
    others."""
    if form.numbers is None:
        return _product(b, form, pointers, group, None)
    low, high = (_product(b, form, pointers, group, half) for half in range(2))
    low.siblings = (high,)
    return low


def _product(b: Function, form: GroupedForm, pointers: Pointers, group: Index, half: int | None) -> Contraction:
    """The product of one group, with all columns or with those whose numbers are in one half of the bytes."""
    dtype = form.result.dtype
    element, terms = LLVM_TYPES[dtype], LLVM_TYPES[form.lhs.dtype]
    rows = _rows(b, form, pointers, group)
    depth, columns = b.number(sizes(form.lhs)[1]), b.number(sizes(form.result)[-1])
    own, first = (columns, 0) if half is None else (columns // 2, half * (columns // 2))
    left, right, out = (b.gep(pointers(v), 0, LLVM_TYPES[v.dtype]) for v in (form.lhs, form.rhs, form.result))
    left = b.gep(left, b.mul(rows.first, depth), terms)
    if form.outer:
        a = Matrix(left, 1, depth, terms)
        other = Matrix(b.gep(right, b.mul(rows.first, columns), element), columns, 1, element)
        out = b.gep(out, b.mul(group, b.mul(depth, columns)), element)
        shape = depth, columns, rows.number
    else:
        a = Matrix(left, depth, 1, terms)
        row, column = (1, depth) if form.transposed else (columns, 1)
        numbers = LLVM_TYPES[form.rhs.dtype]
        start = b.gep(right, b.mul(group, b.mul(depth, own)), numbers)
        other = Matrix(start, row, column, numbers, prologue=_widening(form.rhs.dtype))
        if half is not None and form.numbers is not None:
            other.prologue = partial(read_half, numbers=form.numbers, half=half)
            other.numbers = numbers_of_bytes(form.numbers, half)
        out = b.gep(out, b.add(b.mul(rows.first, columns), first), element)
        shape = rows.number, own, depth
    compute, scales = DOUBLE if dtype == "float64" else FLOAT, _scales(b, form, pointers, group, first)
    scale = None
    if form.sums_integers:
        compute, scale = I32, scales.pop("scales")
        del scales["group"]
    return Contraction(
        *shape, a, other, lambda b, cells: _store(b, cells, out, columns, dtype, scale), compute=compute,
        narrow=dtype == "bfloat16", **scales,
    )  # fmt: skip


def _scales(b: Function, form: GroupedForm, pointers: Pointers, group: Index, first: int) -> dict[str, Any]:
    """The scales and offsets of a group's matrix from column ``first`` on, and of how many terms each is."""
    found: dict[str, Any] = {}
    for name, value in (("scales", form.scales), ("offsets", form.offsets)):
        if value is not None:
            _, groups, columns = sizes(value)
            start = b.gep(pointers(value), b.add(b.mul(group, groups * columns), first), LLVM_TYPES[value.dtype])
            prologue = _widening(value.dtype)
            found[name] = Matrix(start, columns, 1, LLVM_TYPES[value.dtype], prologue=prologue)
            found["group"] = sizes(form.lhs)[1] // groups
    return found


def _widening(dtype: str) -> Prologue | None:
    """What reads numbers that no instruction converts."""
    if not dtype.startswith("float8"):
        return None
    return lambda b, cells: load_element(b, cells.values[0], dtype)


def _store(b: Function, cells: Cells, out: Value, columns: Index, dtype: str, scale: Matrix | None) -> None:
    """Finished elements, times a ``scale`` of each column, rounded to the result's dtype."""
    element = LLVM_TYPES[dtype]
    for v, (value, mask) in enumerate(zip(cells.values, cells.masks, strict=True)):
        lanes = lanes_of(value.type)
        along = v * lanes
        row, column = (cells.row, b.add(cells.column, along)) if cells.axis else (b.add(cells.row, along), cells.column)
        value = value if scale is None else _scaled(b, value, scale, column, mask, cells.axis == 1)
        made = store_element(b, value, dtype)
        place = b.gep(out, b.add(b.mul(row, columns), column), element)
        if cells.axis or lanes == 1:
            b.masked_store(made, place, mask)
        else:
            steps = b.binary("mul", b.iota(I64, lanes), b.splat(b.index(columns), lanes))
            b.scatter(made, place, steps, mask)


def _scaled(b: Function, sums: Value, scale: Matrix, column: Index, mask: Value | None, differ: bool) -> Value:
    """Sums of integers times the scale of their column, or columns from that on where they ``differ``."""
    lanes, place = lanes_of(sums.type), b.gep(scale.pointer, column, scale.element)
    if differ:
        read = b.masked_load(vector(scale.element, lanes), place, mask)
    else:
        read = b.splat(b.load(scale.element, place), lanes)
    return b.fmul(b.convert("sitofp", sums, FLOAT), convert_element(b, read, FLOAT))


def _clear_others(b: Function, form: GroupedForm, pointers: Pointers) -> None:
    """Zeros for rows of no group."""
    columns, element = b.number(sizes(form.result)[1]), LLVM_TYPES[form.result.dtype]
    first, last = _start(b, form, pointers, 0), _start(b, form, pointers, b.number(form.groups))
    for begin, end in ((0, first), (last, b.number(sizes(form.lhs)[0]))):
        with b.loop(b.mul(begin, columns), b.mul(end, columns)) as loop:
            b.store(b.zero(element), b.gep(pointers(form.result), loop.index, element))
