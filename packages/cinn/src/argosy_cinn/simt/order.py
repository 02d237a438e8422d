"""Orders on work-groups: each work-item finds the places of some elements of a row by counting those before them.

An element comes before another if its keys are less, or equal and it stands before it, so that no two have the same
place, and nothing is moved in between. That takes as many comparisons as a row has pairs: long rows are merged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy_cinn.forms.order import OrderForm
from argosy_cinn.loops.elementwise import load_element
from argosy_cinn.loops.sort_keys import ordered_bits
from argosy_cinn.printers.types import FLOAT, I32, I64, LLVM_TYPES, Value, lanes_of, vector
from argosy_cinn.printers.types import Index as MachineIndex
from argosy_cinn.printers.work_groups import WorkGroupInstructions
from argosy_cinn.shapes import NotSymbolic, at_least_one, ceil_div
from argosy_cinn.simt.emitter import SimtEmitter
from argosy_cinn.simt.merge_sort import ITEMS, emit_merges
from argosy_cinn.target import Target

_ITEMS = 16
#: Elements of the longest rows that are sorted by counting.
_LONGEST = 1 << 15


def emit_order(b: WorkGroupInstructions, kernel: OrderForm, slots: Mapping[Any, int]) -> None:
    """Fill the kernel of an order. Raises UnprintableError for long rows."""
    if not isinstance(kernel.length, int):
        raise NotSymbolic("how rows are sorted depends on their length")
    if kernel.merges:
        emit_merges(b, kernel, slots)
        return
    lanes = b.module.target.lanes(FLOAT)
    blocks, item = -(-kernel.length // lanes), b.global_id()
    with b.if_then(b.icmp("slt", item, kernel.rows * blocks)):
        row = b.div(item, blocks)
        outer, column = b.div(row, kernel.inner), b.rem(row, kernel.inner)
        base = b.add(b.mul(outer, kernel.length * kernel.inner), column)
        first = b.convert("trunc", b.index(b.mul(b.rem(item, blocks), lanes)), I32)
        own = b.binary("add", b.splat(first, lanes), b.iota(I32, lanes))
        exists = b.icmp("slt", own, kernel.length)
        place = _places(b, base, own, kernel.inner)
        keys = [_key_bits(b, b.gather(vector(LLVM_TYPES[k.dtype], lanes), b.buffers[slots[k]], place, exists), k.dtype)
                for k in kernel.keys]  # fmt: skip
        with b.loop(0, kernel.length, 1, [b.zero(own.type)]) as loop:
            at = b.add(base, b.mul(loop.index, kernel.inner))
            before = _comes_before(b, kernel, slots, keys, own, at, b.convert("trunc", loop.index, I32))
            loop.yield_values(b.binary("sub", loop.carry[0], b.convert("sext", before, I32)))
        (rank,) = loop.results
        wanted = b.binary("and", exists, b.icmp("slt", rank, kernel.first))
        to = _places(b, b.add(b.mul(outer, kernel.first * kernel.inner), column), rank, kernel.inner)
        b.scatter(own, b.buffers[slots[kernel.order]], to, wanted)


def _places(b: WorkGroupInstructions, base: MachineIndex, number: Value, step: int) -> Value:
    """Where elements of these numbers are."""
    wide = b.convert("sext", number, I64)
    return b.binary("add", b.splat(b.index(base), lanes_of(wide.type)), b.binary("mul", wide, step))


def _comes_before(
    b: WorkGroupInstructions,
    kernel: OrderForm,
    slots: Mapping[Any, int],
    keys: list[Value],
    own: Value,
    at: MachineIndex,
    other: Value,
) -> Value:
    """Whether the element ``other`` of the row, whose keys are at ``at``, comes before each of ``own``."""
    lanes = b.module.target.lanes(FLOAT)
    before = b.icmp("slt", b.splat(other, lanes), own)
    for key, mine in reversed(list(zip(kernel.keys, keys, strict=True))):
        memory = LLVM_TYPES[key.dtype]
        read = _key_bits(b, b.load(memory, b.gep(b.buffers[slots[key]], at, memory)), key.dtype)
        read = b.splat(read, lanes)
        first = b.icmp("ugt" if kernel.descending else "ult", read, mine)
        before = b.binary("or", first, b.binary("and", b.icmp("eq", read, mine), before))
    return before


def _key_bits(b: WorkGroupInstructions, loaded: Value, dtype: str) -> Value:
    return ordered_bits(b, load_element(b, loaded, dtype), dtype)


def extents(kernel: OrderForm, target: Target) -> tuple[int, int]:
    """Groups, and work-items of each."""
    if kernel.merges:
        return kernel.rows, ITEMS
    blocks = -(-kernel.length // target.lanes(FLOAT))
    return at_least_one(ceil_div(kernel.rows * blocks, _ITEMS)), _ITEMS


def choose(kernel: OrderForm, target: Target) -> None:
    """Merge where rows are long."""
    kernel.merges = isinstance(kernel.length, int) and kernel.length > _LONGEST


EMITTER = SimtEmitter(emit_order, extents, choose)
"""For `argosy_cinn.kinds`."""
