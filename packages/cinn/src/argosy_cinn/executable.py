"""The compiled program: checks arguments, fills the table of addresses, and makes the native call.

Python work per call grows with the number of inputs and outputs only. Inputs that are not contiguous are copied first;
states that are not are copied in and out; both are counted in `Executable.report`.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from argosy_cinn.host import HostCall
from argosy_cinn.program_cache import Manifest
from argosy_cinn.runtime.entry import Entry
from argosy_cinn.shapes import sizes
from argosy_cinn.steps import Place
from argosy_hwadapt import Device
from argosy_phi_ops.errors import DTypeError, ShapeError
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_pir.program import Program
from argosy_pir.values import Value
from argosy_tensorcore.storage import Strided

Array = np.ndarray[Any, Any]
_LARGE = 1 << 20


class Executable:
    """A program compiled for a host device, for fixed shapes.

    ``code`` and ``explanation`` are what `argosy_cinn.explanation` shows.
    """

    def __init__(
        self,
        program: Program,
        compiled: Program,
        device: Device,
        entries: Sequence[Entry],
        hosts: Sequence[HostCall],
        places: Mapping[Value, Place],
        constants: Sequence[Array],
        manifest: Manifest,
        communicators: Mapping[tuple[int, ...], Any],
        facts: dict[str, Any],
    ) -> None:
        self.program = program
        self.compiled = compiled
        self._device, self._entries, self._hosts, self._places = device, list(entries), list(hosts), places
        self._constants, self._manifest = list(constants), manifest
        self._communicators, self._facts = communicators, facts
        self._signature = [_kind(v) for v in compiled.block.arguments]
        self._outputs = [(sizes(v), numpy_dtype(v.dtype)) for v in compiled.outputs]
        self._written = manifest.written
        self._arenas: list[Any] = []
        self._lock = threading.Lock()
        self._copied = 0

    def run(self, inputs: Sequence[Strided], states: Sequence[Strided] = ()) -> list[Strided]:
        """Execute once. Raises ``ShapeError`` or ``DTypeError`` naming the argument that does not fit."""
        return self.bind(states)(inputs)

    def bind(self, states: Sequence[Strided]) -> Callable[[Sequence[Strided]], list[Strided]]:
        """A callable for repeated execution on the same states."""
        count = len(self._signature) - len(states)
        if count != len(self.compiled.inputs):
            raise ValueError(f"program '{self.program.name}' has {len(self.compiled.states)} states, got {len(states)}")
        for i, state in enumerate(states):
            self._check(count + i, state, f"state {self.compiled.states[i].name!r}")
        return _Bound(self, list(states))

    def report(self) -> dict[str, Any]:
        """Figures: ``kernels`` (distinct native functions), ``kernel_calls``, ``host_calls`` (by primitive),
        ``arena_bytes``, ``compile_seconds``, ``cache_hit``, ``copied_arguments`` (not contiguous, over all calls)."""
        return {**self._facts, "copied_arguments": self._copied}

    def describe(self) -> str:
        """What `argosy_cinn.explain` shows: segments, kernels and host calls."""
        return self._manifest.text

    def code(self) -> str:
        """The LLVM assembly of the kernels (generated again)."""
        from argosy_cinn.compiler import generated_code

        return generated_code(self.compiled)

    def _check(self, index: int, payload: Strided, label: str) -> None:
        shape, dtype = self._signature[index]
        if tuple(payload.shape) != shape:
            raise ShapeError(f"{label} has shape {list(payload.shape)}, the program expects {list(shape)}")
        if payload.dtype.name != dtype:
            raise DTypeError(f"{label} has dtype {payload.dtype.name}, the program expects {dtype}")

    def _take_arena(self) -> Any:
        with self._lock:
            if self._arenas:
                return self._arenas.pop()
        return _Arena(self._device, self._manifest.arena_bytes)

    def _give_arena(self, arena: Any) -> None:
        with self._lock:
            self._arenas.append(arena)


def _kind(value: Value) -> tuple[tuple[int, ...], str]:
    return sizes(value), value.dtype


class _Arena:
    """The memory of intermediate values."""

    def __init__(self, device: Device, nbytes: int) -> None:
        self.buffer = device.allocate(nbytes + 256) if nbytes else None
        self.address = device.address(self.buffer) if self.buffer is not None else 0
        self._device = device
        self._views: dict[Value, Array] = {}

    def view(self, value: Value, offset: int) -> Array:
        """The array of a value in the arena."""
        found = self._views.get(value)
        if found is None:
            dtype = numpy_dtype(value.dtype)
            if 0 in sizes(value) or self.buffer is None:
                return np.empty(sizes(value), dtype)
            count = int(np.prod(sizes(value), dtype=np.int64)) * dtype.itemsize
            memory = self._device.host_view(self.buffer, offset, count)
            assert memory is not None
            found = self._views[value] = np.frombuffer(memory, np.uint8).view(dtype).reshape(sizes(value))
        return found


class _Bound:
    """An executable with its states: the object that is called."""

    def __init__(self, executable: Executable, states: list[Strided]) -> None:
        self.executable, self.states = executable, states
        e = executable
        self.inputs = len(e.compiled.inputs)
        self.table = np.zeros(1 + len(e._signature) + len(e._outputs) + len(e._constants) + 1, np.int64)
        self.staged: list[tuple[Strided, Array]] = []
        self.state_arrays: list[Array] = []
        first = 1 + self.inputs
        for i, state in enumerate(states):
            array = self._state_array(state, i in e._written)
            self.state_arrays.append(array)
            self.table[first + i] = array.__array_interface__["data"][0]
        self.output_entry = first + len(states)
        for i, constant in enumerate(e._constants):
            self.table[self.output_entry + len(e._outputs) + i] = constant.__array_interface__["data"][0]
        self.ranges = sorted(
            (int(self.table[first + i]), int(self.table[first + i]) + self.state_arrays[i].nbytes) for i in e._written
        )
        self.starts = [a for a, _ in self.ranges]
        self.lock = threading.Lock()

    def _state_array(self, state: Strided, written: bool) -> Array:
        array = state.array()
        if array.flags.c_contiguous:
            return array
        self.executable._copied += 1
        copy = np.ascontiguousarray(array).reshape(array.shape)
        if written:
            self.staged.append((state, copy))
        return copy

    def __call__(self, inputs: Sequence[Strided]) -> list[Strided]:
        e = self.executable
        if len(inputs) != self.inputs:
            raise ValueError(f"program '{e.program.name}' takes {self.inputs} inputs, got {len(inputs)}")
        with self.lock:
            return self._run(inputs)

    def _run(self, inputs: Sequence[Strided]) -> list[Strided]:
        e, table = self.executable, self.table
        signature = e._signature
        kept: list[Any] = []
        for i, payload in enumerate(inputs):
            shape, dtype = signature[i]
            if payload.shape != shape or payload.dtype.name != dtype:
                e._check(i, payload, f"input {i}")
            if payload.contiguous and not (self.ranges and self._overlaps(payload)):
                table[1 + i] = payload.address
                kept.append(payload)
            else:
                e._copied += 1
                copy = payload.array().copy(order="C")
                table[1 + i] = copy.__array_interface__["data"][0]
                kept.append(Strided(copy))
        for state, array in self.staged:
            array[...] = state.array()
        outputs = [_fresh(shape, dtype, e._device) for shape, dtype in e._outputs]
        for i, payload in enumerate(outputs):
            table[self.output_entry + i] = payload.address
        arena = e._take_arena()
        try:
            table[0] = arena.address
            self._execute(arena, kept, outputs)
        finally:
            e._give_arena(arena)
        for state, array in self.staged:
            state.fill_from(array)
        for i in e._written:
            self.states[i].bump_version()
        return outputs

    def _execute(self, arena: _Arena, inputs: list[Strided], outputs: list[Strided]) -> None:
        e = self.executable
        address = self.table.__array_interface__["data"][0]
        if not e._hosts:
            e._entries[0](address, 0)
            return
        arrays = [None, *(p.array() for p in inputs), *self.state_arrays, *(p.array() for p in outputs), *e._constants]

        def memory(value: Value) -> Array:
            place = e._places[value]
            found = arrays[place.entry]
            return arena.view(value, place.offset) if found is None else found

        tokens: dict[Value, Any] = {}
        for entry, host in zip(e._entries, e._hosts, strict=False):
            entry(address, 0)
            host.run(memory, tokens, e._communicators)
        e._entries[-1](address, 0)

    def _overlaps(self, payload: Strided) -> bool:
        """Whether an input lies in memory of a state that the program writes."""
        start = payload.address
        i = bisect_right(self.starts, start + payload.nbytes - 1) - 1
        return i >= 0 and self.ranges[i][1] > start


def _fresh(shape: tuple[int, ...], dtype: np.dtype[Any], device: Device) -> Strided:
    """Memory for an output; large ones come from the device, whose pages are huge and reused."""
    count = dtype.itemsize
    for n in shape:
        count *= n
    if count >= _LARGE:
        return Strided.empty(shape, dtype, device)
    return Strided(np.empty(shape, dtype))
