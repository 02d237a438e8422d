"""Which of Paddle's public names the suite executes: a plugin of pytest, and the page ``docs/COVERAGE.md``.

    PYTHONPATH=tests python -m pytest -p coverage_of_names --names names.d packages tests
    python tests/coverage_of_names.py names.d [more.d ...] [--keep]

Each run with ``--names`` writes what it executed into a file of that folder; the second line reads all of them and
writes the page, with ``--keep`` as an addition to what the page has: so the suite can be counted in parts. A function
counts when its code ran, an operator when it was called (as a function or a method), a method when it ran on an
instance of the class, a class when one of its methods did, a constant when it is there.
The names are those of the wheel, by area, in ``parity/records/names.json``. Worker processes are not watched.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import warnings
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NoReturn

NAMES = Path(__file__).parent / "parity" / "records" / "names.json"
PAGE = Path(__file__).parents[1] / "docs" / "COVERAGE.md"
LATER = "\n## Documented examples"  # from here on the page is others'
_PLAIN, _METHOD, _OPERATOR = range(3)


class Watch:
    """The profile function of a run: remembers code, (class, method) pairs and operators that were called."""

    def __init__(self) -> None:
        self.kinds: dict[CodeType, int] = {}
        self.plain: set[CodeType] = set()
        self.methods: set[tuple[type, str]] = set()
        self.operators: set[str] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        kind = self.kinds.get(code)
        if kind is None:
            kind = self.kinds[code] = _kind(code)
            self.plain.add(code)
        if kind == _PLAIN:
            return
        first = frame.f_locals.get("self")
        if kind == _METHOD:
            self.methods.add((type(first), code.co_name))
            if code.co_name == "__call__":
                self._operator(first, code)
        else:
            self._operator(frame.f_locals.get("op"), code)

    def _operator(self, op: Any, code: CodeType) -> None:
        if type(op).__name__ in ("Operator", "Composition"):
            name = op.__dict__.get("name") if hasattr(op, "__dict__") else op.name
            if name:
                self.operators.add(name + "_" if "inplace" in code.co_qualname else name)


def _kind(code: CodeType) -> int:
    """How calls of this code are remembered; that of other projects not at all but once."""
    if "argosy" not in code.co_filename:
        return _PLAIN
    called = code.co_name in ("apply", "bind") and "op" in code.co_varnames[:1]
    if "op" in code.co_freevars or called:
        return _OPERATOR
    return _METHOD if code.co_varnames[:1] == ("self",) and code.co_argcount else _PLAIN


def resolve(dotted: str) -> Any:
    """The object under ``argosy.<dotted>``; its owner beside it. Raises AttributeError where there is none."""
    found: Any = import_module("argosy")
    owner: Any = None
    path = "argosy"
    for part in dotted.split("."):
        owner, path = found, f"{path}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            found = import_module(path)
    return owner, found


def missing(dotted: str) -> str:
    """How a name is missing: ``absent``, or a function that only ``refuses``; empty where it is there."""
    try:
        found = resolve(dotted)[1]
    except (AttributeError, ImportError):
        return "absent"
    returned = getattr(found, "__annotations__", {}) if callable(found) and not isinstance(found, type) else {}
    return "refuses" if returned.get("return") in ("NoReturn", NoReturn) else ""


def executed(watch: Watch, dotted: str) -> bool:
    """Whether the run executed the name; one that is missing was not."""
    if missing(dotted):
        return False
    owner, found = resolve(dotted)
    if isinstance(owner, type):
        return _member(watch, owner, found, dotted.rpartition(".")[2])
    return _object(watch, found)


def _object(watch: Watch, found: Any) -> bool:
    if isinstance(found, type):
        shared = [m for m in vars(found).values() if isinstance(m, (classmethod, staticmethod))]
        called = any(_code(m) in watch.plain for m in shared)
        return called or any(issubclass(of, found) for of, _ in watch.methods) or _built_without_init(found)
    if not callable(found):
        return True
    name = getattr(found, "name", None)
    if type(found).__name__ in ("Operator", "Composition"):
        return name in watch.operators
    code = _code(found)
    if code is not None and "op" in code.co_freevars:  # the code is one for all operators
        return found.__name__ in watch.operators
    return code in watch.plain if code is not None else True  # a builtin of another project


def _built_without_init(found: type) -> bool:
    return issubclass(found, (int, tuple, Enum)) or found.__init__ is object.__init__  # enumerations and plain holders


def _member(watch: Watch, owner: type, found: Any, name: str) -> bool:
    if isinstance(found, property):
        found = found.fget
    if owner.__name__ in ("Tensor", "Parameter"):  # parameters are tensors with a mark
        return _object(watch, found)
    if owner.__name__ == "PyLayer":  # never made: its methods run as functions, forward and backward those of users
        return _code(found) in watch.plain or (name in ("forward", "backward") and _code(owner.apply) in watch.plain)
    if any(issubclass(of, owner) and method == name for of, method in watch.methods):
        return True
    return not callable(found) or _code(found) is None or (_is_static(owner, name) and _object(watch, found))


def _is_static(owner: type, name: str) -> bool:
    return any(isinstance(vars(c).get(name), (staticmethod, classmethod)) for c in owner.__mro__ if name in vars(c))


def _code(function: Any) -> CodeType | None:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, CodeType) else None


# The plugin


def pytest_addoption(parser: Any) -> None:
    """``--names FOLDER``."""
    parser.addoption("--names", default=None, help="write the public names that the run executed into this folder")


_watch = Watch()


def pytest_configure(config: Any) -> None:
    """Begin to watch, with operators run by Python: native code tells no profile function of its calls."""
    if config.getoption("--names"):
        os.environ["ARGOSY_EAGER"] = "plain"
        threading.setprofile(_watch)
        sys.setprofile(_watch)


def pytest_sessionfinish(session: Any) -> None:
    """Write what was executed."""
    folder = session.config.getoption("--names")
    if not folder:
        return
    sys.setprofile(None)
    threading.setprofile(None)  # type: ignore[arg-type]
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for names in json.loads(NAMES.read_text()).values():
            found += [name for name in names if executed(_watch, name)]
    Path(folder).mkdir(exist_ok=True)
    (Path(folder) / f"{time.time_ns()}-{os.getpid()}.json").write_text(json.dumps(sorted(found)))


# The page


def page(found: set[str]) -> str:
    """``docs/COVERAGE.md`` of the names executed."""
    areas: dict[str, list[str]] = json.loads(NAMES.read_text())
    total, hit = 0, 0
    rows, others = [], []
    for area, names in areas.items():
        run = [name for name in names if name in found]
        total, hit = total + len(names), hit + len(run)
        rows.append(f"| {area} | {len(names)} | {len(run)} | {len(run) / len(names):.1%} |")
        others += [f"- {area}: `{name}`{_remark(name)}" for name in names if name not in found]
    head = (
        "# Paddle's public names that the suite executes\n\nWritten by `tests/coverage_of_names.py` from runs of the "
        "suite; see there what counts (what was not run here may well be "
        "executed by the rest: the share is a lower bound). A name that is absent, or that only refuses, is listed as "
        "such and counts as not executed. Signatures are compared by "
        "`tests/parity/test_signatures.py`.\n\n"
        "| area | names | executed | share |\n|---|---|---|---|\n"
    )
    last = f"| **all** | {total} | {hit} | {hit / total:.1%} |"
    return head + "\n".join([*rows, last]) + "\n\n## Not executed\n\n" + ("\n".join(others) or "None.") + "\n"


def _remark(name: str) -> str:
    how = missing(name)
    return f" ({how})" if how else ""


def renewed(before: str, found: set[str]) -> str:
    """The page ``before`` with its part on names written anew; what others write, or people, stays."""
    _, heading, others = before.partition(LATER)
    return page(found) + heading + others


def counted(text: str) -> set[str]:
    """The names that a page counts as executed: of the areas in its table all but those that it lists."""
    table, _, rest = text.partition(LATER)[0].partition("\n## Not executed")
    listed = {line.split("`")[1] for line in rest.splitlines() if line.startswith("- ")}
    areas: dict[str, list[str]] = json.loads(NAMES.read_text())
    return {name for area, names in areas.items() if f"\n| {area} |" in table for name in names} - listed


def main(folders: list[str], keep: bool = False) -> None:
    """Write the page from the files in ``folders``; ``keep`` what it counts already."""
    before = PAGE.read_text(encoding="utf-8")
    found = counted(before) if keep else set()
    for folder in folders:
        found |= {name for file in Path(folder).glob("*.json") for name in json.loads(file.read_text())}
    PAGE.write_text(renewed(before, found), encoding="utf-8")
    sys.stdout.write(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main([a for a in sys.argv[1:] if a != "--keep"], "--keep" in sys.argv)
