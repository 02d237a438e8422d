"""Tables of what was recorded: time by operator, by kernel and by what users marked."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.profiler.recording import Event
from argosy.profiler.states import SortedKeys, SummaryView, TracerEventType

__all__ = ["summary_text"]

_UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
_VIEWS = {
    SummaryView.OperatorView: ("Operators", (TracerEventType.Operator,)),
    SummaryView.ModelView: ("Compiled programs", (TracerEventType.Program,)),
    SummaryView.KernelView: ("Kernels of compiled programs", (TracerEventType.Kernel,)),
    SummaryView.UDFView: ("Marked by the user", tuple(
        kind for kind in TracerEventType
        if kind not in (TracerEventType.Operator, TracerEventType.Program, TracerEventType.Kernel,
                        TracerEventType.ProfileStep))),
}  # fmt: skip


def summary_text(
    events: Sequence[Event],
    sorted_by: SortedKeys = SortedKeys.CPUTotal,
    thread_sep: bool = False,
    time_unit: str = "ms",
    views: SummaryView | Sequence[SummaryView] | None = None,
) -> str:
    """The tables as text. Raises ValueError for an unknown unit."""
    if time_unit not in _UNITS:
        raise ValueError(f"time_unit is one of {', '.join(_UNITS)}, not {time_unit!r}")
    wanted = list(SummaryView) if views is None else [views] if isinstance(views, SummaryView) else list(views)
    parts = [_overview(events, time_unit)] if SummaryView.OverView in wanted else []
    for view, (title, kinds) in _VIEWS.items():
        chosen = [e for e in events if e.kind in kinds] if view in wanted else []
        for thread in sorted({e.thread for e in chosen}) if thread_sep else [None]:
            of_thread = [e for e in chosen if thread is None or e.thread == thread]
            label = title if thread is None else f"{title}, thread {thread}"
            if of_thread:
                parts.append(_table(label, of_thread, sorted_by, time_unit))
    return "\n\n".join(parts)


def _overview(events: Sequence[Event], unit: str) -> str:
    steps = [e for e in events if e.kind is TracerEventType.ProfileStep]
    span = max((e.end for e in events), default=0) - min((e.start for e in events), default=0)
    kernels = sum(e.end - e.start for e in events if e.kind is TracerEventType.Kernel)
    scale = _UNITS[unit]
    return (
        f"Overview: {len(steps)} steps, {span / scale:.3f} {unit} recorded, of which kernels of compiled programs "
        f"{kernels / scale:.3f} {unit} summed over threads"
    )


def _table(title: str, events: Sequence[Event], sorted_by: SortedKeys, unit: str) -> str:
    times: dict[str, list[int]] = {}
    for event in events:
        times.setdefault(event.name, []).append(event.end - event.start)
    measures = {0: sum, 1: lambda t: sum(t) / len(t), 2: max, 3: min}
    order = measures[sorted_by.value % 4]
    whole = sum(map(sum, times.values())) or 1
    rows = [["name", "calls", f"total {unit}", f"average {unit}", f"max {unit}", f"min {unit}", "ratio %"]]
    for name, taken in sorted(times.items(), key=lambda item: -order(item[1])):  # type: ignore[operator]
        figures = [sum(taken), sum(taken) / len(taken), max(taken), min(taken)]
        shown = [f"{figure / _UNITS[unit]:.4f}" for figure in figures]
        rows.append([name, str(len(taken)), *shown, f"{100 * sum(taken) / whole:.1f}"])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    return "\n".join([title, "-" * len(lines[0]), *lines])
