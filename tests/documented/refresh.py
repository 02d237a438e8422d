"""Run the documented examples of the real wheel, there and here, and record how each came out.

    python tests/documented/refresh.py --oracle-python PATH [--areas AREA ...] [--show OUTCOME ...]

PATH is an interpreter that has ``paddlepaddle`` installed. The examples are read from the wheel's docstrings and run
twice there, with different seeds, which tells which of the numbers are random. Only names and outcomes are kept, in
``outcomes.json``; ``docs/COVERAGE.md`` gets the figures. ``--show`` prints the examples with such an outcome.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[:] = [str(TESTS), *(p for p in sys.path if Path(p or ".").resolve() != TESTS / "documented")]

from documented.examples import Example, collect  # noqa: E402
from documented.judging import OUTCOMES, judge  # noqa: E402
from documented.reasons import REASONS  # noqa: E402

RECORD = Path(__file__).with_name("outcomes.json")
PAGE = TESTS.parent / "docs" / "COVERAGE.md"
HEADING = "\n## Documented examples\n"
AFTER = "\n## Libraries"


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle-python", required=True, help="an interpreter with paddlepaddle")
    parser.add_argument("--areas", nargs="*", help="only these")
    parser.add_argument("--show", nargs="*", default=[], choices=sorted(OUTCOMES), help="print these examples")
    parser.add_argument("--kept", type=Path, help="a folder for the wheel's answers; those found there are used again")
    parser.add_argument("--collect", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.collect:
        import paddle  # type: ignore[import-not-found]

        Path(arguments.collect).write_text(json.dumps(collect(paddle)))
        return
    found = outcomes(arguments.oracle_python, arguments.areas, arguments.show, arguments.kept)
    record: dict[str, dict[str, str]] = json.loads(RECORD.read_text()) if RECORD.exists() and arguments.areas else {}
    record.update(found)
    RECORD.write_text(json.dumps(record, indent=0, sort_keys=True) + "\n")
    PAGE.write_text(with_figures(PAGE.read_text(), record))
    print(table(record))  # noqa: T201


def outcomes(oracle: str, areas: list[str] | None, show: list[str], kept: Path | None) -> dict[str, dict[str, str]]:
    """By area, the outcome of each example."""
    with tempfile.TemporaryDirectory() as folder:
        there = kept or Path(folder)
        there.mkdir(exist_ok=True)
        every = [Example(*e) for e in _wheels(there / "examples.json", lambda f: _collected(oracle, f))]
        wanted = [i for i, e in enumerate(every) if not areas or e.area in areas]
        steps = there / "steps.json"
        steps.write_text(json.dumps([e.steps for e in every]))
        theirs = [
            _wheels(there / f"{offset}.json", lambda f, offset=offset: _answer(oracle, "paddle", steps, f, offset))
            for offset in (0, 1000)
        ]
        file, answers = Path(folder) / "wanted.json", Path(folder) / "answers.json"
        file.write_text(json.dumps([every[i].steps for i in wanted]))
        _answer(sys.executable, "argosy", file, answers, 0)
        ours = json.loads(answers.read_text())
    record: dict[str, dict[str, str]] = {}
    examples = [every[i] for i in wanted]
    theirs = [[answers[i] for i in wanted] for answers in theirs]
    for example, *answers in zip(examples, ours, *theirs, strict=True):
        outcome, why = judge(example.steps, *answers)
        record.setdefault(example.area, {})[example.key] = outcome
        if outcome in show:
            print(f"#### {example.area}: {example.key}: {outcome}\n{why}")  # noqa: T201
    return record


def _wheels(file: Path, make: Callable[[Path], None]) -> list[Any]:
    if not file.exists():
        make(file)
    found: list[Any] = json.loads(file.read_text())
    return found


def _collected(oracle: str, file: Path) -> None:
    _call([oracle, __file__, "--oracle-python", oracle, "--collect", str(file)])


def _answer(python: str, framework: str, examples: Path, answers: Path, offset: int) -> None:
    _call([python, str(TESTS / "documented" / "running.py"), framework, str(examples), str(answers), str(offset)])


def _call(command: list[str]) -> None:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def table(record: dict[str, dict[str, str]]) -> str:
    """The figures of a record, as a table."""
    rows = ["| area | examples | " + " | ".join(OUTCOMES) + " |", "|---|---|" + "---|" * len(OUTCOMES)]
    total: Counter[str] = Counter()
    for area in sorted(record):
        counts = Counter(record[area].values())
        total += counts
        rows.append(_row(area, counts))
    return "\n".join([*rows, _row("**all**", total)])


def _row(area: str, counts: Counter[str]) -> str:
    return f"| {area} | {sum(counts.values())} | " + " | ".join(str(counts[kind]) for kind in OUTCOMES) + " |"


def reasons(record: dict[str, dict[str, str]]) -> str:
    """The examples that differ or fail, and why."""
    rows = ["| example | outcome | why |", "|---|---|---|"]
    for area in sorted(record):
        found = [(key, outcome) for key, outcome in record[area].items() if outcome in ("differs", "fails")]
        rows += [f"| `{key}` | {outcome} | {REASONS.get(key, 'not looked at')} |" for key, outcome in found]
    return "\n".join(rows)


def with_figures(page: str, record: dict[str, dict[str, str]]) -> str:
    """``page`` with its section on the examples renewed."""
    meanings = "; ".join(f"*{kind}*: {meaning}" for kind, meaning in OUTCOMES.items())
    section = (
        f"{HEADING}\nThe examples in the docstrings of the wheel's public API, run with argosy as `paddle` "
        f"(`tests/documented/refresh.py`). {meanings}.\n\n{table(record)}\n\n{reasons(record)}\n"
    )
    before, _, rest = page.partition(HEADING)
    start, heading, after = (before if not rest else before + AFTER + rest.partition(AFTER)[2]).partition(AFTER)
    return start + section + heading + after


if __name__ == "__main__":
    main()
