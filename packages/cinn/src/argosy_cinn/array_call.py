"""The short way into a program: arrays in, arrays out, one native call that finds their addresses itself."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_cinn.arena import free_arenas, take_arena
from argosy_cinn.runtime.arrays import ArrayEntry, Frame, array_entry
from argosy_phi_ops.reference.kernels.registry import numpy_dtype

if TYPE_CHECKING:
    from argosy_cinn.executable import Executable
    from argosy_tensorcore.storage import Storage

Array = np.ndarray[Any, Any]
#: Runs a program on arrays of its types; None, with nothing done, where they need more care (see `ArrayEntry`).
ArrayCall = Callable[[Sequence[Array]], list[Array] | None]


def array_call(
    executable: Executable,
    table: array[int],
    ranges: Sequence[tuple[int, int]],
    written: Sequence[Storage],
    lock: AbstractContextManager[Any],
) -> ArrayCall | None:
    """The short way of an executable whose table of addresses holds states and constants; None where it has none.

    ``ranges`` and ``written`` are the memory of states that change, whose runs ``lock`` keeps apart.
    """
    outputs = [(shape, dtype) for shape, dtype, _ in executable.outputs]
    if executable.hosts or any(large for _, _, large in executable.outputs):
        return None
    inputs = executable.signature[: len(executable.interface.inputs)]
    frame = Frame(
        table, len(inputs), 1 + len(executable.signature), len(outputs), executable.dims_address,
        [prod(shape) * numpy_dtype(dtype).itemsize for shape, dtype in inputs], ranges, executable.sizes.work,
    )  # fmt: skip
    native = array_entry(executable.library, "segment0", frame)
    if native is None:
        return None
    call = _call(executable, native, outputs)
    return call if not written else _updating(call, written, lock)


def _call(executable: Executable, native: ArrayEntry, outputs: Sequence[tuple[tuple[int, ...], Any]]) -> ArrayCall:
    device, nbytes, empty = executable.device, executable.sizes.arena_bytes, np.empty
    free = free_arenas(device)

    def call(inputs: Sequence[Array]) -> list[Array] | None:
        if executable.watched:
            return None
        made = [empty(shape, dtype) for shape, dtype in outputs]
        try:
            arena = take_arena(free, device, nbytes)
        except MemoryError:
            return None  # the long way says what needs so much
        ran = native(arena.address, *inputs, *made)
        free.append(arena)
        return made if ran else None

    def call_without_arena(inputs: Sequence[Array]) -> list[Array] | None:
        if executable.watched:
            return None
        made = [empty(shape, dtype) for shape, dtype in outputs]
        return made if native(0, *inputs, *made) else None

    return call if nbytes else call_without_arena


def _updating(call: ArrayCall, written: Sequence[Storage], lock: AbstractContextManager[Any]) -> ArrayCall:
    def update(inputs: Sequence[Array]) -> list[Array] | None:
        with lock:
            made = call(inputs)
        if made is not None:
            for storage in written:
                storage.version += 1
        return made

    return update


__all__ = ["ArrayCall", "array_call"]
