"""Run every recorded workload beside its peers and write the table and the plot.

``python benchmarks/everything.py --peer-python PATH [--threads 1] [--only NAME ...] [--rounds 3]`` where PATH is an
interpreter that has the peers (and ``--paddle-python`` one that has Paddle). Needs a quiet machine; takes half an hour.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from workloads import WORKLOADS

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Run the workloads one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--paddle-python", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    for workload in WORKLOADS:
        if options.only and workload.script not in options.only:
            continue
        print(f"== {workload.title}", flush=True)
        command = [sys.executable, str(HERE / "side_by_side.py"), workload.script, "--case", workload.case]
        command += ["--peer-python", options.peer_python, "--peers", *workload.peers]
        command += ["--paddle-python", options.paddle_python] if options.paddle_python else []
        command += ["--threads", str(options.threads), "--seconds", str(options.seconds)]
        subprocess.run([*command, "--rounds", str(options.rounds)], check=False)
    subprocess.run([sys.executable, str(HERE / "table.py")], check=True)


if __name__ == "__main__":
    main()
