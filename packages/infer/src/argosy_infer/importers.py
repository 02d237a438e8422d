"""Programs of files that other tools wrote: what reads them is found by entry point (group ``argosy.importers``);
ONNX files are read here.

An entry point names an :class:`Importer` or a function that makes one; it is loaded at first use.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

from argosy_hwadapt.plugins import PlugIns
from argosy_infer.errors import ProgramFileError
from argosy_infer.export import LoadedProgram, load_program

__all__ = ["Importer", "import_program"]

_PLUG_INS = PlugIns(
    "argosy.importers", "importer", ProgramFileError, {"onnx": "argosy_infer.onnx.importer:OnnxImporter"}
)


class Importer(Protocol):
    """What makes programs of one kind of file or folder."""

    def accepts(self, path: str) -> bool:
        """Whether a path, which exists, is of this kind; by its name or its first bytes."""
        ...

    def load(self, path: str) -> LoadedProgram:
        """The program and its weights."""
        ...


def import_program(path: str | os.PathLike[str], importer: str | None = None) -> LoadedProgram:
    """The program of a file or folder, by the ``importer`` of that name or the one that accepts it; what
    ``save_program`` wrote is loaded as it is.

    Raises :class:`ProgramFileError` where the path does not exist, no importer accepts it or several do, naming them.
    """
    path = os.fspath(path)
    if importer is not None:
        return _load(importer).load(path)
    if os.path.exists(f"{path}.pir") or path.endswith(".pir"):
        return load_program(path)
    if not os.path.exists(path):
        raise ProgramFileError(f"{path} does not exist, nor does {path}.pir")
    found = {name: each for name in _PLUG_INS.names() if (each := _load(name)).accepts(path)}
    if len(found) != 1:
        what = f"the importers {' and '.join(found)} accept" if found else "no importer accepts"
        raise ProgramFileError(f"{what} {path}; installed: {', '.join(_PLUG_INS.names()) or 'none'}")
    return next(iter(found.values())).load(path)


def _load(name: str) -> Importer:
    _, load = _PLUG_INS.locate(name)
    made: Any = load()
    return made() if callable(made) else made  # type: ignore[no-any-return]
