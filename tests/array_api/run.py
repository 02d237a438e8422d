"""The suite of the array API standard over :mod:`argosy.array_api`: ``python tests/array_api/run.py FOLDER``.

FOLDER is a clone of data-apis/array-api-tests with its submodule; the suite needs hypothesis, ndindex and
pytest-json-report. ``reasons.txt`` beside this file lists the tests that fail, under why they do: what fails beside
them, and, of a run with enough examples, what passes of them, is an error. Operators
promote as the standard says while it runs. With 20 examples 1,347 of 1,384 pass, 5 are skipped (27 November 2026).
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ENOUGH = 100
"""Examples for each test that find every failure: with fewer, one that is listed may pass."""
MODULE = "exec('import argosy.array_api as xp; xp._promotion = xp.standard_promotion(); xp._promotion.__enter__()')"


def reasons() -> dict[str, str]:
    """By test, why it fails; names that end in ``*`` stand for all that begin so."""
    found, reason = {}, ""
    for line in (HERE / "reasons.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            found[line] = reason
    return found


def reason_of(test: str, known: dict[str, str]) -> str | None:
    """The entry that a test falls under, None where none does."""
    for entry in known:
        if test == entry or (entry.endswith("*") and test.startswith(entry[:-1])):
            return entry
    return None


def outcomes(folder: Path, examples: int) -> dict[str, str]:
    """By test, how it went."""
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "array_api_tests", "--json-report"]
        command += [f"--json-report-file={report}", f"--max-examples={examples}", "--disable-deadline", "--tb=no"]
        environment = os.environ | {"ARRAY_API_TESTS_MODULE": MODULE}
        subprocess.run(command, cwd=folder, env=environment, check=False)
        tests = json.loads(report.read_text(encoding="utf-8"))["tests"]
    return {test["nodeid"].removeprefix("array_api_tests/"): test["outcome"] for test in tests}


def main(folder: str, examples: str = "20") -> int:
    """Run the suite and compare; the number of surprises."""
    known = reasons()
    found = outcomes(Path(folder), int(examples))
    failed = {test for test, outcome in found.items() if outcome == "failed"}
    surprises = sorted(test for test in failed if reason_of(test, known) is None)
    met = {reason_of(test, known) for test in failed}
    passing = sorted(known.keys() - met) if int(examples) >= ENOUGH else []
    for test in surprises:
        sys.stdout.write(f"fails without a reason: {test}\n")
    for entry in passing:
        sys.stdout.write(f"passes, though listed: {entry}\n")
    sys.stdout.write(f"{sum(outcome == 'passed' for outcome in found.values())} of {len(found)} pass\n")
    return len(surprises) + len(passing)


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:])))
