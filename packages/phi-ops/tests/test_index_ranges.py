"""Ranges of integers by the way they are made: what is said to be within is, for every value that can occur."""

import pytest

from argosy_phi_ops import prim
from argosy_phi_ops.checks.index_ranges import is_within
from argosy_phi_ops.context import emit_at
from argosy_pir.builder import Builder
from argosy_pir.dims import SymExpr
from argosy_pir.program import Program
from argosy_pir.types import TensorType

KNOWN = {
    "positions": lambda x: prim.iota(shape=(4,), axis=0, dtype="int64"),
    "positions, moved": lambda x: prim.add(prim.iota(shape=(3,), axis=0, dtype="int64"), 1),
    "the largest": lambda x: prim.argmax(x, axis=1, dtype="int64"),
    "numbers": lambda x: prim.constant(3, "int64", (2,)),
    "repeated and cut": lambda x: prim.slice(
        prim.broadcast_to(prim.iota(shape=(4,), axis=0, dtype="int32"), (2, 4)),
        start=(0, 1),
        limit=(2, 3),
        stride=(1, 1),
    ),
    "clamped": lambda x: prim.minimum(prim.maximum(prim.cast(x, dtype="int64"), 0), 3),
    "remainders": lambda x: prim.floor_mod(prim.cast(x, dtype="int64"), 4),
    "sorted along": lambda x: prim.sort(x, prim.iota(shape=(2, 4), axis=1, dtype="int64"), axis=1)[1],
    "one of two": lambda x: prim.select(
        prim.lt(x, 0.0), prim.constant(0, "int64", (2, 4)), prim.iota(shape=(2, 4), axis=1, dtype="int64")
    ),
}
UNKNOWN = {
    "values": lambda x: prim.cast(x, dtype="int64"),
    "positions beyond": lambda x: prim.iota(shape=(5,), axis=0, dtype="int64"),
    "below": lambda x: prim.sub(prim.iota(shape=(4,), axis=0, dtype="int64"), 1),
    "wrapped around": lambda x: prim.add(prim.iota(shape=(4,), axis=0, dtype="int8"), 126),
    "remainders by what may be below zero": lambda x: prim.floor_mod(
        prim.cast(x, dtype="int64"), prim.cast(x, dtype="int64")
    ),
    "a product": lambda x: prim.mul(prim.iota(shape=(2,), axis=0, dtype="int64"), 2),
}


def said(function, low=0, size=4):
    program = Program("ranges")
    x = program.add_input(TensorType((2, 4), "float32"))
    with emit_at(Builder.at_end(program.block)):
        return is_within(function(x), low, size)


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_in_range_by_the_way_it_is_made_is_known(name):
    assert said(KNOWN[name])
    assert not said(KNOWN[name], size=2)


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_may_be_outside_is_not(name):
    assert not said(UNKNOWN[name])


def test_positions_of_an_open_axis_are_within_it():
    n, m = SymExpr.symbol("n"), SymExpr.symbol("m")
    program = Program("ranges")
    with emit_at(Builder.at_end(program.block)):
        places = prim.reshape(prim.iota(shape=(n,), axis=0, dtype="int64"), shape=(n, 1))
        assert is_within(places, 0, n)
        assert is_within(places, -n, n)
        assert not is_within(places, 0, m)
        assert not is_within(places, 0, 8)
        assert not is_within(places, 1, n)


def test_numbers_may_be_allowed_besides():
    program = Program("ranges")
    with emit_at(Builder.at_end(program.block)):
        ignored = prim.constant(-100, "int64", (2,))
        assert is_within(ignored, 0, 4, -100)
        assert not is_within(ignored, 0, 4)
