"""The binary form: exact, smaller and faster than text, and safe to read from anyone."""

from time import process_time
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pir_programs import EXAMPLE, programs, steady

from argosy_pir import (
    Builder,
    Dialect,
    FormatError,
    Location,
    Program,
    TensorType,
    from_bytes,
    print_program,
    register_dialect,
    structurally_equal,
    to_bytes,
)
from argosy_pir.binary import format as form
from argosy_pir.serialization import decode_sections


def sealed(data):
    """``data`` (header and sections) with a fresh checksum."""
    return data + crc32(data).to_bytes(4, "little")


@steady
@given(programs())
def test_round_trip(program):
    """Bytes give back the same program, with locations and hints, and the same bytes again."""
    data = to_bytes(program)
    back = from_bytes(data)
    assert structurally_equal(program, back, locations=True, annotations=True)
    assert print_program(back) == print_program(program)
    assert to_bytes(back) == data


@settings(steady, max_examples=60)
@given(programs(), st.data())
def test_damage_gives_format_errors(program, data):
    """Flipped bits and truncation end in FormatError, also behind a valid checksum."""
    good = to_bytes(program)
    damaged = bytearray(good[:-4])
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    if bytes(damaged) != good[:-4]:
        with pytest.raises(FormatError):
            from_bytes(bytes(damaged) + good[-4:])
    for bad in (sealed(bytes(damaged)), sealed(good[: data.draw(st.integers(0, len(good) - 5))])):
        try:
            print_program(from_bytes(bad), elide_above=100)
        except FormatError:
            pass


def test_every_truncation_is_refused():
    """No prefix of a file is a file."""
    data = to_bytes(Program.parse(EXAMPLE))
    for length in range(len(data)):
        with pytest.raises(FormatError):
            from_bytes(data[:length])


def test_newer_versions():
    """A newer minor version with a new section is read; a newer major version is refused with both named."""
    program = Program.parse(EXAMPLE)
    data = to_bytes(program)
    newer = bytearray(data[:-4])
    newer[5] += 1
    newer += bytes([100, 3]) + b"new"
    assert structurally_equal(program, from_bytes(sealed(bytes(newer))), locations=True, annotations=True)
    newer[4] = 9
    with pytest.raises(FormatError, match=r"format version 9\.2; .* reads 1\.x"):
        from_bytes(sealed(bytes(newer)))


def test_newer_dialects_are_refused():
    """A program of a newer major version of a loaded dialect says which versions these are."""
    dialect = register_dialect(Dialect("versioned", resolve=None, version=(2, 5)))
    program = Program()
    program.set_outputs([])
    op = Program.parse("program @p() { versioned.x() return() }")
    data = to_bytes(op)
    from_bytes(data)
    dialect.version = (1, 3)
    with pytest.raises(FormatError, match=r"version 2\.5 of dialect 'versioned'; version 1\.3 is loaded"):
        from_bytes(data)


def _chain(kind, width, length):
    """Entries of ``width`` parts, each of which is the entry before."""
    return [number for i in range(length) for number in (kind, width, *[i + (width > 1)] * width)]


def _sections(**replaced):
    out = bytearray()
    for tag in range(form.STRINGS, form.PROGRAM + 1):
        content = replaced.get(str(tag), b"")
        form.write_varint(out, tag)
        form.write_varint(out, len(content))
        out += content
    return bytes(out)


@pytest.mark.parametrize(
    "content",
    [
        {"1": form.write_varints([2**60])},
        {"1": form.write_varints([1, 2**60])},
        {"1": form.write_strings([]), "2": form.write_varints([0, 0, 2**60])},
        {"1": form.write_strings(["f"]), "2": form.write_varints([0, 0, 1, 2 * 2**62])},
        {"1": form.write_strings([]), "3": form.write_varints([10, 2**60])},
        {"1": form.write_strings([]), "3": form.write_varints([0, 10, 2, 0, 0, *_chain(10, 2, 69)])},
        {"1": form.write_strings([]), "3": form.write_varints([0, *_chain(10, 1, 1000)])},
        {"1": form.write_strings([]), "4": b"stray"},
        {"1": form.write_strings(["p"]), "7": form.write_varints([0, 0, 2**60])},
        {"1": form.write_strings(["p"]), "7": form.write_varints([0, 0, 0, 0, 2**60])},
        {"1": form.write_strings(["p"]), "7": form.write_varints([0, 0, 0, 0] + [1, 0, 0, 0, 0, 1, 1, 0] * 5000)},
        {"1": form.write_strings(["p"]), "7": form.write_varints([0, 0, 0, 0, 1, 0, 1, 0])},
        {"1": b"\xff" * 50_000},
    ],
)
def test_hostile_sections_are_refused_quickly(content):
    """Counts that lie, shared parts that explode, and deep nesting cost nothing and end in FormatError."""
    start = process_time()
    with pytest.raises(FormatError):
        decode_sections(Program, _sections(**content))
    assert process_time() - start < 10


def test_smaller_than_text():
    """On a program of 2,000 operations the binary form is less than half the size of the text."""
    type_ = TensorType((8, 16), "float32")
    program = Program("p", [type_])
    builder = Builder(program.block)
    value = program.inputs[0]
    for i in range(2000):
        place = Location("model.py", i % 50 + 1)
        value = builder.create("foo.add", [value, value], {"axis": 1, "k": (1, i)}, [type_], location=place).result
    program.set_outputs([value])
    text, data = str(program), to_bytes(program)
    assert len(data) < len(text) / 2
