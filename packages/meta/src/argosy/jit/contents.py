"""What mutable Python objects contained when a capture read them: arrays, sets, bytes and long lists.

Comparisons run in C: they are part of every call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from operator import is_
from typing import Any
from zlib import crc32

import numpy as np

__all__ = ["MUTABLE", "content_check"]

MUTABLE = (np.ndarray, set, bytearray, deque)
_COPIED = 1 << 20  # bytes of an array of which a copy is kept; of larger ones it is a checksum


def content_check(x: Any) -> Callable[[], bool]:
    """What tells whether ``x``, an object of one of the types ``MUTABLE`` or a list, contains what it does now."""
    if isinstance(x, np.ndarray):
        return partial(_same_array, x, x.dtype, x.shape, _elements(x))
    if isinstance(x, (set, bytearray)):
        return partial(_is_equal, x, x.copy())
    return partial(_same_items, x, tuple(x))


def _is_equal(x: Any, before: Any) -> bool:
    return bool(x == before)


def _same_items(x: Collection[Any], before: tuple[Any, ...]) -> bool:
    return len(x) == len(before) and all(map(is_, x, before))


def _same_array(x: Any, dtype: Any, shape: tuple[int, ...], before: Any) -> bool:
    return bool(x.dtype == dtype and x.shape == shape and _elements(x) == before)


def _elements(x: Any) -> Any:
    """Something equal for arrays of equal bits, and of the same objects."""
    if x.dtype.hasobject:
        return [id(item) for item in x.flat]
    if x.nbytes <= _COPIED:
        return x.tobytes()
    return crc32(np.ascontiguousarray(x).reshape(-1).view(np.uint8).data)
