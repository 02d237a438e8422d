"""What the first call of a GPT training step costs against the model's depth, by stage: where it is not linear.

``python benchmarks/compile_scaling.py [--depths 1 4 16 64] [--core 0]`` takes CPU time, one process for each depth and
cache (none, and one that holds the program), and writes ``benchmarks/results/compile_scaling.json`` and, where
matplotlib is installed, ``compile_scaling.png``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
STAGES = ("capture", "passes", "simplify", "plan", "emit", "llvm", "total")


def first_call(depth: int, cache: str) -> dict[str, float]:
    """CPU seconds of each stage of the first call, in a process of its own."""
    environment = {**os.environ, "ARGOSY_CACHE_DIR": cache, "ARGOSY_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--measure", str(depth)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def print_stages(depth: int) -> None:
    """The process of `first_call`."""
    import gpt_step

    gpt_step.LAYERS, gpt_step.WIDTH, gpt_step.HEADS = depth, 64, 2
    gpt_step.TOKENS, gpt_step.VOCABULARY, gpt_step.IDS = 32, 256, gpt_step.IDS[:2, :33] % 256
    gpt_step.BATCH = 2
    step = gpt_step.argosy_step(True)
    spent = dict.fromkeys(STAGES, 0.0)
    watch_stages(spent)
    began = time.process_time()
    step()
    spent["total"] = time.process_time() - began
    print(json.dumps(spent))


def watch_stages(spent: dict[str, float]) -> None:
    """Let the stages note what they take."""
    import argosy.jit.captures as captures
    import argosy.jit.lowering as lowering
    import argosy_cinn.assembly.building as building
    import argosy_cinn.plan.planning as planning

    places: tuple[tuple[Any, str, str], ...] = (
        (captures, "trace", "capture"), (lowering, "simplify", "passes"),
        (planning, "lower_program", "simplify"), (building, "plan_program", "plan"),
        (building, "assemble", "emit"), (building, "compile_objects", "llvm"),
    )  # fmt: skip
    for module, name, stage in places:
        setattr(module, name, noting(getattr(module, name), stage, spent))


def noting(function: Callable[..., Any], stage: str, spent: dict[str, float]) -> Callable[..., Any]:
    """The function, which notes the CPU time of its calls."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        began = time.process_time()
        try:
            return function(*arguments, **keywords)
        finally:
            spent[stage] += time.process_time() - began

    return call


def measured(depths: list[int]) -> dict[str, list[dict[str, float]]]:
    """The stages of each depth, without a cache and with one that holds the program."""
    cold, warm = [], []
    for depth in depths:
        with tempfile.TemporaryDirectory() as folder:
            cold.append(first_call(depth, folder))
            warm.append(first_call(depth, folder))
        tell("cold", depth, cold[-1])
        tell("warm", depth, warm[-1])
    return {"cold": cold, "warm": warm}


def tell(kind: str, depth: int, stages: dict[str, float]) -> None:
    """One line: milliseconds of each stage."""
    print(f"{kind} {depth:>3}  " + "  ".join(f"{name} {seconds * 1e3:8.0f}" for name, seconds in stages.items()))


def draw(depths: list[int], series: dict[str, list[dict[str, float]]], path: Path) -> None:
    """Milliseconds for each layer against depth: what is linear is level."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("matplotlib is not installed: no picture", file=sys.stderr)
        return
    figure, axes = pyplot.subplots(1, len(series), figsize=(9, 3.4), constrained_layout=True)
    for axis, (kind, points) in zip(axes, series.items(), strict=True):
        for stage in STAGES:
            costs = [p[stage] / depth * 1e3 for p, depth in zip(points, depths, strict=True)]
            if any(costs):
                axis.plot(depths, costs, marker="o", label=stage, linewidth=2 if stage == "total" else 1)
        axis.set(xscale="log", yscale="log", title=f"first call, {kind}", xlabel="layers", ylabel="ms a layer")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--measure", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print_stages(options.measure)
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {options.core})
    series = measured(options.depths)
    results = HERE / "results"
    record = {"depths": options.depths, "stages": STAGES, "unit": "s of CPU time", "series": series}
    (results / "compile_scaling.json").write_text(json.dumps(record, indent=1) + "\n")
    draw(options.depths, series, results / "compile_scaling.png")


if __name__ == "__main__":
    main()
