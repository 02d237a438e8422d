"""Run a workload on argosy and its peers in turn and record the figures with their provenance.

``python benchmarks/side_by_side.py gpt_step --peer-python PATH --peers torch`` where PATH is an interpreter that has
the peers; Paddle, which wants libraries of its own, has one of its own (``--paddle-python``, without it Paddle is left
out). Writes ``benchmarks/results/<workload>.json``: command, commit, versions, machine class, every figure of the
run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from workloads import WORKLOADS, record_name

HERE = Path(__file__).resolve().parent
# Settings under which the peers' allocator reuses large buffers on 2 MiB pages: their best.
TUNED = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=8589934592"


def one(python: str, workload: str, framework: str, options: argparse.Namespace, cache: str) -> dict[str, Any]:
    """The figures of one process; ``cache`` is the folder of our compiled objects, empty in the first round."""
    command = [python, str(HERE / f"{workload}.py"), "--framework", framework, "--threads", str(options.threads)]
    command += ["--seconds", str(options.seconds), "--core", str(options.core)]
    command += ["--case", options.case] if options.case else []
    ours = framework.startswith("argosy")
    environment = {**os.environ, "ARGOSY_CACHE_DIR": cache} if ours else {**os.environ, "GLIBC_TUNABLES": TUNED}
    named = {"workload": workload, "framework": framework}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, check=False, timeout=options.patience
        )
    except subprocess.TimeoutExpired:
        return {**named, "over_s": options.patience}
    if done.returncode:
        return {**named, "failed": done.stderr.strip().splitlines()[-1:]}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def python_of(framework: str, options: argparse.Namespace) -> str:
    """The interpreter that has a framework; empty where none was named."""
    if framework in options.ours:
        return sys.executable
    chosen: str = options.paddle_python if framework == "paddle" else options.peer_python
    return chosen


def limits(options: argparse.Namespace) -> dict[str, Any]:
    """The limits of the machine, measured now on the same cores."""
    works = [w.work for w in WORKLOADS if (w.script, w.case) == (options.workload, options.case) and w.work]
    command = [sys.executable, str(HERE / "limits.py"), "--threads", str(options.threads), "--core", str(options.core)]
    command += [f"--{name}={getattr(work, name)}" for work in works for name in ("read", "written")]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def better(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The best limits of two measurements, before and after a run: what disturbed one of them is no limit."""
    found = {**before, **{name: max(before[name], after[name]) for name in ("bandwidth", "rate")}}
    return found | ({"stream": min(before["stream"], after["stream"])} if "stream" in before else {})


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":")[1].strip() for line in lines if "model name" in line), "")
    return {"cpu": model, "cores": os.cpu_count(), "system": platform.system(), "python": platform.python_version()}


def commit() -> str:
    """What is checked out."""
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload")
    parser.add_argument("--case", default="", help="the size or variant, for workloads that have several")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--paddle-python", default="")
    parser.add_argument("--peers", nargs="*", default=["torch"])
    parser.add_argument("--ours", nargs="*", default=["argosy"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--patience", type=float, default=240.0, help="seconds that a process may take")
    options = parser.parse_args()
    figures, before = [], limits(options)
    with tempfile.TemporaryDirectory() as cache:
        for number in range(options.rounds):
            for framework in (*options.ours, *options.peers):
                python = python_of(framework, options)
                if not python:
                    continue
                figures.append({**one(python, options.workload, framework, options, cache), "round": number})
                print(json.dumps(figures[-1]), flush=True)
    places = {options.peer_python, options.paddle_python}  # on this machine, and of no use elsewhere
    shown = ["PATH" if word in places else word for word in sys.argv[1:]]
    record = {
        "command": " ".join(["python", "benchmarks/side_by_side.py", *shown]),
        "commit": commit(),
        "machine": machine(),
        "limits": better(before, limits(options)),
    }
    target = HERE / "results" / record_name(options.workload, options.case, options.threads)
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({**record, "figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
