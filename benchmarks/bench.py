"""The packages' benchmarks beside those of the last run: ``hatch run bench``.

``python benchmarks/bench.py [-k EXPRESSION] [--slower 0.15]`` times the small set in ``packages/`` (dispatch, capture,
compilation, a kernel of each kind, layouts, export, decoding) through pytest-benchmark, saves the figures under
``.benchmarks/`` and prints what takes longer than in the last saved run. The figure is the least time: others who use
the machine only add to it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console
from rich.markup import escape
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
STORAGE = ROOT / ".benchmarks"


def saved() -> list[Path]:
    """The saved runs, the oldest first: they are numbered."""
    return sorted(STORAGE.glob("*/*.json"), key=lambda path: path.name)


def least(run: Path) -> dict[str, float]:
    """Least seconds by benchmark."""
    found = json.loads(run.read_text(encoding="utf-8"))["benchmarks"]
    return {figure["fullname"].rpartition("/")[2]: figure["stats"]["min"] for figure in found}


def microseconds(seconds: float) -> str:
    """Three digits."""
    return f"{seconds * 1e6:,.3g}" if seconds < 1e-3 else f"{seconds * 1e6:,.0f}"


def slower(before: dict[str, float], now: dict[str, float], share: float) -> list[str]:
    """The benchmarks that take longer by more than that share, the worst first."""
    common = before.keys() & now.keys()
    return sorted((n for n in common if now[n] > before[n] * (1 + share)), key=lambda n: before[n] / now[n])


def compare(before: dict[str, float], now: dict[str, float], share: float) -> int:
    """Print the table of what became slower; how many there are."""
    console, names = Console(), slower(before, now, share)
    common = len(before.keys() & now.keys())
    if not names:
        console.print(f"none of {common} benchmarks is slower than in the last run by more than {share:.0%}")
        return 0
    table = Table("slower", "before, us", "now, us", "ratio")
    for name in names:
        table.add_row(
            escape(name), microseconds(before[name]), microseconds(now[name]), f"{now[name] / before[name]:.2f}"
        )
    console.print(table)
    return len(names)


def main() -> int:
    """Run, save, compare; 1 where something became slower."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="", metavar="EXPRESSION", help="only these, as of pytest")
    parser.add_argument("--slower", type=float, default=0.15, help="share of the time that may be noise")
    options = parser.parse_args()
    before: dict[str, float] = {}
    for run in saved():  # a run of a few leaves the others' last figures standing
        before |= least(run)
    command = [str(ROOT / "benchmarks" / "packages"), "-o", "python_files=bench_*.py", "-q", "-p", "no:xdist"]
    command += ["--benchmark-autosave", f"--benchmark-storage={STORAGE.as_uri()}", "--benchmark-disable-gc"]
    command += ["--benchmark-max-time=0.5", "--benchmark-columns=min,median,rounds", "--benchmark-sort=name"]
    status = pytest.main([*command, *(["-k", options.k] if options.k else [])])
    if status:
        return int(status)
    return min(1, compare(before, least(saved()[-1]), options.slower))


if __name__ == "__main__":
    sys.exit(main())
