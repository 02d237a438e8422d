"""Which blocks of the paged cache belong to which sequence.

A sequence of ``n`` tokens holds ``ceil(n / block_size)`` blocks; blocks of a finished sequence go back to the free
list, so memory does not fragment (Kwon et al., SOSP 2023).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["BlockAllocator", "CacheFull"]


class CacheFull(RuntimeError):
    """No free block is left in the key-value cache."""


class BlockAllocator:
    """Hands out blocks of ``block_size`` tokens from a pool of ``blocks``. ``lengths``: how many tokens of a sequence
    are cached, where some are."""

    __slots__ = ("block_size", "blocks", "free", "lengths", "tables")

    def __init__(self, blocks: int, block_size: int) -> None:
        if blocks < 1 or block_size < 1:
            raise ValueError(f"a cache needs at least one block of at least one token, got {blocks} of {block_size}")
        self.blocks = blocks
        self.block_size = block_size
        self.free = list(range(blocks - 1, -1, -1))
        self.tables: dict[int, list[int]] = {}
        self.lengths: dict[int, int] = {}

    def reserve(self, sequence: int, tokens: int) -> None:
        """Let ``sequence`` hold ``tokens`` tokens in all. Raises :class:`CacheFull` and changes nothing when it
        cannot.
        """
        table = self.tables.get(sequence, [])
        need = -(-tokens // self.block_size) - len(table)
        if need <= 0 and table:
            return
        if need > len(self.free):
            raise CacheFull(
                f"sequence {sequence} needs {need} more blocks of {self.block_size} tokens, {len(self.free)} of "
                f"{self.blocks} are free"
            )
        self.tables[sequence] = table + [self.free.pop() for _ in range(need)]

    def release(self, sequence: int) -> None:
        """Give back the blocks of ``sequence``; an unknown one holds none."""
        self.free += reversed(self.tables.pop(sequence, []))
        self.lengths.pop(sequence, None)

    def table(self, sequences: list[int]) -> npt.NDArray[np.int64]:
        """The block tables [sequences, longest table], short ones padded with block 0 (never read: positions bound
        it).
        """
        rows = [self.tables[s] for s in sequences]
        made = np.zeros((len(rows), max((len(r) for r in rows), default=0) or 1), np.int64)
        for i, row in enumerate(rows):
            made[i, : len(row)] = row
        return made
