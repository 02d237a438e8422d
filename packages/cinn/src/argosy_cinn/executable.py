"""The compiled program: checks arguments, fills the table of addresses, and makes the native call.

Python work per call grows with the number of inputs and outputs only. Inputs that are not contiguous are copied first;
states that are not are copied in and out; both are counted in `Executable.report`.
"""

from __future__ import annotations

from _thread import allocate_lock
from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from argosy_cinn.host import HostCall
from argosy_cinn.program_cache import Manifest
from argosy_cinn.runtime.entry import Entry
from argosy_cinn.runtime.trace import Trace
from argosy_cinn.shapes import count, sizes
from argosy_cinn.steps import Place
from argosy_cinn.tracing import Sink, WatchedHost, watched_entries
from argosy_hwadapt import Device, DeviceOutOfMemory
from argosy_phi_ops.errors import DTypeError, ShapeError
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_phi_ops.reference.symbols import evaluate_shape
from argosy_pir.program import Program
from argosy_pir.values import Value
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import Strided

Array = np.ndarray[Any, Any]
_LARGE = 1 << 20


@dataclass(frozen=True, slots=True)
class Views:
    """What is made only when somebody looks: the ``simplified`` program that kernels were made from, and
    ``instrumented`` entries with their trace."""

    simplified: Callable[[], Program]
    instrumented: Callable[[], tuple[list[Entry], Trace]]


class Executable:
    """A program compiled for a host device, called with fixed shapes: those of the program, or, of code for all sizes,
    those that ``symbols`` gives; ``dims`` is the table of sizes that this code is called with.

    ``views`` and ``manifest`` are what `argosy_cinn.explanation` shows.
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
        views: Views,
        symbols: Mapping[str, int] | None = None,
        dims: array[int] | None = None,
    ) -> None:
        self.program = program
        self.compiled = compiled
        self._device, self._places = device, places
        self._entries: Sequence[Entry] = list(entries)
        self._plain_hosts = list(hosts)
        self._hosts: Sequence[HostCall | WatchedHost] = self._plain_hosts
        self._constants, self._manifest = list(constants), manifest
        self._communicators, self._facts = communicators, facts
        known = dict(symbols or {})
        self._dims = dims
        self.dims_address = dims.buffer_info()[0] if dims is not None else 0
        self._signature = [(evaluate_shape(v.shape, known), v.dtype) for v in compiled.block.arguments]
        # Large outputs come from the device, whose pages are huge and reused.
        shapes = [(evaluate_shape(v.shape, known), numpy_dtype(v.dtype)) for v in compiled.outputs]
        self._outputs = [(shape, dtype, prod(shape) * dtype.itemsize >= _LARGE) for shape, dtype in shapes]
        self.views = views
        self._plain_entries = self._entries
        self._written = manifest.written
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

    @property
    def manifest(self) -> Manifest:
        """Facts about its kernels and memory."""
        return self._manifest

    def describe(self) -> str:
        """What `argosy_cinn.explain` shows: segments, kernels, host calls and memory."""
        from argosy_cinn.explanation import describe

        return describe(self)

    def watch(self, sink: Sink) -> None:
        """Run instrumented code from now on and hand its events to ``sink`` (see `argosy_cinn.tracing`)."""
        entries, trace = self.views.instrumented()
        name = self.program.name
        names = [call.kernel for call in self._manifest.calls]
        self._entries = watched_entries(entries, trace, name, names, sink)
        self._hosts = [WatchedHost(host, name, sink) for host in self._plain_hosts]

    def unwatch(self) -> None:
        """Run the plain code again."""
        self._entries, self._hosts = self._plain_entries, self._plain_hosts

    def code(self) -> str:
        """The LLVM assembly of the kernels (generated again)."""
        from argosy_cinn.compiler import generated_code

        return generated_code(self.compiled)

    def _out_of_memory(self, error: MemoryError) -> DeviceOutOfMemory:
        from argosy_cinn.explanation import describe_memory

        return DeviceOutOfMemory(f"{error}\n{describe_memory(self)}", self._manifest.arena_bytes)

    def _check(self, index: int, payload: Strided, label: str) -> None:
        shape, dtype = self._signature[index]
        if tuple(payload.shape) != shape:
            raise ShapeError(f"{label} has shape {list(payload.shape)}, the program expects {list(shape)}")
        if payload.dtype.name != dtype:
            raise DTypeError(f"{label} has dtype {payload.dtype.name}, the program expects {dtype}")


class _Arena:
    """The memory of intermediate values during one call."""

    def __init__(self, device: Device, nbytes: int) -> None:
        self.nbytes = nbytes
        self.buffer = device.allocate(nbytes + 256) if nbytes else None
        self.address = device.address(self.buffer) if self.buffer is not None else 0
        self._device = device

    def view(self, value: Value, offset: int) -> Array:
        """The array of a value in the arena."""
        dtype = numpy_dtype(value.dtype)
        if 0 in sizes(value) or self.buffer is None:
            return np.empty(sizes(value), dtype)
        memory = self._device.host_view(self.buffer, offset, count(value) * dtype.itemsize)
        assert memory is not None
        return np.frombuffer(memory, np.uint8).view(dtype).reshape(sizes(value))


_free_arenas: dict[Device, list[_Arena]] = {}


def _take_arena(device: Device, nbytes: int) -> _Arena:
    """An arena of at least so many bytes: all programs of a device share those that no call is using.

    One that is too small is let go, so that what is held is what the largest program needs, times the calls that run at
    once.
    """
    free = _free_arenas.setdefault(device, [])
    try:
        arena = free.pop()
    except IndexError:
        return _Arena(device, nbytes)
    return arena if arena.nbytes >= nbytes else _Arena(device, nbytes)


class _Bound:
    """An executable with its states: the object that is called."""

    def __init__(self, executable: Executable, states: list[Strided]) -> None:
        e = self.executable = executable
        self.states = states
        self.inputs = len(e.compiled.inputs)
        self.expected = [(shape, as_dtype(dtype)) for shape, dtype in e._signature[: self.inputs]]
        self.written = [states[i].storage for i in e._written]
        self.staged: list[tuple[Strided, Array]] = []
        self.state_arrays = [self._state_array(state, i in e._written) for i, state in enumerate(states)]
        self.output_entry = 1 + self.inputs + len(states)
        outputs = [0] * len(e._outputs)
        fixed = [_address_of(a) for a in (*self.state_arrays, *e._constants)]
        held = fixed[: len(states)] + outputs + fixed[len(states) :]
        self.table = array("q", [0] * (1 + self.inputs) + held)
        self.table_address = self.table.buffer_info()[0]
        self.ranges = sorted((fixed[i], fixed[i] + self.state_arrays[i].nbytes) for i in e._written)
        self.starts = [start for start, _ in self.ranges]
        self.lock = allocate_lock()

    def _state_array(self, state: Strided, written: bool) -> Array:
        held = state.array()
        if held.flags.c_contiguous:
            return held
        self.executable._copied += 1
        copy = np.ascontiguousarray(held).reshape(held.shape)
        if written:
            self.staged.append((state, copy))
        return copy

    def __call__(self, inputs: Sequence[Strided]) -> list[Strided]:
        if len(inputs) != self.inputs:
            name = self.executable.program.name
            raise ValueError(f"program '{name}' takes {self.inputs} inputs, got {len(inputs)}")
        with self.lock:
            return self._run(inputs)

    def _run(self, inputs: Sequence[Strided]) -> list[Strided]:
        e, table = self.executable, self.table
        entry, kept = 1, inputs
        for payload, (shape, dtype) in zip(inputs, self.expected, strict=True):
            if payload.shape != shape or payload.dtype is not dtype:
                e._check(entry - 1, payload, f"input {entry - 1}")
            array = payload.ndarray  # asked directly: a payload works out strides and address in Python
            address = array.__array_interface__["data"][0]
            if not array.flags.c_contiguous or (self.ranges and self._overlaps(address, array.nbytes)):
                payload = self._copied(payload)
                kept = [*kept[: entry - 1], payload, *kept[entry:]]
                address = payload.address
            table[entry] = address
            entry += 1
        for state, stage in self.staged:
            stage[...] = state.array()
        outputs = []
        entry = self.output_entry
        for shape, numpy_type, large in e._outputs:
            made = Strided.empty(shape, numpy_type, e._device) if large else Strided(np.empty(shape, numpy_type))
            outputs.append(made)
            table[entry] = made.address if large else _address_of(made.ndarray)
            entry += 1
        try:
            arena = _take_arena(e._device, e._manifest.arena_bytes)
        except MemoryError as error:
            raise e._out_of_memory(error) from error
        try:
            table[0] = arena.address
            if e._hosts:
                self._execute(arena, kept, outputs)
            else:
                e._entries[0](self.table_address, e.dims_address)
        finally:
            _free_arenas[e._device].append(arena)
        for state, stage in self.staged:
            state.fill_from(stage)
        for storage in self.written:  # no call for each: a training step writes hundreds of states
            storage.version += 1
        return outputs

    def _copied(self, payload: Strided) -> Strided:
        self.executable._copied += 1
        return Strided(payload.array().copy(order="C"))

    def _execute(self, arena: _Arena, inputs: Sequence[Strided], outputs: list[Strided]) -> None:
        """Native segments and the host calls between them."""
        e = self.executable
        arrays = [None, *(p.array() for p in inputs), *self.state_arrays, *(p.array() for p in outputs), *e._constants]

        def memory(value: Value) -> Array:
            place = e._places.get(value)
            if place is None:  # no elements, no place
                return np.empty(sizes(value), numpy_dtype(value.dtype))
            found = arrays[place.entry]
            return arena.view(value, place.offset) if found is None else found

        tokens: dict[Value, Any] = {}
        for segment, host in zip(e._entries, e._hosts, strict=False):
            segment(self.table_address, e.dims_address)
            host.run(memory, tokens, e._communicators)
        e._entries[-1](self.table_address, e.dims_address)

    def _overlaps(self, start: int, nbytes: int) -> bool:
        """Whether an input lies in memory of a state that the program writes."""
        i = bisect_right(self.starts, start + nbytes - 1) - 1
        return i >= 0 and self.ranges[i][1] > start


def _address_of(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
