"""CPU time and peak memory of ``import argosy`` beside ``import numpy``, each in fresh processes, interleaved."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys

PROBE = "import {0}, resource as r; u = r.getrusage(r.RUSAGE_SELF); print(u.ru_utime + u.ru_stime, u.ru_maxrss)"


def main(modules: tuple[str, ...] = ("argosy", "numpy"), repeats: int = 15) -> None:
    samples: dict[str, list[tuple[float, float]]] = {m: [] for m in modules}
    for _ in range(repeats):
        for module in modules:
            out = subprocess.run(
                [sys.executable, "-c", PROBE.format(module)], capture_output=True, text=True, check=True
            )
            cpu, rss = map(float, out.stdout.split())
            samples[module].append((cpu, rss))
    for module, values in samples.items():
        cpu = statistics.median(v[0] for v in values[1:])
        rss = max(v[1] for v in values)
        print(
            json.dumps(
                {
                    "workload": "import",
                    "module": module,
                    "cpu_ms": round(cpu * 1e3, 1),
                    "peak_rss_mib": round(rss / 1024, 1),
                }
            )
        )


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
