"""Write the table of figures in README.md from the recorded results: ``python benchmarks/table.py``.

A row is a workload on one thread; a figure is the median over the rounds of the run. Nothing in it is typed by hand.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- figures: written by benchmarks/table.py -->", "<!-- end of figures -->"
TITLES = {
    "gpt_step": "GPT training step (6 layers, width 384, 256 tokens, batch 8, AdamW, float32)",
    "mlp_step": "MLP training step (784-256-10, batch 64, SGD)",
}


def medians(record: dict[str, Any]) -> dict[str, float]:
    """Milliseconds of a step by framework."""
    found: dict[str, list[float]] = {}
    for figure in record["figures"]:
        if "median_ms" in figure:
            found.setdefault(figure["framework"], []).append(figure["median_ms"])
    return {framework: statistics.median(values) for framework, values in found.items()}


def first_calls(record: dict[str, Any]) -> tuple[float, float]:
    """Seconds of our first call less a step, with an empty object cache and with a filled one."""
    ours = [f for f in record["figures"] if f["framework"] == "argosy" and "first_call_s" in f]
    latency = {f["round"]: f["first_call_s"] - f["median_ms"] / 1e3 for f in ours}
    return latency[0], statistics.median(v for k, v in latency.items() if k)


def milliseconds(time: float) -> str:
    """Three digits, and never a power of ten."""
    return f"{time:,.0f} ms" if time >= 100 else f"{time:.3g} ms"


def row(name: str, record: dict[str, Any]) -> str:
    """One line of the table."""
    times = medians(record)
    ours = times.pop("argosy")
    peers = ", ".join(
        f"{peer} {milliseconds(time)} ({time / ours:.2f}x)" for peer, time in sorted(times.items(), key=lambda p: p[1])
    )
    cold, warm = first_calls(record)
    return f"| {TITLES[name]} | {milliseconds(ours)} | {peers} | {cold:.2f} s / {warm:.2f} s |"


def main() -> None:
    """Replace the table between the markers."""
    lines = ["| one thread | argosy | peers in the same run | compile, cold / warm cache |", "|---|---|---|---|"]
    for name in TITLES:
        path = HERE / "results" / f"{name}-1.json"
        if path.exists():
            lines.append(row(name, json.loads(path.read_text(encoding="utf-8"))))
    before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    README.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
