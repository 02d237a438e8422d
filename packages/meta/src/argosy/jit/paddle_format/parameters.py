"""Paddle's ``.pdiparams``: the parameters of a program one after the other, in the order of their names.

Each is: u32 version 0; u64 count of LoD levels, each u64 bytes and data; u32 version 0; i32 length of a protobuf
description (field 1: element type, field 2: sizes); the elements. All little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from argosy_infer.errors import ProgramFileError
from argosy_tensorcore.dtype import as_dtype

__all__ = ["read_parameters"]

_TYPES = {
    0: "bool", 1: "int16", 2: "int32", 3: "int64", 4: "float16", 5: "float32", 6: "float64", 20: "uint8", 21: "int8",
    22: "bfloat16", 23: "complex64", 24: "complex128",
}  # fmt: skip
_RANK = 16


class _Reader:
    """A cursor that never reads beyond the data, so that nothing is allocated for what is not there."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name, self.at = memoryview(data), name, 0

    def take(self, count: int, what: str) -> memoryview:
        """The next ``count`` bytes."""
        left = len(self.data) - self.at
        if not 0 <= count <= left:
            raise ProgramFileError(f"{self.name}: {what} takes {count} bytes, {left} are left")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, kind: str, what: str) -> int:
        """The next integer, of a ``struct`` format."""
        found: int = struct.unpack("<" + kind, self.take(struct.calcsize("<" + kind), what))[0]
        return found


def read_parameters(data: bytes, names: Sequence[str], name: str) -> dict[str, Any]:
    """The arrays of ``names`` (taken in sorted order) that the file ``name`` holds.

    Raises ProgramFileError where the file is damaged, claims more than it holds, or holds another number of arrays.
    """
    reader = _Reader(data, name)
    found = {each: _array(reader, each) for each in sorted(names)}
    if reader.at != len(data):
        raise ProgramFileError(f"{name}: {len(data) - reader.at} bytes follow the {len(found)} parameters")
    return found


def _array(reader: _Reader, name: str) -> Any:
    _expect_zero(reader.number("I", f"the version of {name}"), reader, name)
    levels = reader.number("Q", f"the LoD of {name}")
    if levels > _RANK:
        raise ProgramFileError(f"{reader.name}: {name} claims {levels} LoD levels")
    for _ in range(levels):
        reader.take(reader.number("Q", f"the LoD of {name}"), f"the LoD of {name}")
    _expect_zero(reader.number("I", f"the version of {name}"), reader, name)
    described = bytes(reader.take(reader.number("i", f"the type of {name}"), f"the type of {name}"))
    code, shape = _description(described, reader.name, name)
    dtype = as_dtype(_TYPES[code]).numpy
    elements = reader.take(prod(shape) * dtype.itemsize, f"{name} of shape {list(shape)}")
    return np.frombuffer(elements, dtype).reshape(shape).copy()


def _expect_zero(version: int, reader: _Reader, name: str) -> None:
    if version:
        raise ProgramFileError(f"{reader.name}: {name} has version {version}, 0 is read; the file may be damaged")


def _description(data: bytes, file: str, name: str) -> tuple[int, tuple[int, ...]]:
    """Element type and sizes from the protobuf message ``TensorDesc``."""
    code, sizes, at = -1, [], 0
    while at < len(data):
        tag, at = _varint(data, at, file)
        if tag == 0x12:  # packed sizes
            length, at = _varint(data, at, file)
            end = at + length
            if end > len(data):
                raise ProgramFileError(f"{file}: the type of {name} is damaged")
            while at < end:
                size, at = _varint(data, at, file)
                sizes.append(size)
            continue
        value, at = _varint(data, at, file)
        if tag == 0x08:
            code = value
        elif tag == 0x10:
            sizes.append(value)
        else:
            raise ProgramFileError(f"{file}: the type of {name} is damaged")
    if code not in _TYPES or len(sizes) > _RANK or any(n >= 1 << 63 for n in sizes):
        raise ProgramFileError(f"{file}: {name} has element type {code} and sizes {sizes[:_RANK]}, which are not read")
    return code, tuple(sizes)


def _varint(data: bytes, at: int, file: str) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ProgramFileError(f"{file}: the type of a parameter is damaged")
