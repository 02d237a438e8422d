"""Reading parts of tensors from a checkpoint's files: only the rows that are asked for are touched."""

from __future__ import annotations

import os
from types import TracebackType
from typing import NamedTuple

import numpy as np

from argosy.distributed.checkpoint.metadata import SAVE, Box, Metadata
from argosy.distributed.checkpoint.parts import Array
from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.safetensors import CheckpointError, SafetensorsFile

__all__ = ["Reader", "Step"]


class Step(NamedTuple):
    """Copy ``common`` of the part ``held``, which ``file`` has as ``name``."""

    file: str
    name: str
    held: Box
    common: Box


class Reader:
    """The open files of one checkpoint, mapped into memory. A context manager."""

    def __init__(self, folder: str, metadata: Metadata) -> None:
        self.folder, self.metadata = folder, metadata
        self._files: dict[str, SafetensorsFile] = {}

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for file in self._files.values():
            file.close()

    def plan(self, key: str, box: Box) -> list[Step]:
        """What gives the part ``box`` of tensor ``key``; the files are opened and checked.

        Raises CheckpointError naming the tensor where the checkpoint does not have all of the part, or the file that
        is not what the metadata says.
        """
        pieces = self.metadata.tensors[key].pieces
        steps = [Step(p.file, p.name, p.box, common) for p in pieces if (common := p.box.common(box)) is not None]
        if sum(step.common.size for step in steps) != box.size:
            raise CheckpointError(f"{self.folder}: parts of {key!r} do not make up {list(box.shape)} at {box.offset}")
        for step in steps:
            self._check(key, step)
        return steps

    def read(self, key: str, box: Box, steps: list[Step]) -> Array:
        """The values of the part, in an array of its own."""
        made: Array = np.empty(box.shape, as_dtype(self.metadata.tensors[key].dtype).numpy)
        for step in steps:
            made[step.common.slices_in(box)] = self._file(step.file)[step.name][step.common.slices_in(step.held)]
        return made

    def _check(self, key: str, step: Step) -> None:
        file, entry = self._file(step.file), self.metadata.tensors[key]
        info = file.infos.get(step.name)
        if info is None or info.shape != step.held.shape or info.dtype.name != entry.dtype:
            found = "nothing" if info is None else f"{info.dtype.name} {list(info.shape)}"
            raise CheckpointError(
                f"{file.path} has {found} of {key!r}; the metadata says {entry.dtype} {list(step.held.shape)}"
            )

    def _file(self, name: str) -> SafetensorsFile:
        found = self._files.get(name)
        if found is None:
            found = self._files[name] = self._open_file(os.path.join(self.folder, name))
        return found

    def _open_file(self, path: str) -> SafetensorsFile:
        try:
            file = SafetensorsFile(path)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{path} is missing: its save did not end, or this rank does not see the folder of who wrote it"
            ) from None
        if file.metadata.get(SAVE) != self.metadata.save:
            file.close()
            raise CheckpointError(f"{path} is of another save than the metadata beside it")
        return file
