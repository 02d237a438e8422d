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
from argosy_tensorcore.storage import StridedArray

if TYPE_CHECKING:
    from argosy_cinn.executable import Executable
    from argosy_hwadapt import Device
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
    outputs = executable.outputs
    if executable.hosts or executable.sizes.guarded is not None:
        return None
    inputs = executable.signature[: executable.inputs]
    frame = Frame(
        table, len(inputs), 1 + len(executable.signature), len(outputs), executable.dims_address,
        [prod(shape) * numpy_dtype(dtype).itemsize for shape, dtype in inputs], ranges, executable.sizes.work,
    )  # fmt: skip
    native = array_entry(executable.library, "segment0", frame)
    if native is None:
        return None
    call = _call(executable, native, outputs)
    return call if not written else _update_states(call, written, lock)


def _call(
    executable: Executable, native: ArrayEntry, outputs: Sequence[tuple[tuple[int, ...], Any, bool]]
) -> ArrayCall:
    device, nbytes = executable.device, executable.sizes.arena_bytes
    free, results = free_arenas(device), _results(outputs, device)

    def call(inputs: Sequence[Array]) -> list[Array] | None:
        if executable.watched:
            return None
        try:
            made = results()
            arena = take_arena(free, device, nbytes)
        except MemoryError:
            return None  # the long way says what needs so much
        ran = native(arena.address, *inputs, *made)
        error = None if ran is True or ran is False else executable.refusal(ran)
        free.append(arena)
        if error is not None:
            raise error
        return made if ran else None

    def call_without_arena(inputs: Sequence[Array]) -> list[Array] | None:
        if executable.watched:
            return None
        try:
            made = results()
        except MemoryError:
            return None
        return made if native(0, *inputs, *made) else None

    return call if nbytes else call_without_arena


def _results(outputs: Sequence[tuple[tuple[int, ...], Any, bool]], device: Device) -> Callable[[], list[Array]]:
    """What makes the arrays of results; large ones in memory of the device, which is used again."""
    empty = np.empty
    if not any(large for _, _, large in outputs):
        sizes = [(shape, dtype) for shape, dtype, _ in outputs]
        return lambda: [empty(shape, dtype) for shape, dtype in sizes]
    return lambda: [
        StridedArray.empty(shape, dtype, device).ndarray if large else empty(shape, dtype)
        for shape, dtype, large in outputs
    ]


def _update_states(call: ArrayCall, written: Sequence[Storage], lock: AbstractContextManager[Any]) -> ArrayCall:
    def update(inputs: Sequence[Array]) -> list[Array] | None:
        made: list[Array] | None = []
        try:
            with lock:
                made = call(inputs)
        finally:  # a call that is refused may have written states, too
            if made is not None:
                for storage in written:
                    storage.version += 1
        return made

    return update


__all__ = ["ArrayCall", "array_call"]
