"""The code of an order: for each row, keys as unsigned integers in the same order, sorted one after the other.

The last key is sorted first: a stable sort by an earlier one keeps what later ones decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from argosy_cinn.emitter import Emitter
from argosy_cinn.forms.order import OrderForm
from argosy_cinn.loops.elementwise import load_element
from argosy_cinn.loops.nest import PARAMETERS, Pointers
from argosy_cinn.loops.sort_keys import key_bits, ordered_bits
from argosy_cinn.ordering.radix import COUNTS_BYTES, Row, keep_first, order_row
from argosy_cinn.printers.llvm import Function, Module
from argosy_cinn.printers.types import I8, I32, I64, LLVM_TYPES, Index, Value
from argosy_cinn.runtime.workers import scratch

_LINE = 64


class Source(NamedTuple):
    """The elements of one row of a key."""

    pointer: Value
    base: Index
    step: Index
    dtype: str
    descending: bool


def emit_order(module: Module, name: str, kernel: OrderForm, slots: Mapping[Any, int]) -> None:
    """Define the kernel function ``name``."""
    sorts = {bits: _sort_function(module, bits) for bits in {key_bits(key.dtype) for key in kernel.keys}}
    with module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
        table, chunk, _ = b.arguments
        b.sizes_from(table, len(slots))
        pointers = Pointers(b, table, slots)
        length, inner = b.number(kernel.length), b.number(kernel.inner)
        size = b.number(kernel.chunk_rows)
        begin = b.mul(chunk, size)
        row = _row_memory(b, length)
        with b.loop(begin, b.minimum(b.add(begin, size), b.number(kernel.rows))) as rows:
            outer, column = b.div(rows.index, inner), b.rem(rows.index, inner)
            base = b.add(b.mul(outer, b.mul(length, inner)), column)
            with b.loop(0, length) as i:
                b.store(b.convert("trunc", i.index, I32), b.gep(row.order, i.index, I32))
            for number, key in enumerate(reversed(kernel.keys)):
                source = Source(pointers(key), base, inner, key.dtype, kernel.descending)
                _load_keys(b, row, length, source, ordered=number > 0)
                some = kernel.first != kernel.length
                n = keep_first(b, row, b.index(length), kernel.first, key_bits(key.dtype)) if some else b.index(length)
                b.call(sorts[key_bits(key.dtype)], "void", row.keys, row.order, row.other_keys, row.other_order,
                       row.counts, n)  # fmt: skip
            out = pointers(kernel.order)
            base = b.add(b.mul(outer, b.mul(b.number(kernel.first), inner)), column)
            with b.loop(0, b.number(kernel.first)) as i:
                found = b.load(I32, b.gep(row.order, i.index, I32))
                b.store(found, b.gep(out, b.add(base, b.mul(i.index, inner)), I32))


EMITTER = Emitter(emit_order, lambda kernel, target: kernel.chunks)
"""For `argosy_cinn.kinds`."""


def _sort_function(module: Module, bits: int) -> str:
    parameters = [("ptr noalias", n) for n in ("keys", "order", "other_keys", "other_order", "counts")]

    def build(name: str) -> None:
        with module.function(name, [*parameters, ("i64", "n")], export=False, attributes="noinline") as b:
            *memory, n = b.arguments
            order_row(b, Row(*memory), n, bits)

    return module.shared_function(("order", bits), f"order_row_{bits}", build)


def _row_memory(b: Function, length: Index) -> Row:
    """Scratch memory for keys and positions, each twice, and counts."""
    lines = b.mul(b.div(b.add(b.mul(length, 8), 2 * _LINE - 1), _LINE), _LINE)  # one line more than the widest keys
    slab = scratch(b, b.add(b.mul(lines, 4), COUNTS_BYTES))
    parts = [b.gep(slab, b.mul(lines, i), I8) for i in range(5)]
    return Row(parts[0], parts[2], parts[1], parts[3], parts[4])


def _load_keys(b: Function, row: Row, length: Index, source: Source, ordered: bool) -> None:
    """The keys of a row, ``ordered`` as later ones left it."""
    memory, element = LLVM_TYPES[source.dtype], f"i{key_bits(source.dtype)}"
    with b.loop(0, length) as i:
        place = b.convert("sext", b.load(I32, b.gep(row.order, i.index, I32)), I64) if ordered else i.index
        found = b.load(memory, b.gep(source.pointer, b.add(source.base, b.mul(place, source.step)), memory))
        key = ordered_bits(b, load_element(b, found, source.dtype), source.dtype)
        key = b.binary("xor", key, -1) if source.descending else key
        b.store(key, b.gep(row.keys, i.index, element))
