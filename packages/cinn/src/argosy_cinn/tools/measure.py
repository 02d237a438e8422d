"""How long each kernel of a program takes, beside what the machine could do at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from argosy_cinn.executable import Executable
from argosy_cinn.tools.explanation import places, recomputed_lines, size
from argosy_cinn.tools.limits import Limits, limits
from argosy_cinn.tools.report import Report, Table
from argosy_cinn.tools.tracing import Event
from argosy_tensorcore.storage import Strided

_SHOWN_BUFFERS = 8


@dataclass(frozen=True, slots=True)
class Measured:
    """Best times in seconds: of a whole ``call``, of each of its ``kernels`` (by number) and ``hosts`` (in order)."""

    call: float
    kernels: list[float]
    hosts: list[float]


def measure(
    executable: Executable, inputs: Sequence[Strided], states: Sequence[Strided] = (), repeats: int = 10
) -> Measured:
    """Run on the inputs and on copies of the states, plain and instrumented, ``repeats`` times each."""
    bound = executable.bind([Strided.from_array(s.array().copy()) for s in states])
    bound(inputs)
    call = min(_timed(bound, inputs) for _ in range(repeats))
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
    return Measured(call, [min(t) for t in zip(*kernels, strict=True)], [min(t) for t in zip(*hosts, strict=True)])


def _timed(bound: object, inputs: Sequence[Strided]) -> float:
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


def add_program(report: Report, executable: Executable, measured: Measured | None) -> None:
    """Sections about one compiled program: its kernels, its memory, its simplified form."""
    bounds = limits() if measured is not None else None
    manifest, facts = executable.manifest, executable.report()
    cached = " from the cache" if facts["cache_hit"] else ""
    head = [
        f"{manifest.kernel_calls} kernel calls ({manifest.kernels} kernels), {len(manifest.hosts)} host calls, "
        f"compiled in {facts['compile_seconds']:.2f} s{cached}"
    ]
    if measured is not None and bounds is not None:
        head += _summary(executable, measured, bounds)
    report.add("kernels", *head, _kernel_table(executable, measured, bounds))
    report.add("memory", *_memory(executable))
    report.add("simplified program", str(executable.views.simplified()))


def _summary(executable: Executable, measured: Measured, bounds: Limits) -> list[str]:
    kernels, hosts = sum(measured.kernels), sum(measured.hosts)
    least = sum(bounds.seconds(c.read + c.written, c.operations) for c in executable.manifest.calls)
    return [
        f"{time(measured.call)} a call: {time(kernels)} in kernels, {time(hosts)} in host calls; "
        f"the physical limit of the kernels is {time(least)}, {share(least, measured.call)} of the call",
        f"limits of this machine on {bounds.threads} threads: {bounds.bandwidth / 1e9:.1f} GB/s (copy), "
        f"{bounds.rate / 1e9:.0f} Gop/s (float32 multiply-adds); more than 100% is data that stayed in cache",
    ]


def _kernel_table(executable: Executable, measured: Measured | None, bounds: Limits | None) -> Table:
    operations = list(executable.views.simplified().block)
    manifest = executable.manifest
    rows: list[Sequence[str]] = []
    for i, call in enumerate(manifest.calls):
        row = [str(i), call.kernel, size(call.read), size(call.written), count(call.operations)]
        if measured is not None and bounds is not None:
            taken = measured.kernels[i]
            least = bounds.seconds(call.read + call.written, call.operations)
            row += [time(taken), share(taken, sum(measured.kernels)), share(least, taken)]
        rows.append([*row, places(call.made, operations), call.text])
    for i, position in enumerate(manifest.hosts):
        op = operations[position]
        row = ["", f"host {op.name}", "", "", ""]
        if measured is not None:
            row += [time(measured.hosts[i]) if i < len(measured.hosts) else "", "", ""]
        rows.append([*row, places([position], operations), ""])
    timed = ["time", "share", "of limit"] if measured is not None else []
    return Table(["#", "kernel", "reads", "writes", "ops", *timed, "lines", "what"], rows)


def _memory(executable: Executable) -> list[str | Table]:
    operations = list(executable.views.simplified().block)
    manifest = executable.manifest
    outputs = sum(_nbytes(v) for v in executable.compiled.outputs)
    head = f"peak {size(manifest.arena_bytes)} of intermediate values, {size(outputs)} of outputs"
    heads = [head, *recomputed_lines(executable)]
    rows = []
    for b in manifest.buffers[:_SHOWN_BUFFERS]:
        op = operations[b.position]
        line = places([b.position], operations)
        rows.append([size(b.nbytes), f"{b.first}-{b.last}", op.name, str(op.results[0].type), line])
    return [*heads, Table(["bytes", "steps", "made by", "type", "line"], [*rows])] if rows else [*heads]


def _nbytes(value: object) -> int:
    from argosy_cinn.plan.steps import nbytes

    return nbytes(value)


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
