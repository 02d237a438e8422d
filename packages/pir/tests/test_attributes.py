"""Attributes, types, constants, scalars and locations: immutable, exact, and clear about what they refuse."""

import pickle
from enum import IntEnum
from itertools import pairwise
from math import inf, isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pir_programs import attributes, programs, steady

from argosy_pir import (
    UNKNOWN,
    Attributes,
    Dense,
    FrozenDict,
    Location,
    Operation,
    Program,
    Symbol,
    SymExpr,
    TensorType,
    Value,
    attribute_key,
    decode_scalar,
    encode_scalar,
    normalise,
    set_value_operators,
    structurally_equal,
)
from argosy_pir.values import VALUE_OPERATORS


class Color(IntEnum):
    """An integer with a name."""

    RED = 3


def test_entries_are_normalised_whichever_way_they_come():
    """Lists become tuples, mappings freeze, and subclasses of numbers become plain."""
    op = Operation("foo.a", attributes={"a": [1, [2, 3]], "b": {"c": [4]}})
    op.attributes["d"] = Color.RED
    op.attributes.update({"e": [5]}, f=(Color.RED,))
    op.attributes |= {"g": [6]}
    op.attributes.setdefault("h", [7])
    assert op.attributes["a"] == (1, (2, 3))
    assert op.attributes["b"] == FrozenDict({"c": (4,)}) == {"c": (4,)}
    assert type(op.attributes["d"]) is int
    assert type(op.attributes["f"][0]) is int
    assert (op.attributes["e"], op.attributes["g"], op.attributes["h"]) == ((5,), (6,), (7,))


@pytest.mark.parametrize("value", [{1, 2}, bytearray(b"x"), object(), (1, {2}), {"a": {3}}, len])
def test_mutable_and_unknown_values_are_refused(value):
    """What is not plain immutable data is refused, and what is allowed is listed."""
    with pytest.raises(TypeError, match=r"attribute 'k' cannot be .*allowed are None, bool") as caught:
        Attributes({"k": value}) if not isinstance(value, dict) else Attributes({"k": tuple(value.values())})
    assert "Dense" in str(caught.value)


def test_keys_tell_apart_what_prints_differently():
    """1, True and 1.0 are equal to Python but not as attributes; NaN is equal to itself."""
    values = [1, True, 1.0, "1", b"1", (1,), ((1,),), 0.0, -0.0, 0, None, "", (), Symbol("@a"), "a", 1 + 0j]
    keys = [attribute_key(value) for value in values]
    assert len(set(keys)) == len(values)
    assert attribute_key(nan) == attribute_key(float("nan"))


@steady
@given(attributes)
def test_attributes_hash_and_pickle(value):
    """Every normalised value is hashable and survives pickling."""
    value = normalise(value)
    hash(value)
    assert attribute_key(pickle.loads(pickle.dumps(value))) == attribute_key(value)


@steady
@given(programs())
def test_programs_pickle(program):
    """A program can be sent to another process."""
    assert structurally_equal(pickle.loads(pickle.dumps(program)), program, locations=True, annotations=True)


def test_dense_checks_its_length():
    """A constant holds all elements or one; anything else says what was expected."""
    type_ = TensorType((2, 3), "int16")
    assert Dense(type_, bytes(12)) != Dense(type_, bytes(2))
    assert Dense.splat(type_, 7).is_splat
    assert not Dense(type_, bytes(12)).is_splat
    with pytest.raises(ValueError, match=r"5 bytes do not fill tensor<\[2, 3\], int16>: expected 2 .* or 6\*2"):
        Dense(type_, bytes(5))
    symbolic = TensorType((SymExpr.symbol("n"),), "int16")
    assert Dense.splat(symbolic, 1).is_splat
    with pytest.raises(ValueError, match="do not fill"):
        Dense(symbolic, bytes(4))


@pytest.mark.parametrize("shape", [(-1,), (2, -3)])
def test_types_refuse_negative_sizes(shape):
    """Sizes are not negative, and booleans and floats are no sizes."""
    with pytest.raises(ValueError, match="not negative"):
        TensorType(shape, "float32")
    with pytest.raises(TypeError, match="integers or symbolic"):
        TensorType((True,), "float32")
    with pytest.raises(TypeError, match="integers or symbolic"):
        TensorType((1.5,), "float32")
    with pytest.raises(ValueError, match="name of one"):
        TensorType((1,), float)


INTEGERS = {f"{sign}int{bits}": (bits, sign == "") for bits in (8, 16, 32, 64) for sign in ("", "u")}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_round_trip_and_overflow_is_refused(dtype):
    """The ends of each range encode; one beyond does not, nor does a fraction."""
    bits, signed = INTEGERS[dtype]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    for number in (low, high, 0, 1):
        assert decode_scalar(encode_scalar(number, dtype), dtype) == number
    for number in (low - 1, high + 1, 0.5, nan, inf, 1j):
        with pytest.raises(ValueError, match=f"is not a number of dtype {dtype}"):
            encode_scalar(number, dtype)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_every_float8_code_round_trips(dtype):
    """Each of the 256 codes decodes to a number that encodes to it (NaNs to a NaN), in increasing order."""
    values = [decode_scalar(bytes([code]), dtype) for code in range(256)]
    for code, value in enumerate(values):
        again = encode_scalar(value, dtype)[0]
        assert isnan(values[again]) if isnan(value) else again == code
    finite = [v for v in values[:128] if not isnan(v)]
    assert finite == sorted(finite)
    for a, b in pairwise(finite):
        if b != inf:
            middle = encode_scalar((a + b) / 2, dtype)[0]
            assert middle % 2 == 0
            assert values[middle] in (a, b)


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("float8_e4m3fn", 448.0, 448.0), ("float8_e4m3fn", 464.0, 448.0), ("float8_e4m3fn", 465.0, nan),
        ("float8_e4m3fn", 2.0**-9, 2.0**-9), ("float8_e5m2", 61439.0, 57344.0), ("float8_e5m2", 61440.0, inf),
        ("float8_e5m2", -inf, -inf), ("bfloat16", 1.00390625, 1.0), ("bfloat16", 1.01171875, 1.015625),
        ("float16", 65520.0, inf), ("float16", 65519.0, 65504.0), ("float32", 1e300, inf), ("float32", -1e300, -inf),
    ],
)  # fmt: skip
def test_rounding_to_small_floats(dtype, value, expected):
    """Rounding is to nearest even, and overflow as the dtype has it."""
    found = decode_scalar(encode_scalar(value, dtype), dtype)
    assert isnan(found) if isnan(expected) else found == expected


@steady
@given(st.complex_numbers(allow_nan=False))
def test_complex_round_trip(value):
    """Double precision complex numbers are exact."""
    assert decode_scalar(encode_scalar(value, "complex128"), "complex128") == value


def test_locations_fuse():
    """Fusing flattens, drops repetitions and unknowns, and gives a single place back as itself."""
    a, b = Location("a.py", 1), Location("b.py", 2, 3, "f")
    assert Location.fuse([a, UNKNOWN, a]) is a
    assert Location.fuse([]) is UNKNOWN
    both = Location.fuse([Location.fuse([a, b]), a])
    assert both.locations == (a, b)
    assert (both.file, both.line) == ("a.py", 1)
    assert str(both) == "fused[a.py:1, b.py:2:3 in f]"
    assert both == Location.fuse([a, b]) != Location.fuse([b, a])


@pytest.fixture
def _operators_restored():
    """Other packages' tests in this process need the operators they installed."""
    installed = {name: getattr(Value, name) for name in VALUE_OPERATORS}
    yield
    set_value_operators(installed)


@pytest.mark.usefixtures("_operators_restored")
def test_value_operators_can_be_installed_and_removed():
    """The table gives values arithmetic; names that are no operators are refused; an empty table removes all."""
    x = Program("p", [TensorType((), "int8")]).inputs[0]
    try:
        set_value_operators({"__add__": lambda a, b: ("add", a, b), "__rsub__": lambda a, b: ("rsub", a, b)})
        assert x + 1 == ("add", x, 1)
        assert 1 - x == ("rsub", x, 1)
        with pytest.raises(TypeError, match="argosy_phi_ops provides"):
            x * 2
    finally:
        set_value_operators({})
    with pytest.raises(TypeError, match="argosy_phi_ops provides"):
        x + 1
    with pytest.raises(ValueError, match="not operators of values: __eq__"):
        set_value_operators({"__eq__": lambda a, b: True})
    assert isinstance(x, Value)
    assert x == x


def test_importing_stays_light():
    """The core loads no dataclasses, no parser, no passes, and asks for no entry points."""
    import subprocess
    import sys

    code = "import sys, argosy_pir; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env=_path())
    assert done.returncode == 0, done.stderr
    heavy = (
        "'dataclasses'",
        "'inspect'",
        "'typing'",
        "'re'",
        "'importlib.metadata'",
        "argosy_pir.text",
        "argosy_pir.passes",
    )
    assert [name for name in heavy if name in done.stdout] == []


def _path():
    import os
    from pathlib import Path

    import argosy_pir

    return {**os.environ, "PYTHONPATH": str(Path(argosy_pir.__file__).parents[1])}
