"""The profiler: which steps are recorded, and what becomes of the recordings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from threading import get_ident
from typing import Any

from argosy.argument_repr import ArgumentRepr
from argosy.profiler.recording import Event, EventRecorder, clock
from argosy.profiler.states import (
    ProfilerState,
    ProfilerTarget,
    SortedKeys,
    SummaryView,
    TracerEventType,
    make_scheduler,
)
from argosy.profiler.statistics import summary_text
from argosy.profiler.trace import ProfilerResult, export_chrome_tracing

__all__ = ["Profiler"]

_RECORDS = (ProfilerState.RECORD, ProfilerState.RECORD_AND_RETURN)


class Profiler(ArgumentRepr):
    """Records operators, compiled programs and marked stretches, for the steps that ``scheduler`` chooses.

    targets: kinds of devices; the CPU and devices that are open are recorded, whatever is asked for; a GPU or an XPU,
    which there is none of, is refused with a warning.
    scheduler: None for every step, a pair (first step, step after the last), or a function of the step's number.
    on_trace_ready: called with the profiler when a recording ends; by default it writes to ``./profiler_log``.
    record_shapes: note operands' shapes. timer_only: time steps only, for `step_info`.

    Use as a context manager or with `start` and `stop`; call `step` after each step.
    """

    def __init__(
        self,
        *,
        targets: Iterable[ProfilerTarget] | None = None,
        scheduler: Callable[[int], ProfilerState] | tuple[int, int] | None = None,
        on_trace_ready: Callable[[Profiler], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        timer_only: bool = False,
        emit_nvtx: bool = False,
        custom_device_types: Sequence[str] = (),
        with_flops: bool = False,
    ) -> None:
        for name, given in (("profile_memory", profile_memory), ("emit_nvtx", emit_nvtx), ("with_flops", with_flops)):
            if given:
                raise NotImplementedError(f"Profiler({name}=True) is not implemented")
        others = sorted({t.name for t in targets or ()} & {"GPU", "XPU"})
        if others:
            warnings.warn(f"the profiler records the CPU and devices of plug-ins, not {others}", stacklevel=2)
        self._scheduler = _as_scheduler(scheduler)
        self._on_trace_ready = on_trace_ready
        self._shapes = record_shapes
        self._timer_only = timer_only
        self._recording: EventRecorder | None = None
        self._steps: list[tuple[int, int | None]] = []  # nanoseconds and samples of each step
        self._step_began = 0
        self._told = 0
        self.step_num = 0
        self.current_state = ProfilerState.CLOSED
        self.profiler_result: ProfilerResult | None = None

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with step 0. Raises RuntimeError while another profiler records."""
        self._step_began = clock()
        if not self._timer_only:
            self._enter(self._scheduler(self.step_num))

    def stop(self) -> None:
        """End; what is being recorded is handed over."""
        if not self._timer_only:
            self._leave()
            self.current_state = ProfilerState.CLOSED

    def step(self, num_samples: int | None = None) -> None:
        """A step of the user's loop is done; ``num_samples`` is for `step_info`."""
        now = clock()
        self._steps.append((now - self._step_began, num_samples))
        if self._recording is not None:
            name, kind = f"ProfileStep#{self.step_num}", TracerEventType.ProfileStep
            self._recording.events.append(Event(name, kind, get_ident(), self._step_began, now))
        self.step_num += 1
        if not self._timer_only:
            following = self._scheduler(self.step_num)
            if self.current_state is ProfilerState.RECORD_AND_RETURN or following not in _RECORDS:
                self._leave()
            self._enter(following)
        self._step_began = clock()

    def _enter(self, state: ProfilerState) -> None:
        self.current_state = state
        if state in _RECORDS and self._recording is None:
            recording = EventRecorder(self._shapes)
            recording.start()
            self._recording = recording

    def _leave(self) -> None:
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.stop()
            self.profiler_result = ProfilerResult(recording.events)
            (self._on_trace_ready or export_chrome_tracing("./profiler_log/"))(self)

    def step_info(self, unit: str | None = None) -> str:
        """Average time of the steps since the last call, and steps (or samples, when `step` was told) a second."""
        steps, self._told = self._steps[self._told :], len(self._steps)
        if not steps:
            return "no step was done"
        seconds = sum(taken for taken, _ in steps) * 1e-9
        samples = sum(count or 0 for _, count in steps)
        done, label = (samples, unit or "samples") if samples else (len(steps), unit or "steps")
        label = label if label.endswith("/s") else f"{label}/s"
        return f"batch_cost: {seconds / len(steps):.5f} s ips: {done / seconds:.3f} {label}"

    def export(self, path: str = "", format: str = "json") -> None:
        """Write the last recording to ``path``. Raises RuntimeError when there is none."""
        self._result().save(path, format)

    def summary(
        self,
        sorted_by: SortedKeys = SortedKeys.CPUTotal,
        op_detail: bool = True,
        thread_sep: bool = False,
        time_unit: str = "ms",
        views: SummaryView | Sequence[SummaryView] | None = None,
    ) -> None:
        """Print tables of the last recording. Raises RuntimeError when there is none."""
        sys.stdout.write(summary_text(self._result().events, sorted_by, thread_sep, time_unit, views) + "\n")

    def _result(self) -> ProfilerResult:
        if self.profiler_result is None:
            raise RuntimeError("nothing has been recorded yet: stop() the profiler, or let its scheduler end a cycle")
        return self.profiler_result


def _as_scheduler(given: Any) -> Callable[[int], ProfilerState]:
    if given is None:
        return lambda step: ProfilerState.RECORD
    if callable(given):
        return given  # type: ignore[no-any-return]
    first, last = given
    if not 0 <= first < last:
        raise ValueError(f"scheduler=(first step, step after the last), with 0 <= first < last, not {given}")
    return make_scheduler(closed=max(first - 1, 0), ready=min(first, 1), record=last - first, repeat=1)
