"""Reading and writing safetensors files: named arrays as plain data.

A file is the header's length (8 bytes, little-endian), a JSON header that gives each tensor's dtype, shape
and byte range, and the bytes. Nothing in a file is believed before it is checked against the file's size, and
nothing is allocated before that. Writing is atomic: readers see the old file or the new one.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any, BinaryIO

import numpy as np

from argosy_hwadapt.files import write_file
from argosy_tensorcore.dtype import ALL_DTYPES, DType, as_dtype
from argosy_tensorcore.storage import Array
from argosy_tensorcore.wait_notice import count_steps

_PREFIX = {"i": "I", "u": "U", "f": "F", "c": "C"}
_SPECIAL = {"bool": "BOOL", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}
# The format's names; C128 is not among them yet, so complex128 files are for this reader only.
NAMES = {d: _SPECIAL.get(d.name) or f"{_PREFIX[d.kind]}{8 * d.itemsize}" for d in ALL_DTYPES}
_DTYPES = {name: dtype for dtype, name in NAMES.items()}
_MAX_HEADER = 100_000_000  # bytes, as the format's own library has it
_MAX_RANK = 32
_ALIGNMENT = 8


class CheckpointError(ValueError):
    """A file that is not what it says it is. The message names the file and, if any, the tensor."""


class TensorInfo:
    """Where a tensor lies: dtype, shape, and its first byte and one past its last within the file."""

    __slots__ = ("dtype", "end", "shape", "start")

    def __init__(self, dtype: DType, shape: tuple[int, ...], start: int, end: int) -> None:
        self.dtype, self.shape, self.start, self.end = dtype, shape, start, end

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor."""
        return self.end - self.start


# ---- reading


def load_file(path: str | os.PathLike[str], names: Iterable[str] | None = None) -> dict[str, Array]:
    """The tensors of a file (all, or those named) as writable arrays of their own. Raises CheckpointError."""
    with open(path, "rb") as file:
        infos, _ = _read_header(file, os.fspath(path))
        wanted = list(infos) if names is None else list(names)
        return {name: _read(file, os.fspath(path), name, _find(infos, os.fspath(path), name)) for name in wanted}


class SafetensorsFile:
    """A file's tensors, mapped into memory and read when touched. A mapping of names to read-only arrays.

    With ``writable`` the arrays can be written to: pages become private copies then, and the file stays as it is. The
    arrays keep the mapping alive after ``close``. infos: TensorInfo of each name; metadata: the strings saved with it.
    """

    def __init__(self, path: str | os.PathLike[str], writable: bool = False) -> None:
        self.path = os.fspath(path)
        with open(self.path, "rb") as file:
            self.infos, self.metadata = _read_header(file, self.path)
            access = mmap.ACCESS_COPY if writable else mmap.ACCESS_READ
            self._map: mmap.mmap | None = mmap.mmap(file.fileno(), 0, access=access)

    def __getitem__(self, name: str) -> Array:
        info = _find(self.infos, self.path, name)
        if self._map is None:
            raise ValueError(f"{self.path} is closed")
        raw = np.frombuffer(self._map, np.uint8, info.nbytes, info.start) if info.nbytes else np.empty(0, np.uint8)
        if info.nbytes and raw.ctypes.data % min(info.dtype.itemsize, 8):
            raw = raw.copy()  # some writers do not align
        return _as_typed(raw, self.path, name, info)

    def __iter__(self) -> Iterator[str]:
        return iter(self.infos)

    def __len__(self) -> int:
        return len(self.infos)

    def __contains__(self, name: object) -> bool:
        return name in self.infos

    def keys(self) -> Iterable[str]:
        """The tensors' names, in the order of their data."""
        return self.infos.keys()

    def close(self) -> None:
        """Let go of the mapping; it ends when the last array from it does."""
        self._map = None

    def __enter__(self) -> SafetensorsFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _find(infos: dict[str, TensorInfo], path: str, name: str) -> TensorInfo:
    info = infos.get(name)
    if info is None:
        raise CheckpointError(f"{path} has no tensor {name!r}; it has {len(infos)}, such as {list(infos)[:5]}")
    return info


def _read(file: BinaryIO, path: str, name: str, info: TensorInfo) -> Array:
    raw = np.empty(info.nbytes, np.uint8)
    file.seek(info.start)
    if file.readinto(raw.data) != info.nbytes:  # type: ignore[attr-defined]
        raise CheckpointError(f"{path}: tensor {name!r} is cut short")
    return _as_typed(raw, path, name, info)


def _as_typed(raw: Array, path: str, name: str, info: TensorInfo) -> Array:
    if info.dtype.kind == "b" and raw.size and raw.max() > 1:
        raise CheckpointError(f"{path}: tensor {name!r} is BOOL but holds bytes other than 0 and 1")
    return raw.view(info.dtype.numpy).reshape(info.shape)


def _read_header(file: BinaryIO, path: str) -> tuple[dict[str, TensorInfo], dict[str, str]]:
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or not 2 <= length <= min(size - 8, _MAX_HEADER):
        raise CheckpointError(f"{path} is not a safetensors file, or is cut short: {size} bytes, header of {length}")
    text = file.read(length)
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=lambda pairs: _unique(pairs, path))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise CheckpointError(f"{path}: the header is not JSON: {error}") from error
    except CheckpointError:
        raise
    except ValueError as error:  # a number of thousands of digits
        raise CheckpointError(f"{path}: the header holds an unreadable number: {error}") from error
    if not isinstance(header, dict):
        raise CheckpointError(f"{path}: the header must be a JSON object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise CheckpointError(f"{path}: __metadata__ must map strings to strings")
    infos = {name: _info(entry, path, name, 8 + length) for name, entry in header.items()}
    return _checked_layout(infos, path, 8 + length, size), metadata


def _unique(pairs: list[tuple[str, Any]], path: str) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise CheckpointError(f"{path}: {twice!r} appears twice in the header")
    return found


def _is_size(x: object) -> bool:
    return type(x) is int and 0 <= x < 1 << 63


def _info(entry: Any, path: str, name: str, data_start: int) -> TensorInfo:
    """One header entry, checked in itself."""
    where = f"{path}: tensor {name!r}"
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise CheckpointError(f"{where} must have exactly dtype, shape and data_offsets")
    dtype = _DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise CheckpointError(f"{where} has unknown dtype {entry['dtype']!r}; known are {', '.join(_DTYPES)}")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or len(shape) > _MAX_RANK or not all(map(_is_size, shape)):
        raise CheckpointError(f"{where} has shape {shape!r}; expected at most {_MAX_RANK} sizes >= 0")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_size, offsets)):
        raise CheckpointError(f"{where} has data_offsets {offsets!r}; expected [begin, end]")
    begin, end = offsets
    needed = prod(shape) * dtype.itemsize
    if end - begin != needed:
        raise CheckpointError(f"{where} spans bytes {begin} to {end}, but {entry['dtype']} {shape} needs {needed}")
    if prod(size or 1 for size in shape) * dtype.itemsize >= 1 << 63:
        raise CheckpointError(f"{where} has shape {shape}, beyond what an array can have")
    return TensorInfo(dtype, tuple(shape), data_start + begin, data_start + end)


def _checked_layout(infos: dict[str, TensorInfo], path: str, start: int, size: int) -> dict[str, TensorInfo]:
    """The entries in the order of their data, which must fill the rest of the file without overlap or gap."""
    ordered = sorted(infos.items(), key=lambda item: (item[1].start, item[1].end))
    for name, info in ordered:
        if info.end > size:
            raise CheckpointError(f"{path} is cut short: tensor {name!r} ends at byte {info.end} of a file of {size}")
        if info.start != start:
            what = "overlaps the one before it" if info.start < start else "leaves a gap before it"
            raise CheckpointError(f"{path}: tensor {name!r} {what} (begins at byte {info.start}, expected {start})")
        start = info.end
    if start != size:
        raise CheckpointError(f"{path} has {size - start} bytes after its last tensor")
    return dict(ordered)


# ---- writing


def save_file(
    tensors: Mapping[str, Any], path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays (or tensors) and string metadata to a file, atomically: when anything fails, what was
    there stays.

    Raises TypeError for names, metadata or dtypes that the format cannot hold, and OSError when the disk will
    not have it.
    """
    write_file(path, count_steps(file_parts(tensors, metadata), "tensors"))


def file_parts(tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> list[bytes | memoryview]:
    """What :func:`save_file` writes, in order. Raises TypeError as it does."""
    arrays = {_checked_name(name): _as_native(name, value) for name, value in tensors.items()}
    # Wide elements first, so that every tensor is aligned to its element size.
    ordered = sorted(arrays.items(), key=lambda item: (-as_dtype(item[1].dtype).itemsize, item[0]))
    header = _header(ordered, metadata)
    return [header, *(array.reshape(-1).view(np.uint8).data for _, array in ordered)]


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or name == "__metadata__":
        raise TypeError(f"a tensor's name must be a string other than '__metadata__', not {name!r}")
    return name


def _as_native(name: str, value: Any) -> Array:
    """value as a contiguous array in the file's byte order."""
    payload = getattr(value, "payload", None)
    a = np.asarray(value) if payload is None else payload.to_host()
    try:
        dtype = as_dtype(a.dtype)
    except TypeError as error:
        raise TypeError(f"cannot save {name!r}: {error}") from error
    return np.asarray(a, dtype.numpy, order="C").reshape(a.shape)


def _header(ordered: list[tuple[str, Array]], metadata: Mapping[str, str] | None) -> bytes:
    fields: dict[str, Any] = {}
    if metadata:
        if not all(isinstance(key, str) and isinstance(value, str) for key, value in metadata.items()):
            raise TypeError("safetensors metadata maps strings to strings")
        fields["__metadata__"] = dict(metadata)
    end = 0
    for name, array in ordered:
        begin, end = end, end + array.nbytes
        dtype = NAMES[as_dtype(array.dtype)]
        fields[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text
