"""Queries, as they are multiplied."""

from __future__ import annotations

from argosy_cinn.loops.elementwise import load_element
from argosy_cinn.paged_attention.memory import Memory
from argosy_cinn.printers.types import I16, I32, Index, Value, constant, vector

_LEAST = 1e-30
"""What a query's largest number counts as at least: 32,767 over it is a float."""


def copy_query(memory: Memory, source: Value, row: Value) -> None:
    """The query at an address, to a row's place."""
    target = memory.query(row)
    if memory.words:
        _round(memory, source, target, row)
        return

    def copy(at: Index, mask: Value | None) -> None:
        b, lanes = memory.b, memory.lanes
        if memory.pairs:
            b.store(memory.load_pairs(source, at, mask)[0], b.gep(target, at, memory.element))
            return
        several = memory.unit > lanes
        for v, x in enumerate(memory.load_cached(source, at, mask) if several else [_load(memory, source, at, mask)]):
            b.store(x, b.gep(target, b.add(at, v * lanes), memory.real))

    memory.vectors(memory.depth, copy)


def _load(memory: Memory, base: Value, at: Index, mask: Value | None = None) -> Value:
    b = memory.b
    return load_element(b, b.masked_load(memory.vector, b.gep(base, at, memory.element), mask), memory.dtype)


def _round(memory: Memory, source: Value, target: Value, row: Value) -> None:
    """A query as integers relative to its largest number, so small that no sum of products with bytes overflows. What
    makes them numbers again is NaN if one of them is not finite."""
    b, lanes, real, words = memory.b, memory.lanes, memory.real, vector(I32, memory.lanes)
    most = min((1 << 15) - 1, ((1 << 31) - 1) // (memory.depth << 7))
    zero = b.zero(vector(real, lanes))
    with b.loop(0, memory.depth, lanes, [zero, zero]) as loop:
        x, (top, spoiled) = _load(memory, source, loop.index), loop.carry
        loop.yield_values(b.fmax(top, b.unary("fabs", x)), b.fma(x, 0.0, spoiled))
    top, spoiled = b.reduce("fmax", loop.results[0]), b.reduce("fadd", loop.results[1])
    top = b.fmax(top, constant(real, _LEAST))
    factor = b.splat(b.fdiv(float(most), top), lanes)
    with b.loop(0, memory.depth, lanes) as loop:
        x = b.unary("roundeven", b.fmul(_load(memory, source, loop.index), factor))
        whole = b.intrinsic("llvm.fptosi.sat", words, x, overloads=(words, x.type))
        b.store(b.convert("trunc", whole, I16), b.gep(target, loop.index, I16))
    b.store(b.fadd(b.fmul(top, 1 / most), spoiled), b.gep(memory.query_scales, row, real))
