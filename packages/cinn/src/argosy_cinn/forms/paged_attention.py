"""Attention over a paged cache: some tokens and some cached heads at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from argosy_cinn.forms.form import Form
from argosy_cinn.forms.nest import identifier
from argosy_cinn.shapes import ceil_div, nbytes, sizes
from argosy_hwadapt.cpu.features import physical_cores
from argosy_phi_ops.primitives.cost import Cost
from argosy_pir.types import ITEM_SIZES
from argosy_pir.values import Value

#: Rows of scores that a chunk has at a time: tokens times the heads that share a cached one.
_ROWS = 32
#: Least rows of a token that a chunk has of a cached head, all of which read what is cached.
_LEAST_ROWS = 8


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
        """Cached heads of a chunk: each core's, whose keys of one token are read together; no sum depends on it."""
        return max(ceil_div(self.query[1], physical_cores()), 1)

    @property
    def part(self) -> int:
        """Heads of a chunk that share a cached one: all, unless there are fewer cached heads than cores, as where one
        latent head serves all; no sum depends on it."""
        shared, wanted = self.query[2], ceil_div(physical_cores(), max(self.query[1], 1))
        parts = [n for n in range(2, wanted + 1) if shared % n == 0 and shared // n >= _LEAST_ROWS]
        return shared // max(parts, default=1)

    @property
    def parts(self) -> int:
        """Chunks that read the same cached heads."""
        return self.query[2] // max(self.part, 1)

    @property
    def chunks(self) -> int:
        """Tiles of tokens, for each group of cached heads and part of the heads that share one."""
        return ceil_div(self.query[0], self.tile_tokens) * ceil_div(self.query[1], self.heads) * self.parts

    def key(self, slots: dict[Any, int]) -> str:
        """Shapes and rule."""
        for buffer in (*self.operands, self.result):
            slots.setdefault(buffer, len(slots))
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
