"""How long each kernel of a program takes, beside what the machine could do at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from time import perf_counter

from argosy_cinn.executable import Executable
from argosy_cinn.store.program_cache import CallFacts
from argosy_cinn.tools.explanation import avoidable_lines, places, recomputed_lines, size
from argosy_cinn.tools.limits import Limits, limits
from argosy_cinn.tools.report import Report, Table
from argosy_cinn.tools.tracing import Event
from argosy_pir.core import Operation
from argosy_tensorcore.storage import StridedArray

_SHOWN_BUFFERS = 8
#: Steps that are shown at a prompt.
_FIRST_STEPS = 8
_FIGURES, _JUDGED = ("reads", "writes", "ops"), "of limit"
_TIMES: tuple[tuple[str, ...], ...] = (
    ("time", "share", _JUDGED),
    (),
)  # where something was measured; where nothing was


@dataclass(frozen=True, slots=True)
class Measurement:
    """Best times in seconds: of a whole ``call``, of each of its ``kernels`` (by number) and ``hosts`` (in order)."""

    call: float
    kernels: list[float]
    hosts: list[float]


def measure(
    executable: Executable, inputs: Sequence[StridedArray], states: Sequence[StridedArray] = (), repeats: int = 10
) -> Measurement:
    """Run on the inputs and on copies of the states, plain and instrumented, ``repeats`` times each."""
    bound = executable.bind([StridedArray.from_array(s.array().copy()) for s in states])
    bound(inputs)
    call = min(_time(bound, inputs) for _ in range(repeats))
    events: list[Event] = []
    kernels = [[0.0] * len(executable.manifest.calls) for _ in range(repeats)]
    hosts: list[list[float]] = []
    executable.watch(events.extend)
    try:
        for found in kernels:
            events.clear()
            bound(inputs)
            _spans(events, found)
            hosts.append([(e.end - e.start) * 1e-9 for e in events if e.call is None])
    finally:
        executable.unwatch()
    return Measurement(call, [min(t) for t in zip(*kernels, strict=True)], [min(t) for t in zip(*hosts, strict=True)])


def _time(bound: object, inputs: Sequence[StridedArray]) -> float:
    started = perf_counter()
    bound(inputs)  # type: ignore[operator]
    return perf_counter() - started


def _spans(events: Sequence[Event], found: list[float]) -> None:
    """From a kernel's first chunk to the end of its last one."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for event in events:
        if event.call is not None:
            first[event.call] = min(first.get(event.call, event.start), event.start)
            last[event.call] = max(last.get(event.call, event.end), event.end)
    for number, start in first.items():
        found[number] = (last[number] - start) * 1e-9


# -- as a report


def add_program(report: Report, executable: Executable, measured: Measurement | None) -> None:
    """Sections about one compiled program: its kernels, its memory, its simplified form."""
    bounds = _bounds(executable, measured) if measured is not None else None
    manifest, facts = executable.manifest, executable.report()
    cached = " from the cache" if facts["cache_hit"] else ""
    head = [
        f"{manifest.kernel_calls} kernel calls ({manifest.kernels} kernels), {len(manifest.hosts)} host calls, "
        f"compiled in {facts['compile_seconds']:.2f} s{cached}"
    ]
    if measured is not None and bounds is not None:
        head += _summary(executable, measured, bounds)
    simplified = executable.views.simplified()
    operations = list(simplified.block)
    report.add("simplified program", str(simplified))
    report.add("planned program, step by step", _step_table(executable, operations, measured, bounds))
    head += avoidable_lines(executable, operations)
    report.add("kernels", *head, _kernel_table(executable, operations, measured, bounds))
    report.add("memory", *_memory(executable, operations))


def _bounds(executable: Executable, measured: Measurement) -> Limits:
    """The kept limits, or better ones: where a kernel was faster, they were measured while others used the machine, or
    its data stayed in cache."""
    kept = limits()
    calls = zip(executable.manifest.calls, measured.kernels, strict=True)
    beaten = any(kept.seconds(c.read + c.written, c.operations) > taken > 0 for c, taken in calls)
    return limits(beaten=kept) if beaten else kept


def _summary(executable: Executable, measured: Measurement, bounds: Limits) -> list[str]:
    kernels, hosts = sum(measured.kernels), sum(measured.hosts)
    least = sum(bounds.seconds(c.read + c.written, c.operations) for c in executable.manifest.calls)
    return [
        f"{time(measured.call)} a call: {time(kernels)} in kernels, {time(hosts)} in host calls; "
        f"the physical limit of the kernels is {time(least)}, {share(least, measured.call)} of the call",
        f"limits of this machine on {bounds.threads} threads: {bounds.bandwidth / 1e9:.1f} GB/s (copy), "
        f"{bounds.rate / 1e9:.0f} Gop/s (float32 multiply-adds), {_date_note(bounds)}; more than 100% is data that "
        "stayed in cache",
    ]


def _date_note(bounds: Limits) -> str:
    """How often the limits were measured, and when."""
    return f"measured {bounds.measured}" + (f" and {bounds.times - 1} times before" if bounds.times > 1 else "")


def _step_table(
    executable: Executable, operations: Sequence[Operation], measured: Measurement | None, bounds: Limits | None
) -> Table:
    """Every kernel call and host call, in the order in which they run."""
    rows: list[Sequence[str]] = []
    manifest = executable.manifest
    for segment in range(max(manifest.segments, len(manifest.hosts))):
        for i, call in enumerate(manifest.calls):
            if call.segment == segment:
                row = [str(i), call.kernel, *_figures([call], [i], measured, bounds)]
                rows.append([*row, places(call.made, operations), call.text])
        if segment < len(manifest.hosts):
            rows.append(_host_row(operations, manifest.hosts[segment], segment, measured))
    return Table(["#", "kernel", *_FIGURES, *_TIMES[measured is None], "lines", "what"], rows, _FIRST_STEPS, _JUDGED)


def _host_row(operations: Sequence[Operation], position: int, i: int, measured: Measurement | None) -> list[str]:
    taken = [] if measured is None else [time(measured.hosts[i]) if i < len(measured.hosts) else "", "", ""]
    return ["", f"host {operations[position].name}", "", "", "", *taken, places([position], operations), ""]


def _kernel_table(
    executable: Executable, operations: Sequence[Operation], measured: Measurement | None, bounds: Limits | None
) -> Table:
    """Every kernel with the figures of all its calls, those that take longest first."""
    calls = executable.manifest.calls
    numbers: dict[str, list[int]] = {}
    for i, call in enumerate(calls):
        numbers.setdefault(call.kernel, []).append(i)
    kernels = list(numbers.items())
    if measured is not None:
        kernels.sort(key=lambda kernel: -sum(measured.kernels[i] for i in kernel[1]))
    rows: list[Sequence[str]] = []
    for name, found in kernels:
        some = [calls[i] for i in found]
        lines = places({position for call in some for position in call.made}, operations)
        rows.append([name, str(len(found)), *_figures(some, found, measured, bounds), lines, some[0].text])
    header = ["kernel", "calls", *_FIGURES, *_TIMES[measured is None], "lines", "what"]
    return Table(header, rows, judged=_JUDGED)


def _figures(
    calls: Sequence[CallFacts], numbers: Sequence[int], measured: Measurement | None, bounds: Limits | None
) -> list[str]:
    """What some calls move and compute together, and how long they take."""
    read, written, operations = (sum(x) for x in zip(*((c.read, c.written, c.operations) for c in calls), strict=True))
    figures = [size(read), size(written), count(operations)]
    if measured is None or bounds is None:
        return figures
    taken = sum(measured.kernels[i] for i in numbers)
    least = sum(bounds.seconds(c.read + c.written, c.operations) for c in calls)
    return [*figures, time(taken), share(taken, sum(measured.kernels)), share(least, taken)]


def _memory(executable: Executable, operations: Sequence[Operation]) -> list[str | Table]:
    manifest = executable.manifest
    outputs = sum(prod(shape) * dtype.itemsize for shape, dtype, _ in executable.outputs)
    head = f"peak {size(manifest.arena_bytes)} of intermediate values, {size(outputs)} of outputs"
    heads = [head, *recomputed_lines(executable)]
    rows = []
    for b in manifest.buffers[:_SHOWN_BUFFERS]:
        op = operations[b.position]
        line = places([b.position], operations)
        rows.append([size(b.nbytes), f"{b.first}-{b.last}", op.name, str(op.results[0].type), line])
    return [*heads, Table(["bytes", "steps", "made by", "type", "line"], [*rows])] if rows else [*heads]


def time(seconds: float) -> str:
    """A duration with a unit: ``1.25 ms``."""
    for scale, unit in ((1e-6, "ns"), (1e-3, "us"), (1.0, "ms")):
        if seconds < scale:
            return f"{seconds / scale * 1000:.3g} {unit}"
    return f"{seconds:.3g} s"


def count(number: int) -> str:
    """A number with a metric prefix."""
    scaled = float(number)
    for unit in ("", "k", "M", "G"):
        if scaled < 1000:
            return f"{scaled:.3g}{unit}"
        scaled /= 1000
    return f"{scaled:.3g}T"


def share(part: float, whole: float) -> str:
    """A percentage."""
    return f"{100 * part / whole:.0f}%" if whole > 0 else ""
