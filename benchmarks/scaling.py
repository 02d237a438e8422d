"""Cost against size, of this framework alone: what should be linear, and what is.

``python benchmarks/scaling.py [--full] [--threads 1] [--core 0]`` measures a fused row normalisation over rows and
over widths, causal attention over lengths, and the first call of a GPT training step over depths (with no cache on
disk), and writes ``benchmarks/results/scaling.json`` and, where matplotlib is installed, ``scaling.png``. Without
``--full`` the largest sizes are left out. Times are CPU time where one thread is used.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROWS = {False: (1, 10, 100, 1000, 10**4, 10**5), True: (10**6,)}
WIDTHS = {False: (64, 256, 1024, 4096, 16384), True: ()}
LENGTHS = {False: (128, 256, 512, 1024, 2048), True: (4096, 8192, 16384)}
DEPTHS = {False: (1, 2, 4, 8, 16), True: (32, 64)}
UNITS = {"rows": "ns a row", "width": "ns an element", "attention": "ns a pair", "depth": "ms a layer"}


def sizes(table: dict[bool, tuple[int, ...]], full: bool) -> tuple[int, ...]:
    """The sizes of a quick or a full run."""
    return table[False] + (table[True] if full else ())


def seconds(call: Callable[[], Any], one_thread: bool) -> float:
    """The median of calls that together take a quarter of a second, or of five."""
    clock = time.process_time if one_thread else time.perf_counter
    call()
    found: list[float] = []
    while len(found) < 5 or (sum(found) < 0.25 and len(found) < 2000):
        begin = clock()
        call()
        found.append(clock() - begin)
    return sorted(found)[len(found) // 2]


def normalisation(rows: int, width: int, one_thread: bool) -> float:
    """Seconds of an RMS normalisation with a gain."""
    import argosy as paddle

    x, gain = paddle.ones([rows, width]), paddle.ones([width])
    norm = paddle.jit.to_static(lambda x, g: x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * g)
    return seconds(lambda: norm(x, gain), one_thread)


def attention(length: int, one_thread: bool) -> float:
    """Seconds of causal attention of two heads of 64."""
    import argosy as paddle

    q = paddle.randn([1, length, 2, 64])
    attend = paddle.nn.functional.scaled_dot_product_attention
    whole = paddle.jit.to_static(lambda q: attend(q, q, q, is_causal=True))
    return seconds(lambda: whole(q), one_thread)


def first_call(depth: int) -> float:
    """Seconds of the first training step of a small GPT of so many layers, less a later one, in its own process."""
    environment = {**os.environ, "ARGOSY_CACHE_DIR": ""}
    command = [sys.executable, __file__, "--first-call", str(depth)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return float(done.stdout.strip().splitlines()[-1])


def print_first_call(depth: int) -> None:
    """The process of `first_call`."""
    import gpt_step

    gpt_step.LAYERS, gpt_step.WIDTH, gpt_step.HEADS = depth, 64, 2
    gpt_step.TOKENS, gpt_step.VOCABULARY, gpt_step.IDS = 32, 256, gpt_step.IDS[:2, :33] % 256
    gpt_step.BATCH = 2
    step, spent = gpt_step.argosy_step(True), []
    for _ in range(2):
        begin = time.process_time()
        step()
        spent.append(time.process_time() - begin)
    print(spent[0] - spent[1])


def measured(full: bool, one_thread: bool) -> dict[str, list[tuple[int, float, float]]]:
    """For each series (size, seconds, what a unit of work costs)."""
    series: dict[str, list[tuple[int, float, float]]] = {name: [] for name in UNITS}
    for n in sizes(ROWS, full):
        spent = normalisation(n, 256, one_thread)
        series["rows"].append((n, spent, spent / n * 1e9))
    for n in sizes(WIDTHS, full):
        spent = normalisation(256, n, one_thread)
        series["width"].append((n, spent, spent / (256 * n) * 1e9))
    for n in sizes(LENGTHS, full):
        spent = attention(n, one_thread)
        series["attention"].append((n, spent, spent / (n * n) * 1e9))
    for n in sizes(DEPTHS, full):
        spent = first_call(n)
        series["depth"].append((n, spent, spent / n * 1e3))
    return series


def draw(series: dict[str, list[tuple[int, float, float]]], path: Path) -> None:
    """One picture for each series: the cost of a unit of work against size."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("matplotlib is not installed: no picture", file=sys.stderr)
        return
    figure, axes = pyplot.subplots(1, len(series), figsize=(4 * len(series), 3.2), constrained_layout=True)
    for axis, (name, points) in zip(axes, series.items(), strict=True):
        axis.plot([p[0] for p in points], [p[2] for p in points], marker="o")
        axis.set(xscale="log", yscale="log", title=name, xlabel="size", ylabel=UNITS[name])
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--first-call", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first_call:
        print_first_call(options.first_call)
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(range(options.core, options.core + options.threads)))
    os.environ["ARGOSY_NUM_THREADS"] = str(options.threads)
    series = measured(options.full, options.threads == 1)
    for name, points in series.items():
        for size, spent, cost in points:
            print(f"{name:>10} {size:>8} {spent * 1e3:>12.3f} ms {cost:>12.3f} {UNITS[name]}")
    results = HERE / "results"
    record = {"threads": options.threads, "units": UNITS, "series": series}
    (results / "scaling.json").write_text(json.dumps(record, indent=1) + "\n")
    draw(series, results / "scaling.png")


if __name__ == "__main__":
    main()
