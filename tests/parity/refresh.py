"""Record what the real wheel answers to every case.

    python tests/parity/refresh.py --oracle-python PATH [FAMILY ...]

PATH is an interpreter that has ``paddlepaddle`` installed; nothing else needs it. A case that kills that interpreter is
recorded as "crash", and the rest goes on in a fresh one.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from parity.cases import FAMILIES, cases_of  # noqa: E402
from parity.records import save  # noqa: E402
from parity.runner import Outcome, run_case  # noqa: E402
from parity.signatures import AREAS, names_of, parameters_of, save_signatures  # noqa: E402


def main() -> None:
    """Refresh the families named on the command line, or all, and the signatures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle-python", required=True, help="an interpreter with paddlepaddle")
    parser.add_argument("families", nargs="*", help=f"of {', '.join(FAMILIES)}; all by default")
    arguments = parser.parse_args()
    _signatures(arguments.oracle_python)
    for family in arguments.families or FAMILIES:
        version, outcomes = _record(arguments.oracle_python, family)
        save(family, version, list(zip(cases_of(family), outcomes, strict=True)))
        failed = sum(bool(o.error) for o in outcomes)
        print(f"{family}: {len(outcomes)} cases, of which the wheel refuses {failed}")  # noqa: T201


def _signatures(python: str) -> None:
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(
            [python, __file__, "--signatures", file.name], check=True, env=_environment(), stderr=subprocess.DEVNULL
        )
        save_signatures(_unpickled(Path(file.name))[1][0])


def _note_signatures(path: str) -> None:
    """In the oracle's interpreter: pickle the signatures of all targets."""
    import paddle  # type: ignore[import-not-found]

    targets = {case.target for family in FAMILIES for case in cases_of(family)} | set(names_of(AREAS))
    found = {t: parameters_of(paddle, t) for t in targets if not t.startswith("Tensor.")}
    with Path(path).open("wb") as file:
        pickle.dump(paddle.__version__, file)
        pickle.dump(found, file)


def _record(python: str, family: str) -> tuple[str, list[Outcome]]:
    outcomes: list[Outcome] = []
    version = ""
    wanted = len(cases_of(family))
    while len(outcomes) < wanted:
        with tempfile.NamedTemporaryFile() as file:
            command = [python, __file__, "--worker", family, str(len(outcomes)), file.name]
            ended = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True, env=_environment())
            version, more = _unpickled(Path(file.name))
        outcomes += more
        if len(outcomes) < wanted:
            if ended.returncode >= 0 and ended.returncode != 134:
                raise SystemExit(f"the oracle ended with status {ended.returncode}:\n{ended.stderr[-3000:]}")
            outcomes.append(Outcome(error="crash"))
    return version, outcomes


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": "", "GLOG_minloglevel": "3"}


def _unpickled(path: Path) -> tuple[str, list[Outcome]]:
    found = []
    with path.open("rb") as file:
        try:
            while True:
                found.append(pickle.load(file))
        except EOFError:
            return (found[0] if found else ""), found[1:]


def _work(family: str, start: str, path: str) -> None:
    """In the oracle's interpreter: append one pickled outcome per case to ``path``."""
    import warnings

    warnings.simplefilter("ignore")
    import paddle  # type: ignore[import-not-found]

    paddle.set_device("cpu")
    with Path(path).open("wb") as file:
        pickle.dump(paddle.__version__, file)
        for case in cases_of(family)[int(start) :]:
            pickle.dump(run_case(paddle, case), file)
            file.flush()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--signatures"]:
        _note_signatures(sys.argv[2])
    elif sys.argv[1:2] == ["--worker"]:
        _work(*sys.argv[2:])
    else:
        main()
