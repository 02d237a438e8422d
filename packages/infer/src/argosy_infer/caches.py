"""The caches of an incremental program, as an engine sees them: what to allocate, without knowing the model."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from argosy_pir.program import Program
from argosy_pir.types import ITEM_SIZES, TensorType
from argosy_tensorcore.dtype import as_dtype

__all__ = ["CACHE", "Cache", "caches_of"]

CACHE = "cache"
"""The attribute ``role`` of a state that is a cache."""
_LINE = 64


@dataclass(frozen=True)
class Cache:
    """A paged cache: the state ``name`` of the ``layer``-th attention or scan, [blocks, *block] of ``dtype``.

    ``block`` is (tokens of a block, heads, width); that of scales, float32 numbers which what the int8 cache
    ``scales_of`` holds is multiplied with, is (tokens of a block, heads). ``kind`` is ``full``, ``latent`` where keys
    and values of all heads are made of it, ``recurrent`` for what a scan along the text (a running sum, a cell) has
    come to at each token, block (tokens of a block, ...), or ``window`` where tokens see no more than the last
    ``window`` places: blocks that lie before all of them are free again.
    """

    name: str
    kind: str
    layer: int
    block: tuple[int, ...]
    dtype: str
    window: int = 0
    scales_of: str = ""

    @property
    def block_bytes(self) -> int:
        """Bytes of a block."""
        return prod(self.block) * ITEM_SIZES[self.dtype]

    def allocate(self, blocks: int) -> np.ndarray[Any, Any]:
        """An empty cache of so many blocks, which begins with a cache line of the processor: each vector of 64 bytes
        that lies on two lines is read twice."""
        size = blocks * self.block_bytes
        memory = np.zeros(size + _LINE, np.uint8)
        start = -memory.ctypes.data % _LINE
        return memory[start : start + size].view(as_dtype(self.dtype).numpy).reshape(blocks, *self.block)


def caches_of(program: Program) -> tuple[Cache, ...]:
    """The caches of an incremental program, in the order of its states."""
    found = []
    for state in program.states:
        about, type = state.attributes, state.type
        if about.get("role") == CACHE and isinstance(type, TensorType):
            block = tuple(int(n) for n in type.shape[1:])  # type: ignore[arg-type]  # numbers, but for the first one
            kind, layer, window = str(about["kind"]), int(about["layer"]), int(about["window"])
            scales_of = str(about.get("scales_of", ""))
            found.append(Cache(state.name, kind, layer, block, type.dtype, window, scales_of))
    return tuple(found)
