"""What is recorded: eager operators by a layer at the bottom of the stack, kernels by instrumented programs, and what
users mark. Nothing of this is there while no profiler records."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from importlib import import_module
from threading import get_ident
from typing import Any, NamedTuple

from argosy.profiler.states import TracerEventType
from argosy_hwadapt import Device
from argosy_hwadapt.contract import TraceEvent
from argosy_hwadapt.registry import opened_devices
from argosy_phi_ops.context import AMBIENT, context
from argosy_phi_ops.eager import fallback
from argosy_phi_ops.eager.dispatch import Interpreter
from argosy_tensorcore.tensor import Tensor

__all__ = ["Event", "EventRecorder", "RecordEvent", "clock"]


class Event(NamedTuple):
    """Something that ran on ``thread`` from ``start`` to ``end`` (nanoseconds of `clock`). ``lane`` tells Python
    (``"python"``) from native code (``"kernels"``), a device's queue (``"opencl:0"``) and its copies
    (``"opencl:0-copies"``), and what has fallen back to the cpu (``"fallbacks"``)."""

    name: str
    kind: TracerEventType
    thread: int
    start: int
    end: int
    lane: str = "python"
    details: dict[str, Any] | None = None


def clock() -> int:
    """The clock of all events: nanoseconds that never go back."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) if hasattr(time, "CLOCK_MONOTONIC") else time.monotonic_ns()


class EventRecorder:
    """Events between `start` and `stop`; one at a time in a process."""

    active: EventRecorder | None = None

    def __init__(self, shapes: bool = False) -> None:
        self.events: list[Event] = []
        self._layer = _Operators(self.events, shapes)
        self._ambient = context()
        self._devices: list[Device] = []

    def start(self) -> None:
        """Begin. Raises RuntimeError while another recording runs."""
        if EventRecorder.active is not None:
            raise RuntimeError("a profiler is recording already: stop() it first")
        EventRecorder.active = self
        self._ambient = context()
        self._ambient.put_everywhere(self._layer)
        AMBIENT.word += 1
        tracing = _tracing_module()
        if tracing is not None:
            tracing.start(self._compiled_kernels)
        self._devices = [device for device in opened_devices() if not device.is_host]
        for device in self._devices:
            device.call("profiler_start")
        fallback.listeners.append(self._note_fallback)

    def stop(self) -> None:
        """End; later events are not recorded."""
        fallback.listeners.remove(self._note_fallback)
        for device in self._devices:
            device.call("profiler_stop")
            self.events += [_of_device(str(device), event) for event in device.call("profiler_drain")]
        tracing = _tracing_module()
        if tracing is not None:
            tracing.stop()
        AMBIENT.word -= 1
        self._ambient.take_everywhere(self._layer)
        EventRecorder.active = None

    def _note_fallback(self, operator: str, device: str, reason: str, nbytes: int) -> None:
        now, details = clock(), {"device": device, "reason": reason, "bytes": nbytes}
        self.events.append(Event(operator, TracerEventType.Fallback, get_ident(), now, now, "fallbacks", details))

    def _compiled_kernels(self, events: Sequence[Any]) -> None:
        """The kernels of one run of a compiled program, whose chunks are joined where they follow each other."""
        if not events:
            return
        first, last = min(e.start for e in events), max(e.end for e in events)
        self.events.append(Event(events[0].program, TracerEventType.Program, get_ident(), first, last))
        self.events += _join(sorted(events, key=lambda e: (e.thread, e.start)))


def _of_device(device: str, event: TraceEvent) -> Event:
    """An activity of a device, in the lane of its queue or of its copies."""
    is_launch = event.name.startswith("launch ")
    kind, lane = (TracerEventType.Kernel, device) if is_launch else (TracerEventType.Memcpy, f"{device}-copies")
    name, details = event.name.removeprefix("launch "), {"coarse": event.coarse}
    return Event(name, kind, get_ident(), event.start_ns, event.end_ns, lane, details)


def _join(events: Sequence[Any]) -> list[Event]:
    found: list[Event] = []
    chunks = 0
    previous: Any = None
    for e in events:
        if previous is not None and (e.thread, e.call, e.name) == (previous.thread, previous.call, previous.name):
            chunks += 1
            found[-1] = found[-1]._replace(end=e.end, details={"program": e.program, "chunks": chunks})
        else:
            chunks = 1
            details = {"program": e.program, "chunks": 1}
            found.append(Event(e.name, TracerEventType.Kernel, e.thread, e.start, e.end, "kernels", details))
        previous = e
    return found


def _tracing_module() -> Any:
    """The tracing module of the fusion compiler, where it is installed."""
    try:
        return import_module("argosy_cinn.tools.tracing")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("argosy_cinn", "llvmlite"):
            raise
        return None


class _Operators(Interpreter):
    """The layer that stamps eager operators."""

    def __init__(self, events: list[Event], shapes: bool) -> None:
        self._events, self._shapes = events, shapes

    def process(self, op: Any, operands: Sequence[Any], attributes: dict[str, Any], below: Callable[..., Any]) -> Any:
        """Run ``op`` and note when."""
        began = clock()
        result = below(op, operands, attributes)
        details = {"shapes": [list(x.shape) for x in operands if type(x) is Tensor]} if self._shapes else None
        self._events.append(Event(op.name, TracerEventType.Operator, get_ident(), began, clock(), details=details))
        return result


class RecordEvent(ContextDecorator):
    """A stretch of the user's program with a name: ``with RecordEvent("load"):``, or ``begin()`` and ``end()``."""

    def __init__(self, name: str, event_type: TracerEventType = TracerEventType.PythonUserDefined) -> None:
        self.name = name
        self.event_type = event_type
        self._began: int | None = None

    def begin(self) -> None:
        """The stretch begins."""
        if EventRecorder.active is not None:
            self._began = clock()

    def end(self) -> None:
        """The stretch ends; without a `begin` while a profiler records, nothing is noted."""
        began, self._began = self._began, None
        if began is not None and EventRecorder.active is not None:
            EventRecorder.active.events.append(Event(self.name, self.event_type, get_ident(), began, clock()))

    def __enter__(self) -> RecordEvent:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
