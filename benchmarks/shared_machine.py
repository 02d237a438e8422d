"""What processes of one machine leave each other: the rate of several at once by that of one alone, where memory is
copied and where cores multiply. Ranks that share memory, or the units of a core, cannot scale beyond it.

``python benchmarks/shared_machine.py [--processes 2] [--seconds 2]``
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

import numpy as np

KINDS = ("copy", "multiply")


def rate(kind: str, begin: float, seconds: float) -> float:
    """How often this process copies 64 MiB, or multiplies matrices of 256 x 256, in a second on a core, from ``begin``
    on: what else runs on the cores takes none of it."""
    a, b = (np.ones((256, 256), np.float32) for _ in range(2))
    source, target = np.ones(1 << 24, np.float32), np.ones(1 << 24, np.float32)
    time.sleep(max(0.0, begin - time.time()))
    count, end, first = 0, time.time() + seconds, time.process_time()
    while time.time() < end:
        if kind == "copy":
            np.copyto(target, source)
        else:
            np.matmul(a, a, out=b)
        count += 1
    return count / (time.process_time() - first)


def shared_limits(processes: int, seconds: float = 2.0) -> dict[str, float]:
    """By kind of work, the rate of ``processes`` at once by that of one: the speedup that such work can have."""
    found = {}
    for kind in KINDS:
        alone, together = (_total_rate(kind, count, seconds) for count in (1, processes))
        found[kind] = round(together / alone, 3)
    return found


def _total_rate(kind: str, count: int, seconds: float) -> float:
    begin = str(time.time() + 2.0)  # when all have been started
    command = [sys.executable, __file__, "--kind", kind, "--begin", begin, "--seconds", str(seconds)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(count)]
    return sum(float(process.communicate()[0]) for process in started)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--kind", choices=KINDS, help="run as one process and print its rate")
    parser.add_argument("--begin", type=float, default=0.0)
    options = parser.parse_args()
    if options.kind:
        print(rate(options.kind, options.begin, options.seconds))
    else:
        print(shared_limits(options.processes, options.seconds))


if __name__ == "__main__":
    main()
