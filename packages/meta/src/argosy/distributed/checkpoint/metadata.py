"""What a checkpoint's ``<id>.metadata.json`` says: where each part of each tensor lies, and the plain values.

The file is plain data and is believed only as far as it was checked.
"""

from __future__ import annotations

import json
import os
import re
from math import prod
from typing import Any, NamedTuple

from argosy_tensorcore.dtype import as_dtype
from argosy_tensorcore.safetensors import CheckpointError

__all__ = ["SAVE", "Box", "Entry", "Metadata", "Piece", "ids_in", "metadata_file", "parse", "part_file", "part_of"]

_FORMAT, _VERSION = "argosy.distributed.checkpoint", 1
SAVE = "argosy.save"
"""The key under which a part file names the save that it belongs to."""

_ID = re.compile(r"(\d+)\.metadata\.json")
_PART = re.compile(r"\d+_(\d+)(?:\.([0-9a-f]+))?\.(?:safetensors|failed)")


class Box(NamedTuple):
    """A part of a tensor: where it begins and how large it is along each axis."""

    offset: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def common(self, other: Box) -> Box | None:
        """What it shares with ``other``, a part of the same tensor; None where that is empty."""
        begin = tuple(map(max, self.offset, other.offset))
        ends = [
            min(a + n, b + m) for a, n, b, m in zip(self.offset, self.shape, other.offset, other.shape, strict=True)
        ]
        shape = tuple(end - start for start, end in zip(begin, ends, strict=True))
        return Box(begin, shape) if all(n > 0 for n in shape) else None

    def slices_in(self, other: Box) -> tuple[slice, ...]:
        """The slices that cut it out of ``other``, which contains it."""
        return tuple(slice(a - b, a - b + n) for a, n, b in zip(self.offset, self.shape, other.offset, strict=True))


class Piece(NamedTuple):
    """A part, the file that has it, and under which name: the tensor's where the file has no other part of it."""

    file: str
    box: Box
    name: str


class Entry(NamedTuple):
    """A tensor: its dtype's name, global shape, and parts, none of which overlap."""

    dtype: str
    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]


class Metadata(NamedTuple):
    """All of it. ``save`` is the token that the part files of the same save carry; ``paths`` gives for each key the
    keys of the nested dictionaries that lead to it.
    """

    save: str
    tensors: dict[str, Entry]
    values: dict[str, Any]
    paths: dict[str, list[str]]

    def to_json(self) -> str:
        """The text of the file."""
        tensors = {
            key: {
                "dtype": entry.dtype,
                "shape": list(entry.shape),
                "pieces": [[p.file, list(p.box.offset), list(p.box.shape), p.name] for p in entry.pieces],
            }
            for key, entry in self.tensors.items()
        }
        fields = {"format": _FORMAT, "version": _VERSION, "save": self.save, "tensors": tensors}
        return json.dumps({**fields, "values": self.values, "paths": self.paths})


def metadata_file(unique_id: int) -> str:
    """The name of a checkpoint's metadata."""
    return f"{unique_id}.metadata.json"


def part_file(rank: int, unique_id: int, save: str) -> str:
    """The name of the file with a rank's parts; each save has its own, so that none writes over another's."""
    return f"{rank}_{unique_id}.{save}.safetensors"


def part_of(name: str) -> tuple[int, str] | None:
    """The checkpoint's number and the save of a file with parts; None for other files."""
    found = _PART.fullmatch(name)
    return (int(found[1]), found[2] or "") if found else None


def ids_in(path: str) -> list[int]:
    """The checkpoints of a folder, ascending. Raises FileNotFoundError where there is no such folder."""
    return sorted(int(found[1]) for name in os.listdir(path) if (found := _ID.fullmatch(name)))


def parse(text: str, path: str) -> Metadata:
    """The metadata in a file's text. Raises CheckpointError, which names ``path``, for anything unexpected."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise CheckpointError(f"{path} is not the metadata of a checkpoint: its format should be {_FORMAT!r}")
    if found.get("version") != _VERSION:
        raise CheckpointError(f"{path} is of version {found.get('version')!r}; this library reads version {_VERSION}")
    try:
        tensors = {key: _entry(key, value) for key, value in found["tensors"].items()}
        paths = {key: [str(part) for part in parts] for key, parts in found["paths"].items()}
        return Metadata(str(found["save"]), tensors, dict(found["values"]), paths)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CheckpointError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def _entry(key: str, found: Any) -> Entry:
    shape = _sizes(found["shape"])
    pieces = []
    for file, offset, size, *name in found["pieces"]:
        box = Box(_sizes(offset), _sizes(size))
        if not part_of(file):
            raise ValueError(f"{file!r} is not the name of a file with parts")
        if not len(shape) == len(box.offset) == len(box.shape):
            raise ValueError(f"a part {box} of a tensor of shape {list(shape)}")
        pieces.append(Piece(file, box, str(name[0]) if name else key))
    return Entry(as_dtype(found["dtype"]).name, shape, tuple(pieces))


def _sizes(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list) or not all(type(n) is int and 0 <= n < 1 << 63 for n in values):
        raise ValueError(f"{values!r} are not sizes")
    return tuple(values)
