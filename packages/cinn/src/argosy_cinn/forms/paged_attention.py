"""Attention over a paged cache: some tokens, and some cached heads or a part of their contexts, at a time."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

from argosy_cinn.forms.form import Form, PartialResults
from argosy_cinn.forms.nest import identifier
from argosy_cinn.shapes import at_least_one, ceil_div, larger, nbytes, sizes, smaller
from argosy_hwadapt.cpu.features import physical_cores
from argosy_phi_ops.primitives.attention import split_others
from argosy_phi_ops.primitives.cost import Cost
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value

#: Rows of scores that a chunk has at a time: tokens times the heads that share a cached one.
_ROWS = 32
#: Least rows of a token that a chunk has of a cached head, all of which read what is cached.
_LEAST_ROWS = 8
#: Places of a segment, whose sums are made apart and merged afterwards. Borders are its multiples, always.
SEGMENT = 512
#: Chunks for each core where few tokens read long contexts, at most: the last ones are short then.
_CHUNKS = 8
#: Vectors of partial results have no more lanes, whatever the machine.
_LANES = 16


@dataclass(slots=True)
class PagedAttentionForm(Form):
    """``prim.paged_attention`` of its ``operands``."""

    kind: ClassVar[str] = "paged attention"

    operands: list[Value]
    result: Value
    scale: float
    window: int
    softcap: float

    @property
    def query(self) -> tuple[int, ...]:
        """Tokens, cached heads, heads that share one, width of a key."""
        return sizes(self.operands[0])

    @property
    def width(self) -> int:
        """Of a value."""
        return sizes(self.result)[3]

    @property
    def tile_tokens(self) -> int:
        """Tokens of a chunk."""
        return max(_ROWS // self.part, 1)

    @property
    def rows(self) -> int:
        """Rows of scores that a chunk has of a cached head, at most."""
        return self.tile_tokens * self.part

    @property
    def heads(self) -> int:
        """Cached heads of a chunk: each core's, whose keys of one token are read together."""
        return max(ceil_div(self.query[1], self.cores), 1)

    @property
    def part(self) -> int:
        """Heads of a chunk that share a cached one: all, unless there are fewer cached heads than cores, as where one
        latent head serves all."""
        shared, wanted = self.query[2], ceil_div(self.cores, max(self.query[1], 1))
        parts = [n for n in range(2, wanted + 1) if shared % n == 0 and shared // n >= _LEAST_ROWS]
        return shared // max(parts, default=1)

    @property
    def parts(self) -> int:
        """Chunks that read the same cached heads."""
        return self.query[2] // max(self.part, 1)

    @property
    def tiles(self) -> int:
        """Tiles of tokens, for each part of the heads that share a cached one."""
        return ceil_div(self.query[0], self.tile_tokens) * self.parts

    @property
    def groups(self) -> int:
        """Groups of cached heads."""
        return ceil_div(self.query[1], self.heads)

    @property
    def segments(self) -> int:
        """Segments of the longest context that the tables can hold."""
        return ceil_div(sizes(self.operands[5])[1] * sizes(self.operands[1])[1], SEGMENT)

    @property
    def cores(self) -> int:
        """Those that chunks are divided among; no sum depends on it."""
        return physical_cores()

    @property
    def long(self) -> int:
        """Segments of the contexts of all tiles from which on they are split along positions, with all heads."""
        return _CHUNKS // 2 * self.cores

    @property
    def splits(self) -> int:
        """Chunks of a tile: its groups of heads, or, where there are few tiles, as many as it takes to fill the cores
        with parts of long contexts."""
        if self.cores == 1:
            return self.groups
        filling = _CHUNKS * self.cores // at_least_one(self.tiles)
        return larger(self.groups, smaller(self.groups * self.segments, filling))

    @property
    def is_split(self) -> bool:
        """Whether a chunk may have a part of its tile's contexts alone."""
        return not isinstance(self.splits, int) or self.splits > self.groups

    @property
    def most_heads(self) -> int:
        """Cached heads of a chunk, at most: all where contexts are split."""
        return self.query[1] if self.is_split else self.heads

    @property
    def chunks(self) -> int:
        """Splits of tiles."""
        return self.tiles * self.splits

    @property
    def partial_sums(self) -> PartialResults:
        """The sums of parts of contexts, as `argosy_cinn.paged_attention.tiles` lays them out."""
        return PartialResults(self.result, "sums of parts of contexts")

    def buffers(self) -> dict[Hashable, int]:
        """Partial sums of all chunks that have a part of a context: as many as fill the cores, at most."""
        if not self.is_split:
            return {}
        chunks = self.chunks if isinstance(self.chunks, int) else _CHUNKS * self.cores
        rows, width = (ceil_div(n, _LANES) * _LANES for n in (self.rows * self.query[1], self.width))
        return {self.partial_sums: chunks * rows * (width + 2) * (8 if self.result.dtype == "float64" else 4)}

    def completion_forms(self) -> list[SegmentMergeForm]:
        """The merge of partial sums."""
        return [SegmentMergeForm(self)] if self.is_split else []

    def key(self, slots: dict[Any, int]) -> str:
        """Shapes and rule."""
        for buffer in (*self.operands, self.result):
            slots.setdefault(buffer, len(slots))
        if self.is_split:
            slots.setdefault(self.partial_sums, len(slots))
        types = [(slots[v], str(v.type)) for v in (*self.operands, self.result)]
        return f"paged attention {types} {self.scale!r} {self.window} {self.softcap!r}"

    def name(self) -> str:
        """Heads and widths."""
        return identifier("paged_attention", *self.query[1:], self.width)

    def summary(self) -> str:
        """Tokens and heads."""
        tokens, cached, shared, _ = self.query
        return f"attention of {tokens} tokens with {cached * shared} heads to the blocks of their sequences"

    def reads(self) -> set[Any]:
        """All operands."""
        return set(self.operands)

    def cost(self) -> Cost:
        """What the tables can hold, and a product each with keys and values."""
        tokens, cached, shared, width = self.query
        rows, blocks = sizes(self.operands[5])
        places, both = blocks * sizes(self.operands[1])[1], width + self.width
        item = ITEM_SIZES[self.operands[1].dtype]
        work = 2 * tokens * cached * shared * places * both
        return Cost(rows * places * cached * both * item, nbytes(self.result), work)


@dataclass(slots=True)
class SegmentMergeForm(Form):
    """The merge of the partial sums of an attention whose contexts were split."""

    kind: ClassVar[str] = "segment merge"

    attention: PagedAttentionForm

    @property
    def chunks(self) -> int:
        """Each tile's groups of heads; none where sizes that are known at run time have nothing split."""
        form = self.attention
        return smaller(form.splits - form.groups, 1) * form.tiles * form.groups

    def key(self, slots: dict[Any, int]) -> str:
        """That of the attention."""
        return f"merge of {self.attention.key(slots)}"

    def name(self) -> str:
        """Heads and width."""
        return identifier("segment_merge", *self.attention.query[1:3], self.attention.width)

    def summary(self) -> str:
        """Parts of contexts, at most."""
        return f"sums of up to {self.attention.splits} parts of contexts merged"

    def reads(self) -> set[Any]:
        """The partial sums, positions, which say how contexts were split, and sinks."""
        form = self.attention
        return {form.partial_sums, form.operands[3], *split_others(form.operands[6:])[0]}
