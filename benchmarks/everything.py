"""Take every row of the tables of figures beside its peers, at one commit, and write the tables and the plot.

``python benchmarks/everything.py --peer-python PATH --paddle-python PATH [--threads 1] [--only NAME ...]`` where the
interpreters have the peers and Paddle. The rows of the first page come first; a row that is recorded at this commit is
not taken again (``--again`` does), so that a run that was stopped goes on. Needs a quiet machine; takes 40 minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from side_by_side import commit
from table import FIRST
from workloads import EAGER, WORKLOADS, record_name

HERE = Path(__file__).resolve().parent


class Row(NamedTuple):
    """What is run for a row: a script and its case, on ``ours`` beside ``peers``."""

    script: str
    case: str
    peers: tuple[str, ...]
    ours: tuple[str, ...] = ("argosy",)


def rows(threads: int) -> list[Row]:
    """Every row of the tables on so many threads, those of the first page first; eager ones are timed on one."""
    found = [Row(w.script, w.case, w.peers) for w in WORKLOADS]
    found.sort(key=lambda row: (row.script, row.case) not in FIRST)
    ours, peers = ("argosy-eager", "argosy-plain"), ("numpy", "torch", "paddle", "jax")
    return found + [Row("eager", case, peers, ours) for case in EAGER if threads == 1]


def is_recorded(row: Row, threads: int) -> bool:
    """Whether the row was taken at the commit that is checked out, and what is ours ran."""
    path = HERE / "results" / record_name(row.script, row.case, threads)
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"commit": ""}
    return record["commit"] == commit() and not any(
        "failed" in figure for figure in record["figures"] if figure["framework"] in row.ours
    )


def main() -> None:
    """Run the workloads one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--paddle-python", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="least time of each process; 20 steps at least")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], help="these scripts")
    parser.add_argument("--again", action="store_true", help="rows that are recorded at this commit, too")
    options = parser.parse_args()
    for row in rows(options.threads):
        if options.only and row.script not in options.only:
            continue
        if not options.again and is_recorded(row, options.threads):
            continue
        print(f"== {row.script} {row.case}", flush=True)
        command = [sys.executable, str(HERE / "side_by_side.py"), row.script]
        command += ["--case", row.case] if row.case else []
        command += ["--peer-python", options.peer_python, "--ours", *row.ours, "--peers", *row.peers]
        command += ["--paddle-python", options.paddle_python] if options.paddle_python else []
        command += ["--threads", str(options.threads), "--seconds", str(options.seconds)]
        subprocess.run([*command, "--rounds", str(options.rounds)], check=False)
    subprocess.run([sys.executable, str(HERE / "table.py")], check=True)


if __name__ == "__main__":
    main()
