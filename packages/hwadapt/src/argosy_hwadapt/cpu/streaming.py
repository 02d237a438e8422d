"""Copies for another core to read: their stores stream past the caches of this one.

What another core has just read is slow to write, and what this core has just written is slow to read there, wherever
cores have caches of their own. Such stores are in no library, so their code comes from a compiler that is installed:
entry-point group ``argosy.streaming_copies``, functions that return a :data:`StreamingCopy`, or None where the
machine has none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from argosy_hwadapt.cpu.c_bindings import address_of
from argosy_hwadapt.errors import CommunicatorError
from argosy_hwadapt.plugins import PlugIns

__all__ = ["StreamingCopy", "copy_function"]

StreamingCopy: TypeAlias = Callable[[int, int, int], object]
"""Copies bytes: address of the target, of the source, number. Stores that come later are not seen before its own."""
_COPIES = PlugIns("argosy.streaming_copies", "streaming copy", CommunicatorError)


@cache
def copy_function() -> Callable[[NDArray[Any], NDArray[Any]], object]:
    """Copies the second array to the first one, of equal dtype and size, both contiguous."""
    for name in _COPIES.names():
        code: StreamingCopy | None = _COPIES.locate(name)[1]()()
        if code is not None:
            return lambda target, source: code(address_of(target), address_of(source), source.nbytes)
    return np.copyto
