"""Programs with their weights on disk: ``<path>.pir`` (binary IR) and ``<path>.safetensors`` (the states by name).

Both files are written atomically and name each other by checksum, so that a program never runs with weights of another
export. Loading executes nothing.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from argosy_infer.errors import ProgramFileError
from argosy_phi_ops.errors import FOREIGN
from argosy_pir.errors import IRError
from argosy_pir.program import Program
from argosy_pir.serialization import from_bytes, to_bytes
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.safetensors import CheckpointError, load_file, save_file

__all__ = ["LoadedProgram", "load_program", "save_program"]

Array = np.ndarray[Any, Any]
_KEY = "argosy.program"


class LoadedProgram:
    """A program and the arrays of its states by name."""

    __slots__ = ("program", "states")

    def __init__(self, program: Program, states: dict[str, Array]) -> None:
        self.program = program
        self.states = states


def save_program(program: Program, states: Mapping[str, Array], path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Write ``program`` and the arrays of its states; returns the two files' paths.

    Raises :class:`ProgramFileError` when a state is missing or does not fit its type. Existing files are replaced only
    by complete ones.
    """
    base = Path(path)
    wanted = {state.name: _check_state(state.name, state.type, states.get(state.name)) for state in program.states}
    data = to_bytes(program)
    program_file, weight_file = base.with_name(base.name + ".pir"), base.with_name(base.name + ".safetensors")
    save_file(wanted, weight_file, {_KEY: hashlib.sha256(data).hexdigest()})
    _write_atomically(program_file, data)
    return program_file, weight_file


def load_program(path: str | os.PathLike[str]) -> LoadedProgram:
    """Read what :func:`save_program` wrote, from the path given there.

    Raises :class:`ProgramFileError` naming the file when one is missing, damaged, or belongs to another export.
    """
    base = Path(path)
    program_file, weight_file = base.with_name(base.name + ".pir"), base.with_name(base.name + ".safetensors")
    data = _read(program_file)
    try:
        program = from_bytes(data)
        program.verify()
    except (IRError, *FOREIGN) as error:  # an operator's rule fails in its own way on attributes that nobody wrote
        raise ProgramFileError(f"{program_file} is not a program that can be loaded: {error}") from error
    found = _read_states(weight_file, hashlib.sha256(data).hexdigest(), program_file)
    states = {s.name: _check_state(s.name, s.type, found.get(s.name), weight_file) for s in program.states}
    unknown = found.keys() - states.keys()
    if unknown:
        raise ProgramFileError(f"{weight_file} holds {', '.join(sorted(unknown))}, which {program_file} does not have")
    return LoadedProgram(program, states)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ProgramFileError(f"cannot read {path}: {error.strerror or error}") from error


def _read_states(path: Path, digest: str, program_file: Path) -> dict[str, Array]:
    try:
        from argosy_tensorcore.safetensors import SafetensorsFile

        with SafetensorsFile(path) as file:
            recorded = dict(file.metadata or {}).get(_KEY)
        states = load_file(path)
    except (OSError, CheckpointError) as error:
        raise ProgramFileError(f"cannot read the weights {path}: {error}") from error
    if recorded != digest:
        raise ProgramFileError(f"{path} and {program_file} come from different exports")
    return states


def _check_state(name: str, type: Any, array: Array | None, source: Path | None = None) -> Array:
    where = f" in {source}" if source else ""
    if array is None:
        raise ProgramFileError(f"state {name!r} ({type}) is missing{where}")
    assert isinstance(type, TensorType)
    dtype = as_dtype(array.dtype).name
    fits = len(array.shape) == len(type.shape) and all(
        not isinstance(n, int) or n == m for n, m in zip(type.shape, array.shape, strict=True)
    )
    if dtype != type.dtype or not fits:
        raise ProgramFileError(f"state {name!r}{where} is {dtype} {list(array.shape)}, the program expects {type}")
    return array


def _write_atomically(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
