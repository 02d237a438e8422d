"""Streams, events, memory and properties of accelerators. On the cpu, which has none of them, they raise ValueError, as
Paddle's build for the CPU does.

``device``: a place, its name, the index of one of the kind that is set, or None for the one that is set.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn
from weakref import finalize

from argosy.device.places import get_device
from argosy_hwadapt import Device, MemoryStats
from argosy_tensorcore.place import Place, as_place, place_of

__all__ = [
    "DeviceProperties", "Event", "Stream", "StreamContext", "current_stream", "get_device_capability",
    "get_device_name", "get_device_properties", "get_stream_from_external", "ipc_collect",
    "is_current_stream_capturing", "max_memory_allocated", "max_memory_reserved", "memory_allocated",
    "memory_reserved", "reset_max_memory_allocated", "reset_max_memory_reserved", "reset_peak_memory_stats",
    "set_stream", "stream_guard", "unavailable_function",
]  # fmt: skip


def unavailable_function(name: str, wanted: str) -> Any:
    """A function of a device that raises ValueError, for want of what it needs."""

    def function(device: object = None) -> NoReturn:
        raise ValueError(f"device.{name}(): there is no {wanted}")

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"Raises ValueError: there is no {wanted}."
    return function


def _accelerator(device: object, name: str) -> Device:
    """The device that ``device`` names. Raises ValueError for the host, DeviceNotFound where there is none."""
    if isinstance(device, int) and not isinstance(device, bool):
        device = Place(as_place(get_device()).kind, device)
    found = as_place(device or get_device()).device()
    if found.is_host:
        raise ValueError(f"device.{name}(): there is no accelerator: tensors are made on the cpu")
    return found


# -- streams and events


class Stream:
    """A queue of work on an accelerator, which runs in order. ``stream_base``: the plug-in's own stream, instead of a
    new one; priorities are left to the plug-in. A device without streams has one queue, which all its streams are."""

    def __init__(self, device: object = None, priority: int = 2, stream_base: Any = None) -> None:
        self._device = _accelerator(device, "Stream")
        self.device = place_of(self._device)
        self.stream_base = stream_base
        if stream_base is None:
            self.stream_base = made = self._device.call("stream_create")
            if made is not None:
                finalize(self, self._device.call, "stream_destroy", made).atexit = False

    def wait_event(self, event: Event) -> None:
        """Let later work of this stream wait for an event that was recorded."""
        self._device.call("stream_wait_event", self.stream_base, event.recorded())

    def wait_stream(self, stream: Stream) -> None:
        """Let later work of this stream wait for all that was given to another one of its device."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Mark what was given to the stream so far: ``event``, or a new one."""
        event = Event._of(self._device) if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether the work is done: True, after waiting for it (devices say so in no other way)."""
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Wait for the work."""
        self._device.synchronize(self.stream_base)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self.stream_base) == (other.device, other.stream_base)

    def __hash__(self) -> int:
        return hash((self.device, self.stream_base))

    def __repr__(self) -> str:
        return f"Stream(device={self.device}, stream_base={self.stream_base})"


class Event:
    """A mark in a queue of the accelerator that is set. Events of all devices have times and may be waited for."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._bind(_accelerator(None, "Event"))

    @classmethod
    def _of(cls, device: Device) -> Event:
        made = cls.__new__(cls)
        made._bind(device)
        return made

    def _bind(self, device: Device) -> None:
        self._device, self.device = device, place_of(device)
        self.event_base: Any = None

    def record(self, stream: Stream | None = None) -> None:
        """Mark what was given to a stream (the current one by default) so far."""
        chosen = self._device.current_stream if stream is None else stream.stream_base
        self.event_base = self._device.call("event_record", chosen)

    def recorded(self) -> Any:
        """The plug-in's event. Raises ValueError before `record`."""
        if self.event_base is None:
            raise ValueError("device.Event: the event was not recorded")
        return self.event_base

    def query(self) -> bool:
        """Whether the work before it is done: True, after waiting for it (devices say so in no other way)."""
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Wait for the work before it."""
        if self.event_base is not None:
            self._device.call("event_synchronize", self.event_base)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another one. Raises ValueError unless both were recorded."""
        return float(self._device.call("event_elapsed", self.recorded(), end_event.recorded()))

    def __repr__(self) -> str:
        return f"Event(device={self.device}, event_base={self.event_base})"


_set: dict[Device, Stream] = {}


def current_stream(device: object = None) -> Stream:
    """The stream that work goes to: the device's own unless another one is set."""
    found = _accelerator(device, "current_stream")
    return _set.get(found) or Stream(place_of(found), stream_base=found.current_stream)


def set_stream(stream: Stream) -> Stream:
    """Let work of its device go to ``stream`` from now on; the one that it went to before."""
    if not isinstance(stream, Stream):
        raise ValueError(f"device.set_stream(): stream should be a Stream, got {type(stream).__name__}")
    before = current_stream(stream.device)
    _set[stream._device] = stream
    stream._device.current_stream = stream.stream_base
    return before


class stream_guard:
    """A block whose work goes to ``stream``; None leaves it where it is. Raises TypeError for anything else."""

    def __init__(self, stream: Stream | None = None) -> None:
        if stream is not None and not isinstance(stream, Stream):
            raise TypeError(f"stream_guard(): stream should be a Stream or None, got {type(stream).__name__}")
        self.stream = stream

    def __enter__(self) -> None:
        self._before = None if self.stream is None else set_stream(self.stream)

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            set_stream(self._before)


StreamContext = stream_guard


def is_current_stream_capturing() -> bool:
    """Whether work of the device that is set is recorded as a graph instead of being run."""
    return as_place(get_device()).device().operands is not None


def get_stream_from_external(data_ptr: int, device: object = None) -> Stream:
    """A stream of a device's plug-in, as one of ours."""
    return Stream(device, stream_base=data_ptr)


def ipc_collect() -> NoReturn:
    """Raises RuntimeError, as Paddle's build for the CPU does: there is no CUDA device whose memory is shared."""
    raise RuntimeError("device.ipc_collect(): there is no CUDA device")


# -- properties


class DeviceProperties(NamedTuple):
    """What is known of a device: ``major`` and ``minor`` are the version of its architecture (0 where it has none),
    ``total_memory`` is in bytes."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def get_device_properties(device: object = None) -> DeviceProperties:
    """Name, version, memory and multiprocessors."""
    info = _accelerator(device, "get_device_properties").info
    version = re.search(r"sm_(\d+)(\d)", info.arch) or re.search(r"(\d+)\.(\d+)", info.arch)
    major, minor = map(int, version.groups()) if version else (0, 0)
    return DeviceProperties(info.name, major, minor, info.memory_bytes, info.cores)


def get_device_name(device: object = None) -> str:
    """As the vendor prints it."""
    return _accelerator(device, "get_device_name").info.name


def get_device_capability(device: object = None) -> tuple[int, int]:
    """The version of the architecture."""
    _accelerator(device, "get_device_capability")
    return get_device_properties(device)[1:3]


# -- memory


def _figure(name: str, doc: str, read: Callable[[MemoryStats], int]) -> Any:
    def function(device: object = None) -> int:
        return read(_accelerator(device, name).memory_stats())

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


memory_allocated = _figure("memory_allocated", "Bytes of tensors and other live buffers.", lambda s: s.allocated)
memory_reserved = _figure("memory_reserved", "Bytes held, in use or kept for later.", lambda s: s.reserved)
max_memory_allocated = _figure("max_memory_allocated", "The most bytes ever allocated.", lambda s: s.peak)
max_memory_reserved = _figure("max_memory_reserved", "The most bytes ever reserved.", lambda s: s.peak_reserved)


def reset_max_memory_allocated(device: object = None) -> None:
    """Let the most bytes allocated count from now."""
    _accelerator(device, "reset_max_memory_allocated").allocator.reset_peaks(reserved=False)


def reset_max_memory_reserved(device: object = None) -> None:
    """Let the most bytes reserved count from now."""
    _accelerator(device, "reset_max_memory_reserved").allocator.reset_peaks(allocated=False)


def reset_peak_memory_stats(device: object = None) -> None:
    """Let both figures count from now."""
    _accelerator(device, "reset_peak_memory_stats").allocator.reset_peaks()
