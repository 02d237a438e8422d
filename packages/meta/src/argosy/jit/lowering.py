"""From a captured program to an executable: gradients expanded, operators decomposed, then the compiler.

``ARGOSY_DUMP`` names a folder that receives the program before and after each pass; ``ARGOSY_VERIFY=1`` checks
it there.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import argosy_phi_ops.passes.decompose  # noqa: F401  (registers its pass)
from argosy import settings
from argosy_hwadapt import device
from argosy_phi_ops.compiler import Executable, available_compilers, get_compiler
from argosy_phi_ops.context import own_context
from argosy_phi_ops.errors import CompileError
from argosy_pir.passes import PassManager
from argosy_pir.program import Program

__all__ = ["PIPELINE", "Backend", "Configured", "build", "choose_compiler", "lower", "recorded", "simplify"]


class Configured(NamedTuple):
    """A backend with an option of its compiler: the bytes that intermediate values may need."""

    backend: str | None
    memory_budget: int


Backend: TypeAlias = str | Configured | None
PIPELINE = "decompose,taylor-mode,expand-gradients,cse,dce"
_warned: set[str] = set()
_dumps = 0
_stages: list[tuple[str, str]] | None = None  # see `recorded`


def lower(program: Program, backend: Backend) -> Executable:
    """Run the passes on ``program`` in place and compile it for the host."""
    simplify(program)
    return build(program, backend)


def simplify(program: Program, pipeline: str = PIPELINE) -> None:
    """Run the passes on ``program`` in place."""
    verify = settings.read("ARGOSY_VERIFY") != "0"
    if _stages is not None:
        _stages.append((f"captured program '{program.name}'", str(program)))
    manager = PassManager(pipeline, verify=verify, dump=_dump_folder(program.name))
    with own_context():
        manager.run(program)
    if _stages is not None:
        if manager.session.notes:
            _stages.append((f"choices for '{program.name}'", "\n".join(manager.session.notes)))
        _stages.append((f"decomposed program '{program.name}'", str(program)))


@contextmanager
def recorded() -> Iterator[list[tuple[str, str]]]:
    """Collect the titles and texts of programs before and after the passes within the block."""
    global _stages
    previous, _stages = _stages, []
    try:
        yield _stages
    finally:
        _stages = previous


def build(program: Program, backend: Backend, communicators: Any = ()) -> Executable:
    """Compile a program that is simplified already; ``communicators`` serve its communication primitives."""
    options: dict[str, Any] = {}
    if isinstance(backend, Configured):
        options["memory_budget"] = backend.memory_budget
        backend = backend.backend
    name = choose_compiler(backend)
    if name == "reference":
        options.clear()  # it keeps nothing longer than it is needed
    return get_compiler(name).compile(program, device("cpu", 0), communicators, options)


def choose_compiler(backend: str | None) -> str:
    """The name of the compiler for ``backend``: ``"CINN"``, the name of another one, or None for the reference.

    Where cinn is not installed the reference interpreter stands in, with one warning.
    """
    if backend is None:
        return "reference"
    name = backend.lower()
    if name == "cinn" and not _loads("cinn"):
        if "cinn" not in _warned:
            _warned.add("cinn")
            warnings.warn(
                "argosy-cinn is not installed: programs run on the slow reference interpreter; "
                "python -m pip install argosy-cinn",
                stacklevel=2,
            )
        return "reference"
    if name not in ("cinn", "reference") and name not in available_compilers():
        raise CompileError(f"there is no backend {backend!r}; there are {available_compilers()}")
    return name


def _loads(name: str) -> bool:
    if name not in available_compilers():
        return False
    try:
        get_compiler(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("argosy_cinn", "llvmlite"):
            raise
        return False
    return True


def _dump_folder(name: str) -> Any:
    global _dumps
    root = settings.read("ARGOSY_DUMP")
    if not root:
        return None
    _dumps += 1
    return os.path.join(root, f"{_dumps:03d}-{name}")
