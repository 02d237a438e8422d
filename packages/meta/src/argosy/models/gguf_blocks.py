"""Blocks of GGUF files as integers with scales: what a layer multiplies with instead of the float32 they stand for.

A row is a sequence of blocks. Q8_0 and Q4_0 have 32 numbers and a scale. Q4_K and Q6_K have 256 numbers, in 8 groups of
32 or 16 groups of 16, whose scales are small integers times one of the block; Q4_K also has a minimum for each group,
made in the same way, which is taken from each of its numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["PARTS_OF_BLOCKS", "read_blocks"]

Array = np.ndarray[Any, Any]
_HALF = 2
"""Bytes of a float16."""


def read_blocks(rows: Array, kind: str, part: str) -> Array:
    """A part of a matrix whose ``rows`` [out, bytes] are blocks of a kind: ``numbers`` [out, in] (int8), ``scales`` and
    ``offsets`` [out, groups], or the ``form``: bits of the numbers, and inputs of a group."""
    bits, group, nbytes, read = _KINDS[kind]
    if part == "form":
        return np.array([bits, group])
    array = read(rows.reshape(-1, nbytes), part)
    return np.ascontiguousarray(array).reshape(len(rows), -1)


def _half(blocks: Array, start: int) -> Array:
    """The float16 [blocks, 1] from a byte on."""
    return np.ascontiguousarray(blocks[:, start : start + _HALF]).view(np.float16)


def _bits(packed: Array, width: int, each: int) -> Array:
    """Numbers of ``each`` bits of bytes [blocks, n]: of ``width`` bytes first the lowest bits, then the next ones."""
    shifts = np.arange(0, 8, each, dtype=np.uint8)[:, None]
    spread = packed.reshape(len(packed), -1, 1, width) >> shifts & np.uint8((1 << each) - 1)
    return spread.reshape(len(packed), -1)


def _q8_0(blocks: Array, part: str) -> Array:
    return _half(blocks, 0) if part == "scales" else blocks[:, _HALF:].view(np.int8)


def _q4_0(blocks: Array, part: str) -> Array:
    return _half(blocks, 0) if part == "scales" else (_bits(blocks[:, _HALF:], 16, 4) - np.uint8(8)).view(np.int8)


def _q4_k(blocks: Array, part: str) -> Array:
    """A scale, one of minima, 12 bytes of both for each group in six bits, and the numbers."""
    if part == "numbers":
        return (_bits(blocks[:, 16:], 32, 4) - np.uint8(8)).view(np.int8)
    low, high, rest = blocks[:, 4:16].reshape(-1, 3, 4).swapaxes(0, 1)
    scales = np.concatenate([low & 63, rest & 15 | low >> 2 & 48], -1) * _half(blocks, 0).astype(np.float32)
    if part == "scales":
        return scales
    minima = np.concatenate([high & 63, rest >> 4 | high >> 2 & 48], -1) * _half(blocks, _HALF).astype(np.float32)
    offsets: Array = 8 * scales - minima  # numbers are less their middle
    return offsets


def _q6_k(blocks: Array, part: str) -> Array:
    """Low halves of four bits, the two bits above them, scales of eight bits, and the scale of all."""
    if part == "scales":
        return blocks[:, 192:208].view(np.int8) * _half(blocks, 208).astype(np.float32)
    numbers: Array = (_bits(blocks[:, :128], 64, 4) | _bits(blocks[:, 128:192], 32, 2) << 4).view(np.int8) - np.int8(32)
    return numbers


_KINDS: dict[str, tuple[int, int, int, Callable[[Array, str], Array]]] = {
    "Q8_0": (8, 32, 34, _q8_0), "Q4_0": (4, 32, 18, _q4_0), "Q4_K": (4, 32, 144, _q4_k), "Q6_K": (8, 16, 210, _q6_k),
}  # fmt: skip
"""Bits, inputs of a group, bytes of a block, and what reads its parts."""
PARTS_OF_BLOCKS = {kind: ("numbers", "scales", "form") + (("offsets",) if kind == "Q4_K" else ()) for kind in _KINDS}
"""The parts of a matrix of blocks."""
