"""Run examples in one framework, each in a process of its own that shares what is imported.

    python tests/documented/running.py FRAMEWORK EXAMPLES.json ANSWERS.json SEED_OFFSET

Where FRAMEWORK is argosy, the examples' ``import paddle`` finds argosy. An answer is what each step printed, and the
error that ended the example, if one did. Seeds that the examples set are moved by SEED_OFFSET, so that two runs tell
which of the printed numbers are random.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import pkgutil
import random
import signal
import sys
import tempfile
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

TIMEOUT = 30  # seconds for one example
_HEAVY = ("__main__", ".cli", ".launch", ".distributed", "mpi", "testing", ".stubs", "operator_page", ".index")


def main() -> None:
    """See the module's docstring."""
    framework, examples, answers, offset = sys.argv[1:]
    paddle = _framework(framework)
    folder = tempfile.mkdtemp()
    found = []
    for steps in json.loads(Path(examples).read_text()):
        found.append(_in_child(paddle, steps, int(offset), folder))
    Path(answers).write_text(json.dumps(found))


class _Alias(MetaPathFinder, Loader):
    """``import paddle.x`` gives the module ``argosy.x``."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] != "paddle":
            return None
        try:
            import_module("argosy" + name[6:])
        except ModuleNotFoundError:
            return None
        return ModuleSpec(name, self)

    def create_module(self, spec: ModuleSpec) -> Any:
        return sys.modules["argosy" + spec.name[6:]]

    def exec_module(self, module: Any) -> None:
        """It ran already."""


def _framework(name: str) -> Any:
    if name == "argosy":
        sys.meta_path.insert(0, _Alias())
        for package in ("argosy", "argosy_tensorcore", "argosy_phi_ops", "argosy_autograd", "argosy_cinn"):
            for found in pkgutil.walk_packages(import_module(package).__path__, package + "."):
                if not any(part in found.name for part in _HEAVY):
                    import_module(found.name)  # once, rather than in each process
    return import_module("paddle")


def _in_child(paddle: Any, steps: list[list[str]], offset: int, folder: str) -> dict[str, Any]:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(read)
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            os.chdir(folder)
            signal.alarm(TIMEOUT)
            _move_seeds(paddle, offset)
            answer = json.dumps(_run(steps)).encode()
            while answer:
                answer = answer[os.write(write, answer) :]
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer) if answer else {"printed": [], "error": "Crash: it died or took too long"}


def _move_seeds(paddle: Any, offset: int) -> None:
    import numpy as np

    for owner in (paddle, np.random, random):
        set_seed = owner.seed
        owner.seed = lambda seed=0, *more, of=set_seed: of(seed + offset, *more)
        owner.seed()


def _run(steps: list[list[str]]) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    printed: list[str] = []
    for source, wanted in steps:
        shown = io.StringIO()
        try:
            with contextlib.redirect_stdout(shown):
                _execute(source, names)
        except BaseException as error:  # noqa: BLE001  (whatever an example raises is its outcome)
            if "Traceback" not in wanted and type(error).__name__ not in wanted:
                return {"printed": printed, "error": f"{type(error).__name__}: {error}"[:300]}
        printed.append(shown.getvalue())
    return {"printed": printed, "error": None}


def _execute(source: str, names: dict[str, Any]) -> None:
    """As the prompt does: the values of expressions are shown, those in a block, too."""
    tree = ast.parse(source)
    if len(tree.body) == 1 and not isinstance(tree.body[0], (ast.FunctionDef, ast.ClassDef)):
        exec(compile(ast.Interactive(tree.body), "example", "single"), names)
    else:
        exec(compile(tree, "example", "exec"), names)


if __name__ == "__main__":
    main()
