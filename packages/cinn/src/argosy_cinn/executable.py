"""The compiled program: checks arguments, fills the table of addresses, and makes the native call.

Python work per call grows with the number of inputs and outputs only, and where they are ordinary arrays it is done by
native code (`runtime.arrays`). Inputs that are not contiguous are copied first;
states that are not are copied in and out; both are counted in `Executable.report`.
"""

from __future__ import annotations

from _thread import LockType, allocate_lock
from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from argosy_cinn.arena import Arena, free_arenas, take_arena
from argosy_cinn.array_call import array_call
from argosy_cinn.host import HostCall
from argosy_cinn.normal_form import NormalForm
from argosy_cinn.plan.memory import Place
from argosy_cinn.plan.sizes import Sizes, check_argument
from argosy_cinn.runtime.entry import AnsweringEntry
from argosy_cinn.runtime.linking import Library
from argosy_cinn.runtime.trace import Trace
from argosy_cinn.shapes import sizes as shape_of
from argosy_cinn.store.program_cache import Manifest, RepeatedReadFacts, in_numbers
from argosy_cinn.tools.tracing import Sink, WatchedHost, watched_entries
from argosy_hwadapt import Device, DeviceOutOfMemory
from argosy_phi_ops.compiler import NativeCode
from argosy_phi_ops.errors import AxisError
from argosy_phi_ops.passes.primitives import to_primitives
from argosy_phi_ops.reference.kernels.registry import numpy_dtype
from argosy_pir.location import UNKNOWN, Location
from argosy_pir.program import Program
from argosy_pir.values import Value
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.storage import Storage, StridedArray

if TYPE_CHECKING:
    from argosy_cinn.guard import GuardedArena

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Views:
    """What is made only when somebody looks: the ``simplified`` program that kernels were made from, and
    ``instrumented`` entries with their trace."""

    simplified: NormalForm
    instrumented: Callable[[], tuple[list[AnsweringEntry], Trace]]


class Executable:
    """A program compiled for a host device, called with fixed shapes: those of ``sizes``.

    Where ``prepared`` is given, it gives the program when somebody looks at it, and neither ``program`` nor
    ``compiled`` is kept. ``views`` and ``manifest`` are what `argosy_cinn.tools.explanation` shows. For callers: the
    program's ``name``, number of ``inputs`` and names of ``states``, ``sizes``, with ``signature`` and ``outputs`` of
    it, ``hosts``, ``library``, and whether it is ``watched``.
    """

    def __init__(
        self,
        program: Program,
        compiled: Program,
        device: Device,
        library: Library,
        entries: Sequence[AnsweringEntry],
        hosts: Sequence[HostCall],
        places: Mapping[Value, Place],
        constants: Sequence[Array],
        manifest: Manifest,
        communicators: Mapping[tuple[int, ...], Any],
        facts: dict[str, Any],
        views: Views,
        sizes: Sizes,
        prepared: Callable[[], Program] | None = None,
    ) -> None:
        self.name, self.inputs = program.name, len(program.inputs)
        self.states = tuple([state.name for state in program.states])
        self._program: Program | None = program
        self._compiled: Program | None = compiled
        self._prepared: Callable[[], Program] | None = None
        if prepared is not None:
            self.leave_program_to(prepared)
        self.device, self.places = device, places
        self.library = library
        self._entries: Sequence[AnsweringEntry] = list(entries)
        self._plain_hosts = list(hosts)
        self.hosts: Sequence[HostCall] = self._plain_hosts
        self.constants, self._manifest = list(constants), manifest
        self._in_numbers: Manifest | None = None
        self.communicators, self._facts = communicators, facts
        self.sizes = sizes
        self.dims_address = sizes.dims.buffer_info()[0] if sizes.dims is not None else 0
        self.signature, self.outputs = sizes.signature, sizes.outputs
        self.views = views
        self.watched = False
        self.key = ""  # what the cache knows it by
        self._plain_entries = self._entries
        self.written = manifest.written
        self._copied = 0

    @property
    def program(self) -> Program:
        """The program as it was given to the compiler, prepared where that was asked of it."""
        if self._prepared is not None:
            return self._prepared()
        assert self._program is not None
        return self._program

    @property
    def primitive_program(self) -> Program:
        """The program of primitives."""
        if self._prepared is not None:
            return to_primitives(self._prepared())
        assert self._compiled is not None
        return self._compiled

    def leave_program_to(self, prepared: Callable[[], Program]) -> None:
        """Keep the program no longer; ``prepared`` gives one that is equal. Not for one with host calls, which name
        values of it."""
        self._prepared, self._program, self._compiled = prepared, None, None

    def run(self, inputs: Sequence[StridedArray], states: Sequence[StridedArray] = ()) -> list[StridedArray]:
        """Execute once. Raises ``ShapeError`` or ``DTypeError`` naming the argument that does not fit."""
        return self.bind(states)(inputs)

    def bind(self, states: Sequence[StridedArray], like: BoundExecutable | None = None) -> BoundExecutable:
        """A callable for repeated execution on the same states. ``like``: what was bound to them for other sizes."""
        count = len(self.signature) - len(states)
        if count != self.inputs:
            raise ValueError(f"program '{self.name}' has {len(self.states)} states, got {len(states)}")
        for i, state in enumerate(states if like is None else ()):
            check_argument(self.signature[count + i], state, f"state {self.states[i]!r}")
        return BoundExecutable(self, list(states), like)

    def report(self) -> dict[str, Any]:
        """Figures: ``kernels`` (distinct native functions), ``kernel_calls``, ``host_calls`` (by primitive),
        ``arena_bytes``, ``compile_seconds``, ``cache_hit``, ``copied_arguments`` (not contiguous, over all calls);
        ``unfused_attention``: for each attention whose scores lie in memory ``bytes`` of them and a ``reason`` (empty:
        unknown); ``weights_read_again``: for each ``name`` of a weight that a run reads more than once its ``bytes``,
        and how many ``times``."""
        manifest = self.manifest
        return {
            **self._facts,
            "copied_arguments": self._copied,
            "unfused_attention": [{"bytes": u.nbytes, "reason": u.reason} for u in manifest.unfused_attention],
            "weights_read_again": [
                {"name": self.weight_name(r), "bytes": r.nbytes, "times": r.read // r.nbytes}
                for r in manifest.repeated_reads
            ],
        }

    def weight_name(self, weight: RepeatedReadFacts) -> str:
        """The name of the state that a weight is; empty for a constant."""
        return self.states[weight.state] if weight.state >= 0 else ""

    @property
    def manifest(self) -> Manifest:
        """Facts about its kernels and memory."""
        sizes = self.sizes
        if sizes.symbols is None:
            return self._manifest
        if self._in_numbers is None:
            self._in_numbers = in_numbers(self._manifest, sizes.symbols, sizes.arena_bytes)
        return self._in_numbers

    def describe(self) -> str:
        """What `argosy_cinn.explain` shows: segments, kernels, host calls and memory."""
        from argosy_cinn.tools.explanation import describe

        return describe(self)

    def watch(self, sink: Sink) -> None:
        """Run instrumented code from now on and hand its events to ``sink`` (see `argosy_cinn.tools.tracing`)."""
        entries, trace = self.views.instrumented()
        name = self.name
        names = [call.kernel for call in self._manifest.calls]
        self._entries = watched_entries(entries, trace, name, names, sink)
        self.hosts = [WatchedHost(host, name, sink) for host in self._plain_hosts]
        self.watched = True

    def unwatch(self) -> None:
        """Run the plain code again."""
        self._entries, self.hosts = self._plain_entries, self._plain_hosts
        self.watched = False

    def code(self) -> str:
        """The LLVM assembly of the kernels (generated again)."""
        from argosy_cinn.assembly.building import generated_code

        return generated_code(self.primitive_program)

    def refusal(self, record: int, caller: Location = UNKNOWN) -> AxisError:
        """The error for what a run has noted at the address ``record``."""
        from argosy_cinn.checks.refusal import refusal

        return refusal(self.primitive_program, self.sizes.symbols, record, caller)

    def _out_of_memory(self, error: MemoryError) -> DeviceOutOfMemory:
        from argosy_cinn.tools.explanation import describe_memory

        return DeviceOutOfMemory(f"{error}\n{describe_memory(self)}", self.sizes.arena_bytes)


class BoundExecutable:
    """An executable with its states: the object that is called. ``on_arrays`` is its short way, where it has one."""

    written: list[Storage]
    staged: list[tuple[StridedArray, Array]]
    state_arrays: list[Array]
    ranges: list[tuple[int, int]]
    starts: list[int]
    table: array[int]
    lock: LockType

    def __init__(self, executable: Executable, states: list[StridedArray], like: BoundExecutable | None = None) -> None:
        e = self.executable = executable
        self.states = states
        self.inputs = e.inputs
        self.expected = [(shape, as_dtype(dtype)) for shape, dtype in e.signature[: self.inputs]]
        self.output_entry = 1 + self.inputs + len(states)
        if like is None:
            self._hold(states)
        else:
            self.written, self.staged, self.state_arrays, self.lock = (
                like.written, like.staged, like.state_arrays, like.lock
            )  # fmt: skip
            self.ranges, self.starts, self.table = like.ranges, like.starts, like.table[:]
        self.table_address = self.table.buffer_info()[0]
        self.on_arrays = None if self.staged else array_call(e, self.table, self.ranges, self.written, self.lock)

    def native_code(self) -> NativeCode | None:
        """The program for other native code; None where a run takes more than one call: host calls, states, sizes."""
        made = self._native_segment()
        return made and made._replace(arena=self.executable.sizes.arena_bytes)

    def _native_segment(self) -> NativeCode | None:
        """The only segment, with its arena left out."""
        e = self.executable
        if e.hosts or self.states or e.dims_address or e.sizes.guarded is not None or e.manifest.checks:
            return None
        if b"argosy_poll" in e.library.code:  # its loops may end with an exception, which native callers do not know
            return None
        return NativeCode(e.library.address("segment0"), tuple(self.table), self.output_entry, self)

    def _hold(self, states: list[StridedArray]) -> None:
        """Find out where the states are: what does not depend on the sizes of a call."""
        e = self.executable
        self.written = [states[i].storage for i in e.written]
        self.staged = []
        self.state_arrays = [self._state_array(state, i in e.written) for i, state in enumerate(states)]
        fixed = [_address_of(a) for a in (*self.state_arrays, *e.constants)]
        held = fixed[: len(states)] + [0] * len(e.outputs) + fixed[len(states) :]
        self.table = array("q", [0] * (1 + self.inputs) + held)
        self.ranges = sorted((fixed[i], fixed[i] + self.state_arrays[i].nbytes) for i in e.written)
        self.starts = [start for start, _ in self.ranges]
        self.lock = allocate_lock()

    def _state_array(self, state: StridedArray, written: bool) -> Array:
        held = state.array()
        if held.flags.c_contiguous:
            return held
        self.executable._copied += 1
        copy = np.ascontiguousarray(held).reshape(held.shape)
        if written:
            self.staged.append((state, copy))
        return copy

    def __call__(self, inputs: Sequence[StridedArray]) -> list[StridedArray]:
        if len(inputs) != self.inputs:
            name = self.executable.name
            raise ValueError(f"program '{name}' takes {self.inputs} inputs, got {len(inputs)}")
        if self.on_arrays is not None:
            made = self.on_arrays([payload.ndarray for payload in self._check_inputs(inputs)])
            if made is not None:
                return [StridedArray(array) for array in made]
        with self.lock:
            return self._run(inputs)

    def _check_inputs(self, inputs: Sequence[StridedArray]) -> Sequence[StridedArray]:
        for i, (payload, (shape, dtype)) in enumerate(zip(inputs, self.expected, strict=True)):
            if payload.shape != shape or payload.dtype is not dtype:
                check_argument((shape, dtype.name), payload, f"input {i}")
        return inputs

    def _run(self, inputs: Sequence[StridedArray]) -> list[StridedArray]:
        e, table = self.executable, self.table
        entry, kept = 1, inputs
        for payload in self._check_inputs(inputs):
            array = payload.ndarray  # asked directly: a payload works out strides and address in Python
            address = array.__array_interface__["data"][0]
            if not array.flags.c_contiguous or (self.ranges and self._overlaps(address, array.nbytes)):
                payload = self._copy_payload(payload)
                kept = [*kept[: entry - 1], payload, *kept[entry:]]
                address = payload.address
            table[entry] = address
            entry += 1
        for state, stage in self.staged:
            stage[...] = state.array()
        run = self._guard_run if e.sizes.guarded is not None else self._plan_run
        try:
            outputs = run(kept)
            for state, stage in self.staged:
                state.fill_from(stage)
        finally:  # a call that is refused may have written states, too
            for storage in self.written:  # no call for each: a training step writes hundreds of states
                storage.version += 1
        return outputs

    def _plan_run(self, inputs: Sequence[StridedArray]) -> list[StridedArray]:
        """In an arena of the device."""
        e, outputs = self.executable, []
        for entry, (shape, numpy_type, large) in enumerate(e.outputs, self.output_entry):
            made = (
                StridedArray.empty(shape, numpy_type, e.device) if large else StridedArray(np.empty(shape, numpy_type))
            )
            outputs.append(made)
            self.table[entry] = made.address if large else _address_of(made.ndarray)
        try:
            arena = take_arena(free_arenas(e.device), e.device, e.sizes.arena_bytes)
        except MemoryError as error:
            raise e._out_of_memory(error) from error
        try:
            self._execute(arena, inputs, outputs)
        finally:
            free_arenas(e.device).append(arena)
        return outputs

    def _guard_run(self, inputs: Sequence[StridedArray]) -> list[StridedArray]:
        """With intermediate values and results beside pages without access."""
        from argosy_cinn.guard import GuardedArena, guarded_results

        e = self.executable
        assert e.sizes.guarded is not None
        arena = GuardedArena(e.sizes.guarded, e._manifest.guard)
        memory, arrays = guarded_results(e.outputs, e._manifest.guard)
        for entry, made in enumerate(arrays, self.output_entry):
            self.table[entry] = _address_of(made)
        outputs = [StridedArray(made) for made in arrays]
        self._execute(arena, inputs, outputs)
        arena.check(f"intermediate values of program '{e.name}'")
        memory.check(f"results of program '{e.name}'")
        return outputs

    def _copy_payload(self, payload: StridedArray) -> StridedArray:
        self.executable._copied += 1
        return StridedArray(payload.array().copy(order="C"))

    def _execute(
        self, arena: Arena | GuardedArena, inputs: Sequence[StridedArray], outputs: list[StridedArray]
    ) -> None:
        """Native segments and the host calls between them."""
        e = self.executable
        self.table[0] = arena.address
        if not e.hosts:
            self._enter(e._entries[0])
            return
        arrays = [None, *(p.array() for p in inputs), *self.state_arrays, *(p.array() for p in outputs), *e.constants]

        def memory(value: Value) -> Array:
            place = e.places.get(value)
            if place is None:  # no elements, no place
                return np.empty(shape_of(value), numpy_dtype(value.dtype))
            found = arrays[place.entry]
            return arena.view(value, place.offset) if found is None else found

        tokens: dict[Value, Any] = {}
        for segment, host in zip(e._entries, e.hosts, strict=False):
            self._enter(segment)
            host.run(memory, tokens, e.communicators)
        self._enter(e._entries[-1])

    def _enter(self, segment: AnsweringEntry) -> None:
        """Run a native segment. Raises AxisError where it refuses an index."""
        record = segment(self.table_address, self.executable.dims_address)
        if record is not None:
            raise self.executable.refusal(record)

    def _overlaps(self, start: int, nbytes: int) -> bool:
        """Whether an input lies in memory of a state that the program writes."""
        i = bisect_right(self.starts, start + nbytes - 1) - 1
        return i >= 0 and self.ranges[i][1] > start


def _address_of(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
