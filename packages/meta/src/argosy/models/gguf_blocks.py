"""Blocks of GGUF files as integers with scales: what a layer multiplies with instead of the float32 they stand for;
and blocks of 256 numbers made of floats, which the library ``gguf`` reads alone.

A row is a sequence of blocks. Q8_0, Q5_0 and Q4_0 have 32 numbers and a scale; Q4_1 and Q5_1 have a minimum, too, which
is added. Q4_K, Q5_K and Q6_K have 256 numbers, in 8 groups of 32 or 16 groups of 16, whose scales are small integers
times one of the block; the first two also have a minimum for each group, made in the same way, which is taken from each
of its numbers. Numbers of five and six bits take eight in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["PARTS_OF_BLOCKS", "WRITTEN", "pack_numbers", "read_blocks"]

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


def _q4_1(blocks: Array, part: str) -> Array:
    """A scale, a minimum, and the numbers."""
    if part == "numbers":
        return (_bits(blocks[:, 2 * _HALF :], 16, 4) - np.uint8(8)).view(np.int8)
    scales = _half(blocks, 0).astype(np.float32)
    return scales if part == "scales" else 8 * scales + _half(blocks, _HALF)


def _five_bits(low: Array, high: Array, width: int) -> Array:
    """Numbers less their middle of the four lower bits (see :func:`_bits`) and the fifth ones: of ``width`` bytes of
    these first the lowest bits; 0: eight of a byte follow each other."""
    fifth = _bits(high, width, 1) if width else np.unpackbits(high, axis=1, bitorder="little")
    made: Array = (low | fifth << 4).view(np.int8) - np.int8(16)
    return made


def _q5_0(blocks: Array, part: str) -> Array:
    """A scale, the fifth bits, and the others."""
    return _half(blocks, 0) if part == "scales" else _five_bits(_bits(blocks[:, 6:], 16, 4), blocks[:, 2:6], 0)


def _q5_1(blocks: Array, part: str) -> Array:
    """A scale, a minimum, the fifth bits, and the others."""
    if part == "numbers":
        return _five_bits(_bits(blocks[:, 8:], 16, 4), blocks[:, 4:8], 0)
    scales = _half(blocks, 0).astype(np.float32)
    return scales if part == "scales" else 16 * scales + _half(blocks, _HALF)


def _q4_k(blocks: Array, part: str) -> Array:
    """What :func:`_of_groups` reads, and the numbers."""
    if part == "numbers":
        return (_bits(blocks[:, 16:], 32, 4) - np.uint8(8)).view(np.int8)
    return _of_groups(blocks, part, 8)


def _q5_k(blocks: Array, part: str) -> Array:
    """What :func:`_of_groups` reads, the fifth bits, and the others."""
    if part == "numbers":
        return _five_bits(_bits(blocks[:, 48:], 32, 4), blocks[:, 16:48], 32)
    return _of_groups(blocks, part, 16)


def _of_groups(blocks: Array, part: str, middle: int) -> Array:
    """Scales and offsets of a scale, one of minima, and 12 bytes of both for each group in six bits."""
    low, high, rest = blocks[:, 4:16].reshape(-1, 3, 4).swapaxes(0, 1)
    scales = np.concatenate([low & 63, rest & 15 | low >> 2 & 48], -1) * _half(blocks, 0).astype(np.float32)
    if part == "scales":
        return scales
    minima = np.concatenate([high & 63, rest >> 4 | high >> 2 & 48], -1) * _half(blocks, _HALF).astype(np.float32)
    offsets: Array = middle * scales - minima  # numbers are less their middle
    return offsets


def _q6_k(blocks: Array, part: str) -> Array:
    """Low halves of four bits, the two bits above them, scales of eight bits, and the scale of all."""
    if part == "scales":
        return blocks[:, 192:208].view(np.int8) * _half(blocks, 208).astype(np.float32)
    numbers: Array = (_bits(blocks[:, :128], 64, 4) | _bits(blocks[:, 128:192], 32, 2) << 4).view(np.int8) - np.int8(32)
    return numbers


_KINDS: dict[str, tuple[int, int, int, Callable[[Array, str], Array]]] = {
    "Q8_0": (8, 32, 34, _q8_0), "Q4_0": (4, 32, 18, _q4_0), "Q4_1": (4, 32, 20, _q4_1),
    "Q5_0": (8, 32, 22, _q5_0), "Q5_1": (8, 32, 24, _q5_1),
    "Q4_K": (4, 32, 144, _q4_k), "Q5_K": (8, 32, 176, _q5_k), "Q6_K": (8, 16, 210, _q6_k),
}  # fmt: skip
"""Bits, inputs of a group, bytes of a block, and what reads its parts."""
_WITH_MINIMA = ("Q4_1", "Q5_1", "Q4_K", "Q5_K")
PARTS_OF_BLOCKS = {
    kind: ("numbers", "scales", "form") + (("offsets",) if kind in _WITH_MINIMA else ()) for kind in _KINDS
}
"""The parts of a matrix of blocks."""


# ---- writing


def _rounded_quotients(x: Array, steps: Array, least: int, most: int) -> Array:
    """Whole numbers of ``steps`` that come nearest to ``x``; 0 where those are 0."""
    found = np.divide(x, steps, out=np.zeros_like(x), where=steps != 0)
    whole: Array = np.clip(np.rint(found), least, most).astype(np.int16)
    return whole


def _steps_of_block(scales: Array, most: int) -> tuple[Array, Array, Array]:
    """Scales [blocks, groups] as whole numbers times one of a block (float16); and what they are then."""
    one = (scales.max(1, keepdims=True) / most).astype(np.float16)
    wide = np.broadcast_to(one.astype(np.float32), scales.shape)
    whole = _rounded_quotients(scales, wide, 0, most)
    return one.view(np.uint8), whole.astype(np.uint8), (whole * wide).astype(np.float32)


def pack_numbers(numbers: Array, scales: Array, bits: int) -> Array:
    """Rows of blocks Q8_0 or Q4_0 (``bits`` 8 or 4) of ``numbers`` [out, in] (int8) with ``scales`` [out, groups].

    Raises ValueError for scales that float16 does not hold, and for groups that are no whole blocks."""
    out, size = numbers.shape
    if size % 32 or (size // scales.shape[1]) % 32:
        raise ValueError(f"{size} inputs in {scales.shape[1]} groups are no blocks of 32")
    small = scales.astype(np.float16)
    if not np.isfinite(small).all() or ((small == 0) & (scales != 0)).any():
        raise ValueError("its scales are beyond float16")
    ones = np.repeat(small, size // 32 // scales.shape[1], axis=1).reshape(-1, 1).view(np.uint8)
    blocks = numbers.reshape(-1, 32)
    packed = blocks.view(np.uint8) if bits == 8 else _pack_bits(blocks + 8, 16, 4)
    return np.concatenate([ones, packed], 1).reshape(out, -1)


def _pack_bits(numbers: Array, width: int, each: int) -> Array:
    """The inverse of :func:`_bits`."""
    spread = numbers.reshape(len(numbers), -1, 8 // each, width).astype(np.uint8)
    shifts = np.arange(0, 8, each, dtype=np.uint8)[:, None]
    packed: Array = np.bitwise_or.reduce(spread << shifts, axis=2).reshape(len(numbers), -1)
    return packed


def _write_q4_k(rows: Array) -> Array:
    """Numbers between the least (or zero) and the largest of each group of 32 in 15 steps, rounded to the nearest."""
    groups = rows.reshape(-1, 8, 32)
    minima = np.maximum(-groups.min(-1), 0)
    one, scales, steps = _steps_of_block((np.maximum(groups.max(-1), 0) + minima) / 15, 63)
    one_minimum, lows, taken = _steps_of_block(minima, 63)
    numbers = _rounded_quotients(groups + taken[..., None], np.broadcast_to(steps[..., None], groups.shape), 0, 15)
    (first, last), (low, high) = (np.split(x, 2, axis=1) for x in (scales, lows))
    of_groups = [first | (last >> 4) << 6, low | (high >> 4) << 6, last & 15 | (high & 15) << 4]
    return np.concatenate([one, one_minimum, *of_groups, _pack_bits(numbers.reshape(-1, 256), 32, 4)], 1)


def _write_q6_k(rows: Array) -> Array:
    """Numbers of each group of 16 in 63 steps around zero, rounded to the nearest."""
    groups = rows.reshape(-1, 16, 16)
    one, scales, steps = _steps_of_block(np.abs(groups).max(-1) / 31, 127)
    whole = _rounded_quotients(groups, np.broadcast_to(steps[..., None], groups.shape), -32, 31)
    numbers = (whole + 32).reshape(-1, 256)
    return np.concatenate([_pack_bits(numbers & 15, 64, 4), _pack_bits(numbers >> 4, 32, 2), scales, one], 1)


WRITTEN: dict[str, Callable[[Array], Array]] = {"Q4_K": _write_q4_k, "Q6_K": _write_q6_k}
"""What makes blocks [blocks, bytes] of rows [out, in] of float32, whose inputs are a multiple of 256."""
