"""Finding the one optimisation that makes a command fail: ``python -m argosy_cinn bisect -- python script.py``."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from argosy_phi_ops.settings import FUEL, FUEL_LOG, child_environment

_ALL = 1 << 40


class Outcome(NamedTuple):
    """What a run with some fuel came to: whether the command succeeded, steps spent, and the last step's name."""

    good: bool
    spent: int
    last: str


Run = Callable[[int], Outcome]


def find_step(run: Run, tell: Callable[[str], None] = lambda line: None) -> tuple[int, str] | None:
    """The number and name of the first step that makes the command fail; None where it does not fail at all.

    Raises RuntimeError when it fails without any optimisation, too, and when it fails but reported no optimisation.
    """
    everything = run(_ALL)
    if everything.good:
        return None
    tell(f"it fails after {everything.spent} optimisations")
    if not run(0).good:
        raise RuntimeError("the command fails without any optimisation, too: none of them is to blame")
    if not everything.spent:
        raise RuntimeError("the command fails, but reported no optimisation: none of them can be named")
    low, high, name = 0, everything.spent, everything.last
    while high - low > 1:
        middle = (low + high) // 2
        outcome = run(middle)
        tell(f"with {middle}: {'good' if outcome.good else 'bad'}")
        if outcome.good:
            low = middle
        else:
            high, name = middle, outcome.last
    return high, run(high).last or name


def command_runner(command: Sequence[str], show: bool = False) -> Run:
    """Runs the command with ``ARGOSY_FUEL`` set; exit status 0 is good, everything else (signals, too) is bad."""

    def run(fuel: int) -> Outcome:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "fuel.json"
            environment = child_environment({FUEL: str(fuel), FUEL_LOG: str(log)})
            done = subprocess.run(command, env=environment, capture_output=not show, check=False)
            told: dict[str, Any] = json.loads(log.read_text()) if log.exists() else {}
        return Outcome(done.returncode == 0, told.get("spent", 0), told.get("last", ""))

    return run


def main(command: Sequence[str]) -> int:
    """The command line; returns the exit status: 0 when a step was found."""
    usage = "usage: bisect [--] COMMAND...: a command that fails because of an optimisation\n"
    if list(command) in (["--help"], ["-h"]):
        sys.stdout.write(usage)
        return 0
    command = list(command[1:] if command[:1] == ["--"] else command)
    if not command:
        sys.stderr.write(usage)
        return 2
    try:
        found = find_step(command_runner(command), lambda line: print(line, file=sys.stderr))  # noqa: T201
    except (RuntimeError, OSError) as error:  # OSError: there is no such command
        sys.stderr.write(f"{error}\n")
        return 1
    if found is None:
        sys.stderr.write("the command succeeds with all optimisations\n")
        return 1
    sys.stdout.write(f"optimisation {found[0]} makes it fail: {found[1]}\n")
    return 0
