"""The text form: prints and parses back exactly, and refuses anything else with a place."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pir_programs import EXAMPLE, attributes, programs, steady, types

from argosy_pir import (
    Dense,
    Location,
    ParseError,
    Program,
    TensorType,
    attribute_key,
    normalise,
    print_program,
    structurally_equal,
)
from argosy_pir.text.attributes import format_attribute
from argosy_pir.text.parser import parse_attribute, parse_type


def test_example_reads_and_prints_the_same():
    """The form that people read is the form that is written."""
    program = Program.parse(EXAMPLE)
    assert str(program) == EXAMPLE
    assert [s.name for s in program.states] == ["linear_0.w_0"]
    assert program.state_updates[0].name_hint == "w"
    assert program.block.first.location == Location("f.py", 12)
    assert program.symbols() == ("s0",)


@steady
@given(programs())
def test_programs_round_trip(program):
    """Whatever a program holds, its text gives it back: attributes, hints, locations and all."""
    text = print_program(program)
    parsed = Program.parse(text)
    assert structurally_equal(program, parsed, locations=True, annotations=True)
    assert print_program(parsed) == text
    bare = Program.parse(print_program(program, locations=False))
    assert structurally_equal(program, bare)


@settings(steady, max_examples=300)
@given(attributes)
def test_attributes_round_trip(value):
    """Attribute values come back exactly, including signed zeros, infinities and bytes."""
    assert attribute_key(parse_attribute(format_attribute(normalise(value)))) == attribute_key(normalise(value))


@steady
@given(types)
def test_types_round_trip(type_):
    """A type's text is that type."""
    assert parse_type(str(type_)) == type_


@pytest.mark.parametrize("data", ["0000c07f", "0000c0ff", "0100c07f"])
def test_every_nan_round_trips(data):
    """Signs and payloads of NaNs are kept, in complex parts as well."""
    for type_, held in [(TensorType((), "float32"), data), (TensorType((), "complex64"), "0000803f" + data)]:
        dense = Dense(type_, bytes.fromhex(held))
        assert parse_attribute(format_attribute(dense)) == dense


@pytest.mark.parametrize("value", [0.0, -0.0, float("inf"), float("-inf"), 1e-45, 0.1, 65504.0, 3.4e38])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_splats_print_as_short_numbers(value, dtype):
    """One number stands for all elements, in as few digits as give the same bits."""
    dense = Dense.splat(TensorType((2, 2), dtype), value)
    text = format_attribute(dense)
    assert "0x" not in text
    assert parse_attribute(text) == dense


def test_elided_constants_do_not_parse():
    """Eliding is asked for when printing, and what was elided says so when read."""
    program = Program()
    from argosy_pir import Builder

    Builder(program.block).constant(TensorType((100,), "int8"), bytes(range(100)))
    program.set_outputs([])
    assert "elided" not in str(program)
    text = print_program(program, elide_above=50)
    with pytest.raises(ParseError, match="elided when the program was printed"):
        Program.parse(text)


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("program @p() {\n  foo.a(%x)\n}", "%x is not defined", 2, 9),
        ("program @p(%x: tensor<[2], f>) {\n  %x = foo.a() : token\n}", "%x is defined twice", 2, 3),
        ("program @p(%x: tensor<[2 f>) {}", "tensor type is written", 1, 16),
        ("program @p(%x: tensor<[2//0], f>) {}", "divided by zero", 1, 16),
        ("program @p() {\n  %0 = foo.a()\n}", "defines 1 values but gives 0 types", 2, 3),
        ('program @p() {\n  foo.a() {x = "abc}\n}', "string in quotes", 2, 16),
        ("program @p() {", "expected an operation", 1, 15),
        ("func @p() {", "expected 'program'", 1, 1),
        ("program @p() {} stuff", "expected 'function'", 1, 17),
        ("program @p() { foo.a() {x = 0x12} }", "expected a number", 1, 29),
        ("program @p() { foo.a() {x = 1, x = 2} }", "given twice", 1, 32),
        ("program @p() { foo.a() {x = dense<tensor<[2], int8>, 300>} }", "not a number of dtype int8", 1, 34),
    ],
)
def test_errors_show_the_place(text, message, line, column):
    """A parse error names line and column and points a caret at it."""
    with pytest.raises(ParseError, match=message) as caught:
        Program.parse(text, "f.pir")
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"f.pir:{line}:{column}: ")
    assert str(caught.value).splitlines()[2].endswith("^")


_PIECES = st.sampled_from(
    [
        *EXAMPLE.split(),
        "{",
        "}",
        "(",
        ")",
        '"',
        "\\",
        "//",
        "dense<",
        "0x1",
        "-",
        "region",
        "%",
        "@",
        "min(",
        "<",
        ">",
    ]
)


@settings(steady, max_examples=300)
@given(st.lists(_PIECES, max_size=30).map(" ".join) | st.text(max_size=60))
def test_only_parse_errors_come_out(text):
    """Any text is a program or a ParseError."""
    for source in (
        text,
        "program @p() { " + text,
        "program @p(%x: tensor<[" + text,
        "program @p() { foo.a() {a = " + text,
    ):
        try:
            Program.parse(source)
        except ParseError:
            pass


@settings(steady, max_examples=300)
@given(st.integers(0, len(EXAMPLE) - 1), st.integers(0, 8), st.text(max_size=3))
@example(EXAMPLE.index(":", EXAMPLE.index("loc(")) + 1, 0, "\N{SUPERSCRIPT ONE}")  # a digit, but no decimal one
def test_damaged_text_gives_parse_errors(start, length, insert):
    """A program with a piece cut out or put in parses or gives a ParseError."""
    try:
        Program.parse(EXAMPLE[:start] + insert + EXAMPLE[start + length :])
    except ParseError:
        pass


@pytest.mark.parametrize(
    "text",
    [
        "program @p() " + "{ foo.a() region " * 5000,
        "program @p() { foo.a() {x = " + "(" * 100_000,
        "program @p() { foo.a() {x = " + "{a = " * 20_000,
        "program @p(%x: tensor<[" + "(" * 100_000 + "], f>",
        "program @p(%x: tensor<[" + "min(s," * 20_000 + "], f>",
        "program @p(%x: tensor<[" + "+".join(f"s{i}" for i in range(20_000)) + "], f>",
        "program @p(%x: tensor<[" + "*".join(["(a+b)"] * 5000) + "], f>",
        "program @p(%x: function<" + "(function<" * 20_000,
        '"\\"' * 100_000,
        " " * 200_000 + "\x00",
        "// " * 50_000 + "\n" * 50_000,
        "program @p() { foo.a() {x = " + "9" * 100_000 + "} }",
        "program @p() { foo.a() loc(" + "fused[" * 20_000,
        "@" * 100_000 + '%"' * 50_000,
    ],
)
def test_hostile_text_is_refused_quickly(text):
    """Deep nesting and long runs end in a ParseError, without recursion errors or runaway time."""
    from time import process_time

    start = process_time()
    with pytest.raises(ParseError):
        Program.parse(text)
    assert process_time() - start < 20
