"""The optional groups of the device contract, with defaults made only from the nine required methods.

A runtime offers an optional method by having an attribute of that name, taking its context first. Where it
has none, the function here of the same name is called with the :class:`~argosy_hwadapt.device.Device` in
the context's place, so that the layers above never ask which one they got.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from argosy_hwadapt.contract import TraceEvent
from argosy_hwadapt.errors import DeviceError, UnsupportedOperation

if TYPE_CHECKING:
    from argosy_hwadapt.communicator import Communicator
    from argosy_hwadapt.contract import Event, Handle, Stream
    from argosy_hwadapt.device import Device
    from argosy_hwadapt.kernel import DeviceArray

#: Group name -> its methods. A chip's author fills the groups its driver has, in any order, and leaves the
#: rest.
OPTIONAL_GROUPS: Mapping[str, tuple[str, ...]] = {
    "streams": (
        "stream_create",
        "stream_destroy",
        "event_record",
        "stream_wait_event",
        "event_synchronize",
        "event_elapsed",
    ),
    "memory": ("memset", "mem_info", "pinned_alloc", "pinned_free", "peer_copy", "host_view"),
    "operators": ("ops", "run_op"),
    "graph_compile": ("supports", "compile_graph", "run_graph"),
    "graph_capture": ("capture_begin", "capture_end", "capture_replay"),
    "collectives": ("communicator",),
    "profiler": ("profiler_start", "profiler_stop", "profiler_drain"),
    "life": ("close", "health", "reset"),
}

_FILL_CHUNK = 1 << 20


class HostEvent(NamedTuple):
    """The default event: everything submitted before it has finished, at this time of the host's clock."""

    nanoseconds: int


# Streams and events: one in-order queue; an event is a synchronisation and the host's clock.


def stream_create(device: Device) -> Stream:
    """Return the one in-order queue."""
    return None


def stream_destroy(device: Device, stream: Stream) -> None:
    """Wait for the work of the stream; the one queue itself stays."""
    device.call("synchronize", stream)


def event_record(device: Device, stream: Stream = None) -> HostEvent:
    """Wait for the stream and note the time."""
    device.call("synchronize", stream)
    return HostEvent(perf_counter_ns())


def stream_wait_event(device: Device, stream: Stream, event: Event) -> None:
    """Do nothing: the work before a default event has already finished."""


def event_synchronize(device: Device, event: Event) -> None:
    """Do nothing: the work before a default event has already finished."""


def event_elapsed(device: Device, start: HostEvent, end: HostEvent) -> float:
    """Return milliseconds of host time between two events."""
    return (end.nanoseconds - start.nanoseconds) / 1e6


# Memory.


def memset(device: Device, handle: Handle, offset: int, value: int, nbytes: int, stream: Stream = None) -> None:
    """Fill ``nbytes`` bytes with ``value`` by copies from the host."""
    pattern = bytes([value]) * min(nbytes, _FILL_CHUNK)
    device.retain(pattern)
    for start in range(0, nbytes, _FILL_CHUNK):
        device.perform("copy", handle, offset + start, pattern, 0, min(nbytes - start, _FILL_CHUNK), stream)


def mem_info(device: Device) -> tuple[int, int]:
    """Return (free, total) bytes by this process's own account."""
    total = device.info.memory_bytes
    return max(0, total - device.memory_stats().reserved), total


def pinned_alloc(device: Device, nbytes: int) -> bytearray:
    """Return ordinary host memory."""
    return bytearray(nbytes)


def pinned_free(device: Device, memory: Any) -> None:
    """Do nothing: ordinary host memory frees itself."""


def peer_copy(
    device: Device,
    dst: Handle,
    dst_off: int,
    source: Device,
    src: Handle,
    src_off: int,
    nbytes: int,
) -> None:
    """Copy from another device's memory through the host."""
    if device.operands is not None:  # the plug-in is capturing: it would keep the bytes of now
        raise UnsupportedOperation(f"{device}: a copy from {source} goes through the host, so no graph can capture it")
    staging = bytearray(nbytes)
    source.perform("copy", staging, 0, src, src_off, nbytes)
    source.perform("synchronize")
    device.perform("copy", dst, dst_off, staging, 0, nbytes)


def host_view(device: Device, handle: Handle, offset: int, nbytes: int, keep: object) -> memoryview | None:
    """Say that device memory is not visible to the host.

    A runtime whose memory is visible returns a writable ``memoryview`` that keeps ``keep`` alive as long as
    it lives.
    """
    return None


# A library of whole operators, and graph compilers: nothing unless the vendor has it.


def ops(device: Device) -> Mapping[str, Collection[str]]:
    """Return the vendor's operators by name, with the dtypes that operands and results may have: none."""
    return {}


def run_op(device: Device, name: str, args: Sequence[DeviceArray], attributes: Mapping[str, Any]) -> None:
    """Compute an operator's results, which follow its operands among ``args``; refused here: there is no library."""
    raise UnsupportedOperation(f"{device} has no operator library, so it cannot run operator {name!r}")


def supports(device: Device, subgraph: str) -> str:
    """Answer why the device does not take this subgraph, the text of a program of primitives, whole (an empty string
    would mean that it does)."""
    return f"{device} has no graph compiler"


def compile_graph(device: Device, graph: str) -> Any:
    """Make what ``run_graph`` takes of a program's text; refused here: the device compiles kernels, not graphs."""
    raise UnsupportedOperation(f"{device} has no graph compiler; programs are lowered to kernels for it")


def run_graph(device: Device, graph: Any, args: Sequence[DeviceArray]) -> None:
    """Run a graph: inputs, states (to be updated where they lie) and outputs are ``args``; refused here, too."""
    raise UnsupportedOperation(f"{device} has no graph compiler; programs are lowered to kernels for it")


# Capturing a sequence of launches and copies for cheap replay.


class _Recorder:
    """Keeps submissions instead of running them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __call__(self, device: Device, name: str, args: tuple[Any, ...]) -> None:
        self.calls.append((name, args))


def capture_begin(device: Device) -> None:
    """Start to record submissions instead of running them."""
    _observe(device, _Recorder())


def capture_end(device: Device) -> list[tuple[str, tuple[Any, ...]]]:
    """Stop recording and return the list of calls."""
    calls: list[tuple[str, tuple[Any, ...]]] = _unobserve(device, _Recorder, "graph capture").calls
    return calls


def capture_replay(device: Device, graph: list[tuple[str, tuple[Any, ...]]]) -> None:
    """Submit the recorded calls again, in order."""
    for name, args in graph:
        device.call(name, *args)


# Collectives.


def communicator(device: Device, ranks: Sequence[int] | None = None) -> Communicator:
    """Return the MPI communicator of these ranks (all, when ``None``); operands are staged through host
    memory.
    """
    from argosy_hwadapt.mpi import world

    return world(ranks)


# Profiling by the host's clock.


class _Profiler:
    """Times each submission by waiting for it; true for one kernel at a time, blind to overlap."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []

    def __call__(self, device: Device, name: str, args: tuple[Any, ...]) -> None:
        device.perform("synchronize")
        start = perf_counter_ns()
        device.perform(name, *args)
        device.perform("synchronize")
        label = f"launch {args[0]}" if name == "launch" else name
        self.events.append(TraceEvent(label, start, perf_counter_ns(), coarse=True))


def profiler_start(device: Device) -> None:
    """Start timing every submission, one at a time."""
    _observe(device, _Profiler())


def profiler_stop(device: Device) -> None:
    """Stop timing; the events wait for :func:`profiler_drain`."""
    device.trace.extend(_unobserve(device, _Profiler, "profiling").events)


def profiler_drain(device: Device) -> list[TraceEvent]:
    """Return the events gathered so far and forget them."""
    events, device.trace = device.trace, []
    return events


# Life.


def close(device: Device) -> None:
    """Wait for submitted work; memory is given back with the process."""
    device.call("synchronize")


def health(device: Device) -> None:
    """Write and read back a few bytes. Raises DeviceError if the device does not answer rightly."""
    sent, received = b"argosy health", bytearray(13)
    buffer = device.allocate(len(sent))
    device.perform("copy", buffer.handle, 0, sent, 0, len(sent), None)  # past observers: this is no work of the caller
    device.perform("copy", received, 0, buffer.handle, 0, len(sent), None)
    device.perform("synchronize")
    if received != sent:
        raise DeviceError(f"{device} is not healthy: it was given {sent!r} and gave back {bytes(received)!r}")


def reset(device: Device) -> None:
    """Refuse: a lost device without a reset of its own needs a new process."""
    raise UnsupportedOperation(f"{device} cannot be reset; start a new process")


def _observe(device: Device, observer: Callable[..., None]) -> None:
    if device.observer is not None or device.operands is not None:
        raise DeviceError(f"{device}: graph capture or profiling is already active; end it first")
    device.observer = observer


def _unobserve(device: Device, kind: type, what: str) -> Any:
    observer = device.observer
    if not isinstance(observer, kind):
        raise DeviceError(f"{device}: {what} was not started")
    device.observer = None
    return observer


#: Method name -> its default.
DEFAULTS: Mapping[str, Callable[..., Any]] = {
    name: globals()[name] for group in OPTIONAL_GROUPS.values() for name in group
}
