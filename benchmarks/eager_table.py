"""How tables of eager figures are taken: each framework in a process of its own, in turn, on one core."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path

from side_by_side import commit, machine

HERE = Path(__file__).resolve().parent
FRAMEWORKS = ("argosy", "torch", "paddle")


def one(script: str, framework: str, options: argparse.Namespace) -> dict[str, float]:
    """The figures of a process of its own."""
    python = {"argosy": sys.executable, "torch": options.peer_python, "paddle": options.paddle_python}[framework]
    command = [python, str(HERE / f"{script}.py"), "--framework", framework, "--core", str(options.core), "--settled"]
    command += [str(options.settled), *(["--only", *options.only] if options.only else [])]
    threads = {"OMP_NUM_THREADS": "1", "ARGOSY_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **threads}, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    figures: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def table_of(
    script: str,
    what: str,
    about: str | None,
    cases: Collection[str],
    settled: float,
    measured: Callable[[argparse.Namespace], dict[str, float]],
) -> None:
    """Measure in turn, print and record as ``results/<script>.json``, the rows under ``what``. ``measured`` gives the
    figures of one framework; ``settled`` is how much goes before one is taken, as ``measured`` understands it."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--framework", choices=FRAMEWORKS)
    parser.add_argument("--peer-python", default="")
    parser.add_argument("--paddle-python", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--settled", type=type(settled), default=settled)
    parser.add_argument("--only", nargs="*", choices=cases)
    options = parser.parse_args()
    if options.framework:
        print(json.dumps(measured(options)), flush=True)
        return
    chosen = ["argosy", *["torch"] * bool(options.peer_python), *["paddle"] * bool(options.paddle_python)]
    rounds = [{framework: one(script, framework, options) for framework in chosen} for _ in range(options.rounds)]
    table = {
        name: {f: round(statistics.median(r[f][name] for r in rounds), 2) for f in chosen}
        for name in rounds[0]["argosy"]
    }
    for name, row in table.items():
        print(f"{name:24}" + "".join(f"{f:>10} {row[f]:10.2f}" for f in chosen))
    if not options.only:
        command = f"python benchmarks/{script}.py --peer-python PATH --paddle-python PATH"
        record = {
            "workload": script, "command": command, "commit": commit(), "machine": machine(), "unit": "us",
            "rounds": options.rounds, what: table,
        }  # fmt: skip
        path = HERE / "results" / f"{script}.json"
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
