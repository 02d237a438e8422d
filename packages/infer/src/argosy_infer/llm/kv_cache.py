"""Which blocks of the paged cache belong to which sequence.

A sequence of ``n`` tokens holds ``ceil(n / block_size)`` blocks; blocks of a finished sequence go back to the free
list, so memory does not fragment (Kwon et al., SOSP 2023). Sequences that begin alike may have blocks in common: one
that writes to such a block gets a copy first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["BlockAllocator", "CacheFull"]


class CacheFull(RuntimeError):
    """No free block is left in the key-value cache."""


class BlockAllocator:
    """Hands out blocks of ``block_size`` tokens from a pool of ``blocks``. ``lengths``: how many tokens of a sequence
    are cached, where some are. ``others``: how many sequences besides the first one have a block, where some do."""

    __slots__ = ("block_size", "blocks", "free", "lengths", "others", "tables")

    def __init__(self, blocks: int, block_size: int) -> None:
        if blocks < 1 or block_size < 1:
            raise ValueError(f"a cache needs at least one block of at least one token, got {blocks} of {block_size}")
        self.blocks = blocks
        self.block_size = block_size
        self.free = list(range(blocks - 1, -1, -1))
        self.tables: dict[int, list[int]] = {}
        self.lengths: dict[int, int] = {}
        self.others: dict[int, int] = {}

    def reserve(self, sequence: int, tokens: int, start: int = 0) -> list[tuple[int, int]]:
        """Let ``sequence`` hold ``tokens`` tokens in all, of which those from ``start`` on are written: blocks that
        others have, too, and their copies, which are the caller's to make. Raises :class:`CacheFull` and changes
        nothing when it cannot.
        """
        table = self.tables.get(sequence, [])
        need = max(-(-tokens // self.block_size) - len(table), 0)
        if not need and table and not self.others:
            return []
        copied = [at for at in range(start // self.block_size, len(table)) if table[at] in self.others]
        if need + len(copied) > len(self.free):
            raise CacheFull(
                f"sequence {sequence} needs {need + len(copied)} more blocks of {self.block_size} tokens, "
                f"{len(self.free)} of {self.blocks} are free"
            )
        if need or copied or not table:
            table = table + [self.free.pop() for _ in range(need)]
            self.tables[sequence] = table
        copies = []
        for at in copied:
            copies.append((table[at], self.free.pop()))
            self._drop(table[at])
            table[at] = copies[-1][1]
        return copies

    def fork(self, sequence: int, child: int) -> None:
        """Let ``child`` have the tokens of ``sequence`` so far, in the same blocks."""
        self.tables[child] = list(self.tables[sequence])
        self.lengths[child] = self.lengths[sequence]
        for block in self.tables[child]:
            self.others[block] = self.others.get(block, 0) + 1

    def release(self, sequence: int) -> None:
        """Give back the blocks of ``sequence``; an unknown one holds none."""
        for block in reversed(self.tables.pop(sequence, [])):
            self._drop(block)
        self.lengths.pop(sequence, None)

    def _drop(self, block: int) -> None:
        """A sequence has a block no longer: it is free, unless others have it."""
        count = self.others.pop(block, 0)
        if not count:
            self.free.append(block)
        elif count > 1:
            self.others[block] = count - 1

    def table(self, sequences: list[int]) -> npt.NDArray[np.int64]:
        """The block tables [sequences, longest table], short ones padded with block 0 (never read: positions bound
        it).
        """
        rows = [self.tables[s] for s in sequences]
        made = np.zeros((len(rows), max((len(r) for r in rows), default=0) or 1), np.int64)
        for i, row in enumerate(rows):
            made[i, : len(row)] = row
        return made
