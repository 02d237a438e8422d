"""The limits of this machine on so many threads, measured now.

``python benchmarks/limits.py --threads 1 --core 0`` prints one JSON line: ``bandwidth``, bytes a second that a copy in
memory reads and writes together, and ``rate``, float32 operations a second in registers, two for a multiply-add. With
``--read`` and ``--written``, numbers of bytes, also ``stream``: the seconds in which so many are read and written again
and again, in a cache where they fit one.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--core", type=int, default=0, help="first core to pin to")
    parser.add_argument("--read", type=int, default=0)
    parser.add_argument("--written", type=int, default=0)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(range(options.core, options.core + options.threads)))
    os.environ["ARGOSY_NUM_THREADS"] = str(options.threads)
    from argosy_cinn.tools.limits import measured_limits, stream_seconds

    found = asdict(measured_limits())
    if options.read + options.written:
        found["stream"] = stream_seconds(options.read, options.written)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
