"""Traces as files: the JSON that Chrome's tracing page and Perfetto read, and reading it back."""

from __future__ import annotations

import datetime
import json
import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

from argosy.profiler.recording import Event
from argosy.profiler.states import TracerEventType

__all__ = ["ProfilerResult", "export_chrome_tracing", "export_protobuf", "load_profiler_result", "write_trace"]

#: The category of slices in a kernel's own lane, which are those of the threads' lanes once more.
_LANE = "KernelLane"
#: No process has such a number: the lanes of kernels are shown as a process.
_ABOVE_PIDS = 1 << 22


class ProfilerResult:
    """The events of one recorded stretch."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = list(events)

    def save(self, path: str, format: str = "json") -> None:
        """Write a trace file. Raises NotImplementedError for formats other than JSON."""
        if format != "json":
            raise NotImplementedError(f"a trace is saved as 'json'; {format!r} is not implemented")
        write_trace(self.events, path)


def write_trace(events: Sequence[Event], path: str) -> None:
    """Write ``events`` as Chrome's trace format: one lane for each thread's Python code and one for its kernels; beside
    them, as a process of its own, a lane for each kernel (on each thread that ran it), where one sees when it runs."""
    pid = os.getpid()
    slices = [*_threads(events, pid), *_by_kernel([e for e in events if e.lane == "kernels"], pid + _ABOVE_PIDS)]
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"displayTimeUnit": "ms", "traceEvents": slices}, file)


def _threads(events: Sequence[Event], pid: int) -> list[dict[str, Any]]:
    lanes: dict[tuple[int, str], int] = {}
    for event in sorted(events, key=lambda e: (e.lane == "kernels", e.start)):
        lanes.setdefault((event.thread, event.lane), len(lanes))
    names = {tid: f"{lane} (thread {thread})" for (thread, lane), tid in lanes.items()}
    slices = [_slice(e, e.kind.name, pid, lanes[e.thread, e.lane]) for e in events]
    return [*_names(pid, "threads", names), *slices]


def _by_kernel(kernels: Sequence[Event], pid: int) -> list[dict[str, Any]]:
    """A lane for each kernel, in the order in which they ran first."""
    lanes: dict[tuple[str, int], int] = {}
    for event in sorted(kernels, key=lambda e: e.start):
        lanes.setdefault((event.name, event.thread), len(lanes))
    threads = {thread for _, thread in lanes}
    names = {tid: f"{name} (thread {thread})" if len(threads) > 1 else name for (name, thread), tid in lanes.items()}
    slices = [_slice(e, _LANE, pid, lanes[e.name, e.thread]) for e in kernels]
    return [*_names(pid, "kernels, each in a lane", names), *slices] if kernels else []


def _names(pid: int, process: str, lanes: dict[int, str]) -> list[dict[str, Any]]:
    """What a process and its lanes are called, and that lanes stand in their order."""
    found: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": process}}]
    for tid, name in lanes.items():
        found.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}})
        found.append({"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}})
    return found


def _slice(event: Event, category: str, pid: int, tid: int) -> dict[str, Any]:
    return {
        "ph": "X", "name": event.name, "cat": category, "pid": pid, "tid": tid, "ts": event.start / 1000,
        "dur": (event.end - event.start) / 1000, "args": {**(event.details or {}), "thread": event.thread},
    }  # fmt: skip


def load_profiler_result(filename: str) -> ProfilerResult:
    """The events of a trace that `export_chrome_tracing` or `Profiler.export` wrote.

    Raises ValueError for other files.
    """
    with open(filename, encoding="utf-8") as file:
        try:
            return ProfilerResult(_events(json.load(file)["traceEvents"]))
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise ValueError(f"{filename} is no trace written by argosy.profiler") from error


def _events(entries: list[dict[str, Any]]) -> list[Event]:
    slices = [e for e in entries if e["ph"] == "X" and e["cat"] != _LANE]
    names = [e for e in entries if e["name"] == "thread_name" and e["ph"] == "M"]
    lanes = {(e["pid"], e["tid"]): e["args"]["name"].partition(" ")[0] for e in names}
    return [_event(e, lanes[e["pid"], e["tid"]]) for e in slices]


def _event(entry: dict[str, Any], lane: str) -> Event:
    details = dict(entry["args"])
    thread = details.pop("thread")
    start, end = round(entry["ts"] * 1000), round((entry["ts"] + entry["dur"]) * 1000)
    return Event(entry["name"], TracerEventType[entry["cat"]], thread, start, end, lane, details or None)


def export_chrome_tracing(dir_name: str, worker_name: str | None = None) -> Callable[[Any], None]:
    """A handler for ``on_trace_ready`` that writes each trace to a file of its own in ``dir_name``."""
    os.makedirs(dir_name, exist_ok=True)

    def handle(profiler: Any) -> None:
        worker = worker_name or f"host_{socket.gethostname()}pid_{os.getpid()}"
        now = datetime.datetime.now().strftime("%Y_%m_%d_%H_%M_%S_%f")
        profiler.export(os.path.join(dir_name, f"{worker}_time_{now}.paddle_trace.json"), "json")

    return handle


def export_protobuf(dir_name: str, worker_name: str | None = None) -> Callable[[Any], None]:
    """Raises NotImplementedError: traces are written as JSON."""
    raise NotImplementedError("export_protobuf() is not implemented: use export_chrome_tracing()")
