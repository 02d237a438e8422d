"""Numbers and sections of the binary form."""

from __future__ import annotations

from argosy_pir.errors import FormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    Sections: TypeAlias = "dict[int, bytes]"
else:
    Sections = dict

MAGIC = b"PIR\x1a"
MAJOR = 1
MINOR = 1
MAX_BITS = 64

STRINGS, TYPES, ATTRIBUTES, BLOB, LOCATIONS, DIALECTS, PROGRAM, ANNOTATIONS = range(1, 9)
"""Every file has all of them but the last, which came with version 1.1."""


def write_varint(out: bytearray, number: int) -> None:
    """Append ``number`` (not negative): seven bits a byte, low ones first, the top bit says that more
    follow."""
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def write_varints(numbers: Iterable[int]) -> bytes:
    """All ``numbers`` one after the other."""
    out = bytearray()
    for number in numbers:
        if number < 128:
            out.append(number)
        else:
            write_varint(out, number)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at ``at`` and where the next one begins; raises ``FormatError`` at the end or beyond 64
    bits."""
    number = shift = 0
    while at < len(data) and shift <= MAX_BITS:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at
    raise FormatError("a number is cut off or longer than 64 bits")


def read_varints(data: bytes) -> list[int]:
    """All numbers in ``data``; raises ``FormatError`` where the last is cut off or one exceeds 64 bits."""
    numbers: list[int] = []
    append = numbers.append
    number = shift = 0
    for byte in data:
        if byte < 128:
            append(number | byte << shift if shift else byte)
            number = shift = 0
        else:
            number |= (byte & 127) << shift
            shift += 7
            if shift > MAX_BITS:
                raise FormatError("a number is longer than 64 bits")
    if shift:
        raise FormatError("the last number of a section is cut off")
    return numbers


class Numbers:
    """A cursor over the numbers of a section."""

    __slots__ = ("at", "numbers")

    def __init__(self, data: bytes) -> None:
        self.numbers = read_varints(data)
        self.at = 0

    def read(self) -> int:
        """The next number."""
        number = self.numbers[self.at]
        self.at += 1
        return number

    def count(self) -> int:
        """The next number as a count of entries of one number or more; raises ``FormatError`` beyond what is
        left."""
        count = self.read()
        if count > len(self.numbers) - self.at:
            raise FormatError(f"{count} entries are announced, but {len(self.numbers) - self.at} numbers are left")
        return count

    def take(self, count: int) -> list[int]:
        """The next ``count`` numbers."""
        if count > len(self.numbers) - self.at:
            raise FormatError(f"{count} numbers are expected, but {len(self.numbers) - self.at} are left")
        self.at += count
        return self.numbers[self.at - count : self.at]

    def finish(self) -> None:
        """Raises ``FormatError`` where numbers are left."""
        if self.at != len(self.numbers):
            raise FormatError(f"{len(self.numbers) - self.at} numbers are left over in a section")


def read_strings(data: bytes) -> list[str]:
    """The string table: the number of strings, their lengths in bytes, their UTF-8 bytes."""
    count, at = read_varint(data, 0)
    if count > len(data):
        raise FormatError(f"{count} strings are announced in {len(data)} bytes")
    lengths = []
    for _ in range(count):
        length, at = read_varint(data, at)
        lengths.append(length)
    strings = []
    for length in lengths:
        if length > len(data) - at:
            raise FormatError(f"a string of {length} bytes is announced, but {len(data) - at} are left")
        strings.append(data[at : at + length].decode("utf-8", "surrogatepass"))
        at += length
    if at != len(data):
        raise FormatError(f"{len(data) - at} bytes are left over after the strings")
    return strings


def write_strings(strings: Iterable[str]) -> bytes:
    """The inverse of :func:`read_strings`."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in strings]
    return write_varints([len(encoded), *map(len, encoded)]) + b"".join(encoded)
