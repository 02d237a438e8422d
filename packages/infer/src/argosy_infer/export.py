"""Programs with their weights on disk: ``<path>.pir`` (binary IR) and ``<path>.safetensors`` (the states by name).

The weights name their program by checksum, so that a program never runs with weights of another export, and the files
are replaced at once, by renaming the program (see `argosy_hwadapt.files`). Loading executes nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from argosy_hwadapt.files import content_key, member_path, write_files
from argosy_infer.errors import ProgramFileError
from argosy_infer.sources import TensorSource, describe_sources, held_by, read_sources
from argosy_phi_ops.errors import FOREIGN
from argosy_pir.errors import IRError
from argosy_pir.program import Program, from_bytes
from argosy_pir.serialization import to_bytes
from argosy_pir.types import TensorType
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.safetensors import CheckpointError, SafetensorsFile, file_parts
from argosy_tensorcore.wait_notice import announce_wait, count_steps

__all__ = ["LoadedProgram", "load_methods", "load_program", "save_program"]

Array = np.ndarray[Any, Any]
_KEY = "argosy.program"
_EXPORT = "export"
_SOURCES = "argosy.sources"


class LoadedProgram:
    """A program and the arrays of its states by name; ``export`` says which one it is from."""

    __slots__ = ("export", "program", "states")

    def __init__(self, program: Program, states: dict[str, Array], export: str = "") -> None:
        self.program = program
        self.states = states
        self.export = export


def save_program(
    program: Program,
    states: Mapping[str, Array],
    path: str | os.PathLike[str],
    methods: Mapping[str, LoadedProgram] | None = None,
    sources: Mapping[str, TensorSource] | None = None,
) -> tuple[Path, Path]:
    """Write ``program`` and the arrays of its states; returns the two files' paths.

    methods: programs of the same model, which go into ``<path>.<method>.pir`` and ``.safetensors``. All files are
    replaced at once: whenever this is interrupted, :func:`load_program` gives the old export or the new one. sources:
    safetensors files that hold states already; these are named, relative to the export, and not written. Raises
    :class:`ProgramFileError` when a state is missing or does not fit its type, and for a path that would replace one of
    ``sources``, OSError from the disk.
    """
    base = Path(path)
    members: dict[str, Iterable[bytes | memoryview]] = {}
    whole = {"": LoadedProgram(program, _checked_states(program, states))}
    for name, method in (methods or {}).items():
        whole[f".{name}"] = LoadedProgram(method.program, _checked_states(method.program, method.states))
    _check_sources(sources or {}, [_file(base, suffix, ".safetensors") for suffix in whole])
    export = _digest(whole)
    written = {suffix: _bytes_with_mark(loaded.program, export) for suffix, loaded in whole.items()}
    for suffix, data in list(written.items())[1:]:
        members[_file(base, suffix, ".pir")] = [data]
    for suffix, data in written.items():
        weights = _file(base, suffix, ".safetensors")
        parts = _weight_parts(whole[suffix].states, hashlib.sha256(data).hexdigest(), base, sources or {})
        members[weights] = count_steps(parts, "tensors")
    program_file = _file(base, "", ".pir")
    with announce_wait(f"saving {program_file}"):
        write_files(program_file, [written[""]], members)
    return Path(program_file), Path(_file(base, "", ".safetensors"))


def _check_sources(sources: Mapping[str, TensorSource], targets: Sequence[str]) -> None:
    """An export in place of a file that it names would be the end of both."""
    held = {os.path.realpath(source.file) for source in sources.values()}
    for target in targets:
        if os.path.realpath(target) in held:
            raise ProgramFileError(f"{target} holds weights that the export names; expected a path of another name")


def _weight_parts(
    states: Mapping[str, Array], digest: str, base: Path, sources: Mapping[str, TensorSource]
) -> Sequence[bytes | memoryview]:
    """The bytes of a weight file: states that no other file holds, and where the others are."""
    elsewhere, metadata = held_by(sources, states), {_KEY: digest}
    if elsewhere:
        metadata[_SOURCES] = describe_sources(elsewhere, os.fspath(base.parent))
    return file_parts({name: array for name, array in states.items() if name not in elsewhere}, metadata)


def _file(base: Path, suffix: str, extension: str) -> str:
    return str(base.with_name(base.name + suffix + extension))


def _checked_states(program: Program, states: Mapping[str, Array]) -> dict[str, Array]:
    return {state.name: _check_state(state.name, state.type, states.get(state.name)) for state in program.states}


def _digest(programs: Mapping[str, LoadedProgram]) -> str:
    """A hash of all that an export has. Each program names it, so that a program differs where any weights do."""
    digest = hashlib.sha256()
    for suffix, loaded in programs.items():
        digest.update(suffix.encode() + b"\0" + to_bytes(loaded.program))
        for part in file_parts(loaded.states):
            digest.update(part)
    return digest.hexdigest()


def _bytes_with_mark(program: Program, export: str) -> bytes:
    """The program's bytes with the export that they are of."""
    program.attributes[_EXPORT] = export
    try:
        return to_bytes(program)
    finally:
        del program.attributes[_EXPORT]


def load_program(path: str | os.PathLike[str]) -> LoadedProgram:
    """Read what :func:`save_program` wrote, from the path given there.

    Raises :class:`ProgramFileError` naming the file when one is missing, damaged, or belongs to another export.
    """
    program_file = Path(_file(Path(path), "", ".pir"))
    with announce_wait(f"loading {program_file}"):
        data = _read(program_file)
        while True:
            try:
                return _load_program(program_file, data, content_key([data]))
            except ProgramFileError:
                before, data = data, _read(program_file)
                if data == before:  # else another process has replaced it meanwhile
                    raise


def load_methods(
    path: str | os.PathLike[str], loaded: LoadedProgram, methods: Sequence[str]
) -> dict[str, LoadedProgram]:
    """The programs of methods that :func:`save_program` wrote beside ``loaded``, which :func:`load_program` found at
    ``path``. Raises as that one does.
    """
    base = Path(path)
    key = content_key([_read(Path(_file(base, "", ".pir")))])
    found = {}
    for name in methods:
        program_file = Path(_file(base, f".{name}", ".pir"))
        data = _read(Path(member_path(program_file, key)))
        found[name] = _load_program(program_file, data, key)
        if found[name].export != loaded.export:
            raise ProgramFileError(f"{program_file} and {_file(base, '', '.pir')} come from different exports")
    return found


def _load_program(program_file: Path, data: bytes, key: str) -> LoadedProgram:
    """The program in ``data``, with its weights; ``key`` is the content key of the file that decides."""
    weight_file = program_file.with_suffix(".safetensors")
    try:
        program = from_bytes(data)
        program.verify()
    except (IRError, *FOREIGN) as error:  # an operator's rule fails in its own way on attributes that nobody wrote
        raise ProgramFileError(f"{program_file} is not a program that can be loaded: {error}") from error
    found = _read_states(weight_file, key, hashlib.sha256(data).hexdigest(), program_file)
    states = {s.name: _check_state(s.name, s.type, found.get(s.name), weight_file) for s in program.states}
    unknown = found.keys() - states.keys()
    if unknown:
        raise ProgramFileError(f"{weight_file} holds {', '.join(sorted(unknown))}, which {program_file} does not have")
    return LoadedProgram(program, states, str(program.attributes.pop(_EXPORT, "")))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ProgramFileError(f"cannot read {path}: {error.strerror or error}") from error


def _read_states(path: Path, key: str, digest: str, program_file: Path) -> dict[str, Array]:
    """The arrays of the weights that name the program of this digest: staged ones where a save was interrupted."""
    staged = member_path(path, key)
    for file in dict.fromkeys((os.fspath(path), staged)):
        try:
            with SafetensorsFile(file) as weights:
                if weights.metadata.get(_KEY) == digest:
                    found = {name: np.array(weights[name]) for name in weights}
                    if _SOURCES in weights.metadata:
                        folder = os.fspath(program_file.parent)
                        found |= read_sources(weights.metadata[_SOURCES], folder, os.fspath(path))
                    return found
        except (OSError, CheckpointError) as error:
            if file == staged:
                raise ProgramFileError(f"cannot read the weights {path}: {error}") from error
    raise ProgramFileError(f"{path} and {program_file} come from different exports")


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
