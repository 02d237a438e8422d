"""The binary form of programs.

A file is ``PIR\\x1a``, the format's major and minor version (a byte each), sections, and a CRC-32 of all
before it. A section is a tag, the length of its content, and the content. A reader skips sections it does
not know, so files of a newer minor version can be read; a newer major version is refused. All numbers are
LEB128 varints.

Strings, types, attribute values and locations are tables of distinct entries that refer only to earlier
ones; the operations refer to the tables. Reading executes nothing, checks every count against what is left
before allocating, and lets nothing but :class:`FormatError` out.
"""

from __future__ import annotations

from zlib import crc32

from argosy_pir.binary.body import read_program, write_program
from argosy_pir.binary.format import MAGIC, MAJOR, MINOR, Sections, read_varint, write_varint
from argosy_pir.errors import FormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from argosy_pir.program import Program

_HEADER = len(MAGIC) + 2
_CHECKSUM = 4


def to_bytes(program: Program) -> bytes:
    """``program`` in binary, with locations and name hints.

    Raises ``FormatError`` for a program that uses a value before its definition.
    """
    out = bytearray(MAGIC + bytes((MAJOR, MINOR)))
    for tag, content in sorted(write_program(program).items()):
        write_varint(out, tag)
        write_varint(out, len(content))
        out += content
    return bytes(out + crc32(out).to_bytes(_CHECKSUM, "little"))


def read_bytes(make: Callable[[str], Program], data: bytes) -> Program:
    """The program in ``data``, which ``make`` begins by its name; see `argosy_pir.from_bytes`."""
    data = bytes(data)
    if data[: len(MAGIC)] != MAGIC:
        raise FormatError(f"these bytes are no program: they begin with {data[:4]!r}, not {MAGIC!r}")
    if len(data) < _HEADER + _CHECKSUM:
        raise FormatError(f"a program file of {len(data)} bytes is truncated")
    major, minor = data[_HEADER - 2], data[_HEADER - 1]
    if major != MAJOR:
        raise FormatError(f"the file has format version {major}.{minor}; this version of argosy_pir reads {MAJOR}.x")
    if crc32(data[:-_CHECKSUM]) != int.from_bytes(data[-_CHECKSUM:], "little"):
        raise FormatError("the checksum does not match: the file is truncated or damaged")
    return decode_sections(make, data[_HEADER:-_CHECKSUM])


def decode_sections(make: Callable[[str], Program], data: bytes) -> Program:
    """The program in the sections of a file, between header and checksum; raises ``FormatError``."""
    try:
        return read_program(make, _split(data))
    except FormatError:
        raise
    except (IndexError, ValueError, TypeError, OverflowError, NotImplementedError, RecursionError) as error:
        raise FormatError(f"the file does not hold a program: {error}") from error


def _split(data: bytes) -> Sections:
    sections: Sections = {}
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        length, at = read_varint(data, at)
        if length > len(data) - at:
            raise FormatError(f"section {tag} claims {length} bytes, but {len(data) - at} are left")
        if tag in sections:
            raise FormatError(f"section {tag} occurs twice")
        sections[tag] = data[at : at + length]
        at += length
    return sections
