"""The stable order of one row of unsigned keys.

Short rows by rank (how many keys are less, or equal and earlier): a comparison of vectors per pair of elements. Others
by radix, least significant digit first (Knuth, The Art of Computer Programming 3, 5.2.5), with all histograms taken in
one pass and digits that all keys share left out.
"""

from __future__ import annotations

from typing import NamedTuple

from argosy_cinn.printers.llvm import Function
from argosy_cinn.printers.types import I32, I64, PTR, VOID, Value, constant, vector

_DIGIT = 8
_BUCKETS = 1 << _DIGIT
#: Leading bits that tell which keys may be among the first.
_LEADING = 11
#: Rows up to this many vectors of keys are ordered by rank.
_RANKED_VECTORS = 16
#: Bytes of the histograms of the widest keys.
COUNTS_BYTES = 4 * _BUCKETS * (64 // _DIGIT)


class Row(NamedTuple):
    """Addresses: keys and their positions, memory for as many again, and histograms."""

    keys: Value
    order: Value
    other_keys: Value
    other_order: Value
    counts: Value


def order_row(b: Function, row: Row, n: Value, bits: int) -> None:
    """Sort ``row.order`` by ``row.keys`` of ``bits`` bits; the keys themselves are left in any order. Keys may be read
    up to a vector beyond the last."""
    lanes = b.module.target.vector_bits // bits
    short = b.icmp("sle", n, lanes * _RANKED_VECTORS)
    b.either(short, lambda: _by_rank(b, row, n, bits, lanes), lambda: _by_radix(b, row, n, bits))


def _by_rank(b: Function, row: Row, n: Value, bits: int, lanes: int) -> list[Value]:
    element = f"i{bits}"
    type = vector(element, lanes)
    with b.loop(0, n, lanes) as block:
        own = b.load(type, b.gep(row.keys, block.index, element))
        first = block.index if bits == 64 else b.convert("trunc", block.index, element)
        places = b.binary("add", b.splat(first, lanes), b.iota(element, lanes))
        with b.loop(0, n, 1, [b.zero(type)]) as other:
            key = b.splat(b.load(element, b.gep(row.keys, other.index, element)), lanes)
            at = other.index if bits == 64 else b.convert("trunc", other.index, element)
            earlier = b.binary("and", b.icmp("eq", key, own), b.icmp("ult", b.splat(at, lanes), places))
            before = b.binary("or", b.icmp("ult", key, own), earlier)
            other.yield_values(b.binary("add", other.carry[0], b.convert("zext", before, element)))
        b.store(other.results[0], b.gep(row.other_keys, block.index, element))
    with b.loop(0, n) as i:
        rank = b.load(element, b.gep(row.other_keys, i.index, element))
        b.store(b.load(I32, b.gep(row.order, i.index, I32)), b.gep(row.other_order, _widen(b, rank), I32))
    _copy(b, row.order, row.other_order, n)
    return []


def keep_first(b: Function, row: Row, n: Value, first: int, bits: int) -> Value:
    """Keep the keys that may be among the ``first`` and their positions, in order; how many that are. All whose leading
    bits are at most those of the last one wanted: a histogram tells."""
    element, shift = f"i{bits}", bits - _LEADING
    lanes = b.module.target.vector_bits // 32
    with b.loop(0, 1 << _LEADING, lanes) as i:
        b.store(b.zero(vector(I32, lanes)), b.gep(row.counts, i.index, I32))
    with b.loop(0, n) as i:
        key = b.load(element, b.gep(row.keys, i.index, element))
        bucket = b.gep(row.counts, _widen(b, b.binary("lshr", key, shift)), I32)
        b.store(b.binary("add", b.load(I32, bucket), 1), bucket)

    def is_below(carry: list[Value]) -> Value:
        return b.icmp("slt", carry[1], first)

    def step(carry: list[Value]) -> list[Value]:
        found = b.convert("zext", b.load(I32, b.gep(row.counts, carry[0], I32)), I64)
        return [b.index(b.add(carry[0], 1)), b.index(b.add(carry[1], found))]

    end, _ = b.repeat([constant(I64, 0), constant(I64, 0)], is_below, step)
    with b.loop(0, n, 1, [constant(I64, 0)]) as i:
        (kept,) = i.carry
        key = b.load(element, b.gep(row.keys, i.index, element))
        b.store(key, b.gep(row.keys, kept, element))
        b.store(b.load(I32, b.gep(row.order, i.index, I32)), b.gep(row.order, kept, I32))
        inside = b.icmp("ult", _widen(b, b.binary("lshr", key, shift)), end)
        i.yield_values(b.binary("add", kept, b.convert("zext", inside, I64)))
    return i.results[0]


def _widen(b: Function, x: Value) -> Value:
    return x if x.type == I64 else b.convert("zext", x, I64)


def _copy(b: Function, to: Value, source: Value, n: Value) -> None:
    size = b.index(b.mul(n, 4))
    b.intrinsic("llvm.memcpy", VOID, to, source, size, constant("i1", 0), overloads=(PTR, PTR, I64))


def _by_radix(b: Function, row: Row, n: Value, bits: int) -> list[Value]:
    _count(b, row, n, bits)
    start = [row.keys, row.order, row.other_keys, row.other_order]
    with b.loop(0, bits, _DIGIT, start) as passes:
        shift = passes.index if bits == 64 else b.convert("trunc", passes.index, I32)
        counts = b.gep(row.counts, b.mul(passes.index, _BUCKETS // _DIGIT), I32)
        sample = _digit(b, b.load(f"i{bits}", passes.carry[0]), shift)
        same = b.icmp("eq", b.convert("zext", b.load(I32, b.gep(counts, sample, I32)), I64), n)
        here = list(passes.carry)
        passes.yield_values(*b.either(same, lambda: here, lambda: _pass(b, here, counts, shift, n, bits)))
    order = passes.results[1]
    with b.if_then(b.icmp("ne", order, row.order)):
        _copy(b, row.order, order, n)
    return []


def _digit(b: Function, key: Value, shift: Value | int) -> Value:
    return _widen(b, b.binary("and", b.binary("lshr", key, shift), _BUCKETS - 1))


def _count(b: Function, row: Row, n: Value, bits: int) -> None:
    """The histogram of every digit."""
    digits = bits // _DIGIT
    lanes = b.module.target.vector_bits // 32
    with b.loop(0, digits * _BUCKETS, lanes) as i:
        b.store(b.zero(vector(I32, lanes)), b.gep(row.counts, i.index, I32))
    with b.loop(0, n) as i:
        key = b.load(f"i{bits}", b.gep(row.keys, i.index, f"i{bits}"))
        for digit in range(digits):
            bucket = b.gep(row.counts, b.add(_digit(b, key, digit * _DIGIT), digit * _BUCKETS), I32)
            b.store(b.binary("add", b.load(I32, bucket), 1), bucket)


def _pass(b: Function, here: list[Value], counts: Value, shift: Value, n: Value, bits: int) -> list[Value]:
    """Distribute keys and positions by one digit; the memory they are in then, and the memory they were in."""
    keys, order, to_keys, to_order = here
    element = f"i{bits}"
    with b.loop(0, _BUCKETS, 1, [b.zero(I32)]) as bucket:
        place = b.gep(counts, bucket.index, I32)
        found = b.load(I32, place)
        b.store(bucket.carry[0], place)
        bucket.yield_values(b.binary("add", bucket.carry[0], found))
    with b.loop(0, n) as i:
        key = b.load(element, b.gep(keys, i.index, element))
        place = b.gep(counts, _digit(b, key, shift), I32)
        position = b.load(I32, place)
        b.store(b.binary("add", position, 1), place)
        target = _widen(b, position)
        b.store(key, b.gep(to_keys, target, element))
        b.store(b.load(I32, b.gep(order, i.index, I32)), b.gep(to_order, target, I32))
    return [to_keys, to_order, keys, order]


__all__ = ["COUNTS_BYTES", "Row", "keep_first", "order_row"]
