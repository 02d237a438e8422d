"""Timing shared by the benchmarks: one process for each framework, pinned to the same cores, medians, one JSON line
out.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

_REPEATS = 20
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARGOSY_NUM_THREADS")
# A machine's settings of which kernels a library of matrix products uses: each framework shall choose its own.
_FORCED = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_ENABLE_INSTRUCTIONS", "ATEN_CPU_CAPABILITY"}


def arguments(description: str, frameworks: tuple[str, ...], cases: tuple[str, ...] = ()) -> argparse.Namespace:
    """Parse the common options and pin the process before any framework is imported.

    ``cases`` are the sizes or variants that a workload comes in; the first one is the default.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--framework", choices=frameworks, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--core", type=int, default=0, help="first core to pin to")
    parser.add_argument("--seconds", type=float, default=8.0, help="time spent measuring")
    parser.add_argument("--losses", type=int, default=0, help="print the losses of that many steps instead of timing")
    parser.add_argument("--case", choices=cases or ("",), default=(cases or ("",))[0])
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(range(options.core, options.core + options.threads)))
    wanted = dict.fromkeys(_THREADS, str(options.threads))
    if _FORCED & os.environ.keys() or any(os.environ.get(name) != count for name, count in wanted.items()):
        kept = {name: value for name, value in os.environ.items() if name not in _FORCED}
        # numpy is loaded already, and its threads with it: start afresh
        os.execve(sys.executable, sys.orig_argv, {**kept, **wanted})
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if options.framework.startswith("torch"):
        import torch

        torch.set_num_threads(options.threads)
    return options


def measure(options: argparse.Namespace, workload: str, step: Callable[[], Any]) -> None:
    """Time ``step`` (which must block until its result is there) and print one JSON line; ``check`` in it is the mean
    of the absolute values of the last result, to see that all compute the same.

    Two more steps warm up and at least 20 are timed, so that one that others disturb does not decide.
    The clock is CPU time when others used more than 3% of our core meanwhile (``clock`` says which), else wall time.
    """
    start = time.perf_counter()
    step()
    first = time.perf_counter() - start
    for _ in range(2):
        step()
    walls, cpus = [], []
    begin = time.perf_counter()
    while len(walls) < _REPEATS or (time.perf_counter() - begin < options.seconds and len(walls) < 5000):
        wall, cpu = time.perf_counter(), time.process_time()
        last = step()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    wall, cpu = statistics.median(walls), statistics.median(cpus)
    shared = options.threads == 1 and wall > cpu * 1.03
    result = {
        "workload": workload, "case": options.case, "framework": options.framework, "threads": options.threads,
        "median_ms": round((cpu if shared else wall) * 1e3, 4), "wall_median_ms": round(wall * 1e3, 4),
        "clock": "cpu" if shared else "wall", "first_call_s": round(first, 3), "repeats": len(walls),
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "check": magnitude(last),
    }  # fmt: skip
    print(json.dumps(result), flush=True)


def magnitude(result: Any) -> float:
    """The mean of the absolute values of a tensor of any framework, or of the first one of several."""
    import numpy as np

    if isinstance(result, (list, tuple)):
        result = result[0]
    if hasattr(result, "detach"):
        result = result.detach()
    return float(np.abs(np.asarray(result)).mean())


def run(options: argparse.Namespace, workload: str, step: Callable[[], Any]) -> None:
    """Time the step, or print the losses of the first steps."""
    if options.losses:
        print(json.dumps({"framework": options.framework, "losses": [float(step()) for _ in range(options.losses)]}))
    else:
        measure(options, workload, step)
    sys.stdout.flush()
