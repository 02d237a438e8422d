"""Programs with passes still to run on them: where the outcome is on disk already, the passes do not run.

A `Preparation` names what it does by its ``recipe``: equal programs and recipes, and equal sources of the packages that
passes come from, mean equal outcomes. An entry of the `ObjectCache` leads from the captured program to the entry of the
prepared one. Programs that contain what a user's code expands or differentiates have no such entry.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from threading import RLock
from typing import Any, Protocol

from argosy_cinn.call_once import call_once
from argosy_cinn.fuel import Budget
from argosy_cinn.runtime import ObjectCache
from argosy_cinn.store import program_cache
from argosy_cinn.store.program_cache import Manifest
from argosy_cinn.target import Target
from argosy_cinn.tools.dump import is_dumping
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir.core import Operation
from argosy_pir.errors import FormatError
from argosy_pir.fork import hold_at_fork
from argosy_pir.program import Program, from_bytes
from argosy_pir.serialization import to_bytes
from argosy_tensorcore.dtype import default_dtype

_preparing = hold_at_fork(RLock())  # a child has no program that is half prepared
_REQUESTS = frozenset({"ad.gradient", "ad.jet"})
_PACKAGES = ("argosy_pir", "argosy_phi_ops", "argosy_autograd")


class Preparation(Protocol):
    """What happens to a program before it is compiled; its inputs, states and outputs stay."""

    recipe: str

    def run(self, program: Program) -> None:
        """Change the program in place."""
        ...


class PreparedProgram:
    """A program that is prepared when somebody asks for it. Until then it may be kept as bytes (`pack`), which take a
    fiftieth of the memory of its objects."""

    def __init__(self, program: Program, preparation: Preparation) -> None:
        self._program: Program | bytes = program
        self._preparation: Preparation | None = preparation  # None when it is done

    def __call__(self) -> Program:
        """The prepared program."""
        with _preparing:
            if isinstance(self._program, bytes):
                self._program = from_bytes(self._program)
            if self._preparation is not None:
                self._preparation.run(self._program)
                self._preparation = None
            return self._program

    def pack(self) -> bool:
        """Keep the program as bytes until somebody asks for it. Returns False where it has no such form."""
        with _preparing:
            if not isinstance(self._program, bytes):
                try:
                    self._program = to_bytes(self._program)
                except FormatError:
                    return False
        return True


class Outcomes:
    """Where the outcome of a preparation is noted."""

    def __init__(
        self, program: Program, preparation: Preparation, store: ObjectCache, options: Mapping[str, Any]
    ) -> None:
        self._store = store
        noted = (
            not is_dumping()
            and not Budget.from_options(options).process
            and not program.symbols()
            and is_lasting(program)
        )
        self._key = _key(program, preparation.recipe, options) if noted else None

    @property
    def are_noted(self) -> bool:
        """Whether this program has such a note: what is done to it is the same in every process."""
        return self._key is not None

    def find(self) -> tuple[Manifest, bytes] | None:
        """Manifest and code of the prepared program. None where it is not known, or needs the program to run."""
        noted = self._store.get(self._key) if self._key is not None else None
        found = program_cache.find(self._store, noted.decode("ascii", "replace")) if noted is not None else None
        return None if found is None or found[0].hosts else found

    def discard(self) -> None:
        """Remove the note, and the entry that it names."""
        if self._key is not None:
            self._store.discard((self._store.get(self._key) or b"").decode("ascii", "replace"))
            self._store.discard(self._key)

    def note(self, key: str) -> None:
        """Note the key of the prepared program."""
        if self._key is not None:
            self._store.put(self._key, key.encode())


def is_lasting(program: Program) -> bool:
    """Whether passes do to this program what they do to it in every process: all that they expand is ours."""
    return all(map(_is_ours, program.walk()))


def _is_ours(op: Operation) -> bool:
    if op.dialect == "phi":
        return get_operator(op.kind).body.__module__.startswith("argosy_phi_ops.ops.")
    return op.name in _REQUESTS or (op.dialect in ("prim", "builtin", "control") and op.name != "prim.host_call")


def _key(program: Program, recipe: str, options: Mapping[str, Any]) -> str:
    states = [sorted(map(repr, state.attributes.items())) for state in program.states]
    around = repr((recipe, states, sorted(map(repr, program.attributes.items())), default_dtype().name))
    key = program_cache.program_key(program, Target.host(), options)
    return hashlib.sha256(f"{key}|{around}|{_sources()}".encode()).hexdigest()


@call_once
def _sources() -> str:
    """A digest of the packages whose passes, operators and rules decide what a preparation makes."""
    digest = hashlib.sha256()
    for name in _PACKAGES:
        try:
            package = import_module(name)
        except ModuleNotFoundError:  # then there is nothing of it to run
            continue
        for path in _modules(package.__path__[0]):
            with open(path, "rb", buffering=0) as source:
                digest.update(source.read())
    return digest.hexdigest()


def _modules(folder: str) -> Iterator[str]:
    """The modules of a package, in a lasting order; in half the time that pathlib takes."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir():
            yield from _modules(entry.path)
        elif entry.name.endswith(".py"):
            yield entry.path


__all__ = ["Outcomes", "Preparation", "PreparedProgram", "is_lasting"]
