"""Streams and events of accelerators: there is no accelerator, and what would need one says so.

Raises what Paddle's build for the CPU raises where that is meant (``ValueError``); its ``NameError`` for names that
such a build forgets to define is a ``ValueError`` here too.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_stream",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_stream_from_external",
    "ipc_collect",
    "is_current_stream_capturing",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
    "set_stream",
    "stream_guard",
    "unavailable_function",
]  # fmt: skip


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"device.{name}(): there is no accelerator: operators run on the cpu only so far")


def unavailable_function(name: str, wanted: str = "accelerator") -> Any:
    """A function of a device that raises ValueError, for want of what it needs."""

    def function(device: object = None) -> NoReturn:
        raise ValueError(f"device.{name}(): there is no {wanted}: operators run on the cpu only so far")

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"Raises ValueError: there is no {wanted}."
    return function


class Stream:
    """A queue of work on an accelerator. Raises ValueError: there is none."""

    def __init__(self, device: object = None, priority: int = 2, stream_base: object = None) -> None:
        _refuse("Stream")


class Event:
    """A mark in the queue of an accelerator. Raises ValueError: there is none."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        _refuse("Event")


class stream_guard:
    """A block whose work goes to ``stream``; None leaves it where it is. Raises TypeError for anything else: there is
    no accelerator that a :class:`Stream` could be of.
    """

    def __init__(self, stream: Stream | None = None) -> None:
        if stream is not None:
            raise TypeError(f"stream_guard(): stream should be a Stream or None, got {type(stream).__name__}")
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        return None


StreamContext = stream_guard


def is_current_stream_capturing() -> bool:
    """Whether the current stream records a graph of kernels: False, there is no stream."""
    return False


def set_stream(stream: Stream) -> NoReturn:
    """Raises ValueError: there is no accelerator."""
    _refuse("set_stream")


def get_stream_from_external(data_ptr: int, device: object = None) -> NoReturn:
    """Raises ValueError: there is no accelerator."""
    _refuse("get_stream_from_external")


def ipc_collect() -> NoReturn:
    """Raises RuntimeError, as Paddle's build for the CPU does: there is no CUDA device whose memory is shared."""
    raise RuntimeError("device.ipc_collect(): there is no CUDA device: operators run on the cpu only so far")


current_stream = unavailable_function("current_stream")
get_device_capability = unavailable_function("get_device_capability")
get_device_name = unavailable_function("get_device_name")
get_device_properties = unavailable_function("get_device_properties")
max_memory_allocated = unavailable_function("max_memory_allocated")
max_memory_reserved = unavailable_function("max_memory_reserved")
memory_allocated = unavailable_function("memory_allocated")
memory_reserved = unavailable_function("memory_reserved")
reset_max_memory_allocated = unavailable_function("reset_max_memory_allocated")
reset_max_memory_reserved = unavailable_function("reset_max_memory_reserved")
reset_peak_memory_stats = unavailable_function("reset_peak_memory_stats")
