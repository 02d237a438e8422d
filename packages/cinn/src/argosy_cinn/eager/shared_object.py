"""A shared object made of an object file without a linker: what the dynamic loader needs and nothing else.

For ELF on x86-64 and objects that refer to nothing outside themselves. The sections that are loaded are laid out in
three segments (read-only, code, writable), references between them are filled in, and the exported symbols go in a
table with a hash of one chain. Source of the format: System V ABI, chapters 4 and 5, and its AMD64 supplement.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["shared_object"]

_PAGE = 4096
_ALLOCATED, _WRITABLE, _CODE = 2, 1, 4  # flags of sections
_SYMBOLS, _RELOCATIONS, _ZEROS = 2, 4, 8  # types of sections
_LOADED = (1, _ZEROS, 14)
_PC32, _PLT32, _PC64 = 2, 4, 24  # types of relocations
_SEGMENTS = ((4, 0), (5, _CODE), (6, _WRITABLE))  # rights, and the flags of sections that get them
_HEADER, _PROGRAM_HEADER, _SYMBOL = 64, 56, 24


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class _Symbol(NamedTuple):
    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


def shared_object(code: bytes, exports: Sequence[str]) -> bytes:
    """The bytes of a shared object with the functions and data ``exports`` of the object file ``code``.

    Raises ValueError for files and references of other kinds.
    """
    return _Linker(code, exports).link()


class _Linker:
    def __init__(self, code: bytes, exports: Sequence[str]) -> None:
        if code[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", code, 16) != (1, 62):
            raise ValueError("not an object file of ELF for x86-64")
        self.code = code
        table, count = struct.unpack_from("<Q", code, 40)[0], struct.unpack_from("<H", code, 60)[0]
        self.sections = [_Section(*struct.unpack_from("<IIQQQQIIQQ", code, table + 64 * i)) for i in range(count)]
        symbols = next(s for s in self.sections if s.type == _SYMBOLS)
        self.strings = self._content(self.sections[symbols.link])
        self.symbols = [_Symbol(*each) for each in struct.iter_unpack("<IBBHQQ", self._content(symbols))]
        wanted = set(exports)
        self.exported = {n: s for s in self.symbols if s.section and (n := self._name(s)) in wanted}
        if missing := wanted - self.exported.keys():
            raise ValueError(f"the object file does not define {', '.join(sorted(missing))}")

    def _content(self, section: _Section) -> bytes:
        if section.type == _ZEROS:
            return bytes(section.size)
        return self.code[section.offset : section.offset + section.size]

    def _name(self, symbol: _Symbol) -> str:
        return self.strings[symbol.name : self.strings.index(b"\0", symbol.name)].decode()

    def link(self) -> bytes:
        """The shared object."""
        names, strings = self._string_table()
        symbol_at = _HEADER + 5 * _PROGRAM_HEADER
        string_at = symbol_at + _SYMBOL * (len(names) + 1)
        hash_at = _align(string_at + len(strings), 8)
        chain = [0, *range(len(names))]  # each symbol is followed by the one before it
        hashes = struct.pack(f"<3I{len(chain)}I", 1, len(chain), len(names), *chain)
        self._lay_out(hash_at + len(hashes))
        image = bytearray(self.end)
        for i, address in self.address.items():
            image[address : address + self.sections[i].size] = self._content(self.sections[i])
        self._relocate(image)
        dynamic = [(4, hash_at), (5, string_at), (6, symbol_at), (10, len(strings)), (11, _SYMBOL), (0, 0)]
        for at, part in (
            (0, self._headers()),
            (symbol_at, self._symbol_table(names)),
            (string_at, strings),
            (hash_at, hashes),
            (self.dynamic, b"".join(struct.pack("<QQ", *each) for each in dynamic)),
        ):
            image[at : at + len(part)] = part
        return bytes(image)

    def _string_table(self) -> tuple[dict[str, int], bytes]:
        names, strings = {}, b"\0"
        for name in self.exported:
            names[name] = len(strings)
            strings += name.encode() + b"\0"
        return names, strings

    def _lay_out(self, start: int) -> None:
        """Give each section that is loaded an address; each segment has pages of its own."""
        self.address: dict[int, int] = {}
        self.segments: list[tuple[int, int, int]] = []
        begin, here = 0, start
        for rights, flags in _SEGMENTS:
            if self.segments:
                begin = here = _align(here, _PAGE)
            for i, section in enumerate(self.sections):
                loaded = section.flags & _ALLOCATED and section.type in _LOADED and section.size
                if loaded and section.flags & (_WRITABLE | _CODE) == flags:
                    here = self.address[i] = _align(here, max(1, section.align))
                    here += section.size
            if flags == _WRITABLE:
                self.dynamic = _align(here, 16)
                here = self.dynamic + 16 * 6
            self.segments.append((rights, begin, here))
        self.end = here

    def _relocate(self, image: bytearray) -> None:
        for section in self.sections:
            if section.type != _RELOCATIONS or section.info not in self.address:
                continue
            for offset, info, addend in struct.iter_unpack("<QQq", self._content(section)):
                kind, symbol = info & 0xFFFFFFFF, self.symbols[info >> 32]
                if symbol.section not in self.address:
                    raise ValueError(f"a reference to {self._name(symbol) or 'a section'}, which is not loaded")
                place = self.address[section.info] + offset
                distance = self.address[symbol.section] + symbol.value + addend - place
                if kind not in (_PC32, _PLT32, _PC64):
                    raise ValueError(f"a reference of kind {kind}")
                struct.pack_into("<q" if kind == _PC64 else "<i", image, place, distance)

    def _symbol_table(self, names: dict[str, int]) -> bytes:
        rows = [bytes(_SYMBOL)]
        for name, at in names.items():
            s = self.exported[name]
            rows.append(struct.pack("<IBBHQQ", at, 0x10 | s.info & 15, 0, 1, self.address[s.section] + s.value, s.size))
        return b"".join(rows)

    def _headers(self) -> bytes:
        head = struct.pack(
            "<16sHHIQQQIHHHHHH",
            b"\x7fELF\x02\x01\x01",
            3,
            62,
            1,
            0,
            _HEADER,
            0,
            0,
            _HEADER,
            _PROGRAM_HEADER,
            5,
            0,
            0,
            0,
        )
        for rights, begin, end in self.segments:
            head += struct.pack("<IIQQQQQQ", 1, rights, begin, begin, begin, end - begin, end - begin, _PAGE)
        head += struct.pack("<IIQQQQQQ", 2, 6, self.dynamic, self.dynamic, self.dynamic, 96, 96, 8)
        return head + struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)  # the stack is not executable


def _align(x: int, step: int) -> int:
    return -(-x // step) * step
