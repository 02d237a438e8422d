"""States of an export that lie in other safetensors files, such as those that a model was loaded from: the export names
file and tensor, and they are mapped from there."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy_infer.errors import ProgramFileError
from argosy_tensorcore.safetensors import CheckpointError, SafetensorsFile

__all__ = ["TensorSource", "describe_sources", "held_by", "read_sources"]

Array = np.ndarray[Any, Any]
_SAMPLE = 4096
"""Bytes of a tensor by which one is recognised that has been changed since."""


@dataclass(frozen=True)
class TensorSource:
    """``tensor`` of the safetensors file ``file``; its axes exchanged where ``turned``."""

    file: str
    tensor: str
    turned: bool = False

    def read(self) -> Array:
        """The array, mapped: pages are read when touched, written to in private. Raises CheckpointError, OSError."""
        array: Array = SafetensorsFile(self.file, writable=True)[self.tensor]
        return array.T if self.turned else array

    def sample(self) -> str:
        """A hash of the tensor's first bytes."""
        array = SafetensorsFile(self.file)[self.tensor]
        return hashlib.sha256(array.reshape(-1)[: _SAMPLE // array.itemsize].tobytes()).hexdigest()


def held_by(sources: Mapping[str, TensorSource], states: Mapping[str, Array]) -> dict[str, TensorSource]:
    """Those of ``sources`` that hold the bytes of the state of their name."""
    found = {}
    for name in states.keys() & sources.keys():
        theirs, own = sources[name].read(), states[name]
        if theirs.dtype == own.dtype and theirs.shape == own.shape and theirs.tobytes() == own.tobytes():
            found[name] = sources[name]
    return found


def describe_sources(sources: Mapping[str, TensorSource], folder: str) -> str:
    """The text that :func:`read_sources` reads, for an export in ``folder``."""
    return json.dumps(
        {n: [os.path.relpath(s.file, folder), s.tensor, s.turned, s.sample()] for n, s in sources.items()}
    )


def read_sources(text: str, folder: str, where: str) -> dict[str, Array]:
    """The arrays that the export ``where`` in ``folder`` names. Raises ProgramFileError for a text that is none, and
    naming the file that is missing, or has another tensor."""
    try:
        table = json.loads(text)
        rows = {name: (str(file), str(tensor), bool(t), str(mark)) for name, (file, tensor, t, mark) in table.items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ProgramFileError(f"{where} does not say which files its states are in: {error}") from None
    found = {}
    for name, (file, tensor, turned, mark) in rows.items():
        path = os.path.normpath(os.path.join(folder, file))
        source = TensorSource(path, tensor, turned)
        try:
            if not path.endswith(".safetensors"):
                raise CheckpointError("no safetensors file")
            if source.sample() != mark:
                raise CheckpointError(f"{tensor} is another one than that of the export")
            found[name] = source.read()
        except (OSError, CheckpointError) as error:
            raise ProgramFileError(f"{where}: state {name!r} lies in {path}: {error}") from error
    return found
