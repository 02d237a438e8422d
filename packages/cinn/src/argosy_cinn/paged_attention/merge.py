"""The code that merges the partial sums of split contexts: a chunk is a tile of tokens and some cached heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy_cinn.emitter import Emitter
from argosy_cinn.forms.paged_attention import SegmentMergeForm
from argosy_cinn.loops.nest import PARAMETERS, Pointers
from argosy_cinn.paged_attention.panels import Heads
from argosy_cinn.paged_attention.segments import merge_sums
from argosy_cinn.paged_attention.tiles import Division, Tiles
from argosy_cinn.printers.llvm import Module
from argosy_cinn.printers.types import I64, Index, Value, constant


def emit_merge(module: Module, name: str, form: SegmentMergeForm, slots: Mapping[Any, int]) -> None:
    """Define the kernel function ``name``."""
    with module.function(name, PARAMETERS, export=False, attributes="noinline") as b:
        table, chunk, _ = b.arguments
        b.sizes_from(table, len(slots))
        _Merge(b, form.attention, Pointers(b, table, slots)).emit(chunk)


EMITTER = Emitter(emit_merge, lambda form, target: form.chunks)
"""For `argosy_cinn.kinds`."""


class _Merge(Tiles):
    def emit(self, chunk: Value) -> None:
        """The results of a tile whose contexts are in several parts."""
        b = self.b
        number = self.locate(chunk, self.form.groups)
        division, heads = self.divide(), self.group(number, self.form.heads)
        with b.if_then(b.icmp("sgt", division.parts, 1)):
            rows = b.mul(b.sub(self.end, self.begin), self.part)
            self._merge_parts(division, heads, b.mul(heads.size, rows))
            sums = self.partial_sums(0, heads.first, self.begin)
            self.each_row(heads, rows, self.begin, lambda row: self.store_result(row, sums))

    def _merge_parts(self, division: Division, heads: Heads, rows: Index) -> None:
        """Pairs of parts, pairs of these, and so on, as their numbers among all of the context have it, where the first
        one of each is."""
        b, first = self.b, division.first
        end = b.index(b.add(first, division.parts))

        def pairs(carry: list[Value]) -> list[Value]:
            (size,) = carry
            twice = b.index(b.mul(size, 2))
            with b.loop(b.mul(b.div(first, twice), twice), end, twice) as loop:
                left, right = b.maximum(loop.index, first), b.index(b.add(loop.index, size))
                are_both = b.binary("and", b.icmp("sgt", right, first), b.icmp("slt", right, end))
                with b.if_then(are_both):
                    one, other = (
                        self.partial_sums(b.sub(part, first), heads.first, self.begin) for part in (left, right)
                    )
                    merge_sums(self.memory, one, other, one, rows)
            return [twice]

        b.repeat([constant(I64, 1)], lambda carry: b.icmp("slt", carry[0], end), pairs)
