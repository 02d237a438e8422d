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
    """Write ``events`` as Chrome's trace format: one lane for each thread's Python code and one for its kernels."""
    lanes: dict[tuple[int, str], int] = {}
    for event in sorted(events, key=lambda e: (e.lane == "kernels", e.start)):
        lanes.setdefault((event.thread, event.lane), len(lanes))
    pid = os.getpid()
    names = [
        {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": f"{lane} (thread {thread})"}}
        for (thread, lane), tid in lanes.items()
    ]
    slices = [
        {
            "ph": "X", "name": e.name, "cat": e.kind.name, "pid": pid, "tid": lanes[e.thread, e.lane],
            "ts": e.start / 1000, "dur": (e.end - e.start) / 1000, "args": {**(e.details or {}), "thread": e.thread},
        }
        for e in events
    ]  # fmt: skip
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"displayTimeUnit": "ms", "traceEvents": [*names, *slices]}, file)


def load_profiler_result(filename: str) -> ProfilerResult:
    """The events of a trace that `export_chrome_tracing` or `Profiler.export` wrote.

    Raises ValueError for other files.
    """
    with open(filename, encoding="utf-8") as file:
        try:
            entries = json.load(file)["traceEvents"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{filename} is no trace written by argosy.profiler") from error
    lanes = {e["tid"]: e["args"]["name"].partition(" ")[0] for e in entries if e["ph"] == "M"}
    return ProfilerResult([_event(e, lanes) for e in entries if e["ph"] == "X"])


def _event(entry: dict[str, Any], lanes: dict[int, str]) -> Event:
    details = dict(entry["args"])
    thread = details.pop("thread")
    start, end = round(entry["ts"] * 1000), round((entry["ts"] + entry["dur"]) * 1000)
    return Event(entry["name"], TracerEventType[entry["cat"]], thread, start, end, lanes[entry["tid"]], details or None)


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
