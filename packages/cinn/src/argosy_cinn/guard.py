"""Memory beside pages that nobody may touch: code that reads or writes outside of it ends the process.

A tool for whoever works on the compiler. With the option ``guard`` or ``ARGOSY_GUARD`` every intermediate value and
every result lies on pages of its own, right behind a page without access (``before``: nothing before it may be touched)
or right in front of one (``behind``). Memory is filled with bytes of ones, which are NaN as floats, so that what is
read before it was written shows. What of a value's pages belongs to no value is looked at after the run.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from argosy_cinn.plan.memory import PAGE, on_own_pages
from argosy_cinn.shapes import count, sizes
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_pir.values import Value

Array = np.ndarray[Any, Any]
_NOBODY = 0  # PROT_NONE
_UNTOUCHED = 0xFF


class GuardedArena:
    """The memory of values of ``nbytes`` bytes during one call. Raises NotImplementedError where the system does not
    protect pages."""

    def __init__(self, nbytes: Sequence[int], guard: str) -> None:
        if not hasattr(mmap, "MAP_PRIVATE") or PAGE % mmap.PAGESIZE:
            raise NotImplementedError("guarded memory needs pages of at most 4 KiB that mprotect can close")
        offsets, size = on_own_pages(nbytes, guard)
        self._memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._bytes = np.frombuffer(self._memory, np.uint8)
        self.address = int(self._bytes.ctypes.data)
        self._spans = list(zip(offsets, nbytes, strict=True))
        end = 0
        for offset, length in self._spans:
            start = offset // PAGE * PAGE
            self._close(end, start)
            end = -(-(offset + length) // PAGE) * PAGE
            self._bytes[start:end] = _UNTOUCHED
        self._close(end, size)

    def _close(self, start: int, end: int) -> None:
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        if end > start and protect(self.address + start, end - start, _NOBODY):
            raise OSError(ctypes.get_errno(), "mprotect failed")

    def view(self, value: Value, offset: int) -> Array:
        """The array of a value in the arena."""
        dtype = numpy_dtype(value.dtype)
        return self._view_at(offset, count(value) * dtype.itemsize, sizes(value), dtype)

    def array(self, i: int, shape: tuple[int, ...], dtype: Any) -> Array:
        """Value ``i`` as an array."""
        return self._view_at(*self._spans[i], shape, dtype)

    def _view_at(self, offset: int, length: int, shape: tuple[int, ...], dtype: Any) -> Array:
        found: Array = self._bytes[offset : offset + length].view(dtype)
        return found.reshape(shape)

    def check(self, what: str) -> None:
        """Raises RuntimeError where code wrote beside a value, on its pages."""
        for i, (offset, length) in enumerate(self._spans):
            start, end = offset // PAGE * PAGE, -(-(offset + length) // PAGE) * PAGE
            beside = (self._bytes[start:offset], self._bytes[offset + length : end])
            if any((part != _UNTOUCHED).any() for part in beside):
                raise RuntimeError(f"{what}: code wrote beside value {i}, of {length} bytes at {offset}")


def guarded_results(
    outputs: Sequence[tuple[tuple[int, ...], Any, bool]], guard: str
) -> tuple[GuardedArena, list[Array]]:
    """Memory of results, and their arrays."""
    lengths = [int(np.prod(shape)) * np.dtype(dtype).itemsize for shape, dtype, _ in outputs]
    arena = GuardedArena(lengths, guard)
    return arena, [arena.array(i, shape, dtype) for i, (shape, dtype, _) in enumerate(outputs)]


__all__ = ["GuardedArena", "guarded_results"]
