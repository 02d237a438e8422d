"""Write the table of figures in README.md and ``results/ratios.png`` from the recorded results.

``python benchmarks/table.py``. A row is a workload on one thread; a figure is the median over the rounds of the run.
Nothing in it is typed by hand.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from workloads import WORKLOADS, Workload

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- figures: written by benchmarks/table.py -->", "<!-- end of figures -->"


def medians(record: dict[str, Any], what: str = "median_ms") -> dict[str, float]:
    """The median of a figure over the rounds, by framework."""
    found: dict[str, list[float]] = {}
    for figure in record["figures"]:
        if what in figure:
            found.setdefault(figure["framework"], []).append(figure[what])
    return {framework: statistics.median(values) for framework, values in found.items()}


def first_calls(record: dict[str, Any]) -> tuple[float, float]:
    """Seconds of our first call less a step, with an empty object cache and with a filled one."""
    ours = [f for f in record["figures"] if f["framework"] == "argosy" and "first_call_s" in f]
    latency = {f["round"]: f["first_call_s"] - f["median_ms"] / 1e3 for f in ours}
    return latency[0], statistics.median(v for k, v in latency.items() if k)


def milliseconds(time: float) -> str:
    """Three digits, and never a power of ten."""
    return f"{time:,.0f} ms" if time >= 100 else f"{time:.3g} ms"


def row(workload: Workload, record: dict[str, Any]) -> str:
    """One line of the table."""
    times = medians(record)
    ours = times.pop("argosy")
    ordered = sorted(times.items(), key=lambda p: p[1])
    peers = ", ".join(f"{peer} {milliseconds(time)} ({time / ours:.2f}x)" for peer, time in ordered)
    memory = medians(record, "peak_rss_mib")
    least = min(v for k, v in memory.items() if k != "argosy")
    cold, warm = first_calls(record)
    return (
        f"| {workload.title} | {milliseconds(ours)} | {peers} | {memory['argosy']:.0f} / {least:.0f} MiB "
        f"| {cold:.2f} / {warm:.2f} s |"
    )


def plot(records: list[tuple[Workload, dict[str, Any]]], path: Path) -> None:
    """How many times longer each peer takes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 0.42 * len(records) + 1.2), layout="constrained")
    axes = figure.subplots()
    for offset, (peer, colour) in enumerate((("torch", "#c8553d"), ("jax", "#3d6fc8"))):
        pairs = [(i, medians(r)) for i, (_, r) in enumerate(records)]
        shown = [(i, m[peer] / m["argosy"]) for i, m in pairs if peer in m]
        axes.barh([i + 0.4 * offset for i, _ in shown], [v for _, v in shown], height=0.38, color=colour, label=peer)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks([i + 0.2 for i in range(len(records))], [w.title for w, _ in records], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("time of the peer / time of argosy, one thread, same run")
    axes.legend(loc="lower right", fontsize=8)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Replace the table between the markers and draw the plot."""
    lines = [
        "| one thread | argosy | peers in the same run | peak memory, ours / least of peers | compile, cold / warm |",
        "|---|---|---|---|---|",
    ]
    records = []
    for workload in WORKLOADS:
        path = HERE / "results" / workload.record(1)
        if path.exists():
            records.append((workload, json.loads(path.read_text(encoding="utf-8"))))
            lines.append(row(*records[-1]))
    before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    README.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after, encoding="utf-8")
    plot(records, HERE / "results" / "ratios.png")


if __name__ == "__main__":
    main()
