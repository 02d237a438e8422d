"""Symbolic sizes: canonical, hash-consed, and true to the arithmetic of integers."""

import copy
import gc
import pickle
from functools import reduce
from operator import mul

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pir_programs import dims, steady

import argosy_pir.dims as dims_module
from argosy_pir import SymExpr, dim_product, evaluate_dim, is_static, maximum, minimum, parse_dim
from argosy_pir.comparisons import observe_comparisons
from argosy_pir.dims import dim_bounds

a, b, c = map(SymExpr.symbol, "abc")
VALUES = st.fixed_dictionaries({name: st.integers(1, 50) for name in ("s0", "s1", "batch")})


def test_equal_expressions_are_one_object():
    """Hash-consing: whichever way an expression is built, it is the same object."""
    assert (a + b) * (a - b) is a * a - b * b
    assert 2 * a + 3 - a is a + 3
    assert a - a == 0
    assert isinstance(a - a + 4, int)
    assert {a + 1: "x"}[1 + a] == "x"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (2 * a + 1, "2*a + 1"),
        (3 - a, "-a + 3"),
        ((a + 1) // 2, "((a + 1) // 2)"),
        ((a + 1) // 2 % 3, "(((a + 1) // 2) % 3)"),
        (a // -2 + 7 // (a - b), "(a // (-2)) + (7 // (a - b))"),
        (maximum(a, b + 1), "max(a, b + 1)"),
        (minimum(minimum(a, b), c), "min(a, b, c)"),
        (a * b - 2 * a * a, "-2*a*a + a*b"),
    ],
)
def test_canonical_text(expression, text):
    """Expressions print in one order, and the text reads back."""
    assert str(expression) == text
    assert parse_dim(text) is expression


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((4 * a + 5) // 4, a + 1),
        ((4 * a + 5) % 4, 1),
        ((a * b + a) // (b + 1), a),
        ((a * b + a) % (b + 1), 0),
        (a * b // b, a),
        (maximum(a, a + 2), a + 2),
        (minimum(a, a), a),
        (a * 0, 0),
        (a // 1, a),
        ((2 * a + b) // 2, a + b // 2),
    ],
)
def test_simplification(found, expected):
    """Divisions that come out exactly and comparisons that are decided disappear."""
    assert found == expected


@settings(steady, max_examples=300)
@given(dims, dims, st.integers(1, 9) | st.integers(-9, -1), VALUES)
def test_arithmetic_agrees_with_integers(x, y, n, values):
    """Evaluating a combination is combining the values."""
    p, q = evaluate_dim(x, values), evaluate_dim(y, values)
    assert evaluate_dim(x + y, values) == p + q
    assert evaluate_dim(x - y, values) == p - q
    assert evaluate_dim(x * y, values) == p * q
    assert evaluate_dim(x // n, values) == p // n
    assert evaluate_dim(x % n, values) == p % n
    assert evaluate_dim(minimum(x, y), values) == min(p, q)
    assert evaluate_dim(maximum(x, y), values) == max(p, q)
    if q and y:
        assert evaluate_dim(x // y, values) == p // q
        assert evaluate_dim(x % y, values) == p % q


@steady
@given(dims, VALUES)
def test_bounds_hold(x, values):
    low, high = dim_bounds(x)
    value = evaluate_dim(x, values)
    assert low is None or low <= value
    assert high is None or value <= high


def test_bounds_are_close():
    s, t = SymExpr.symbol("s"), SymExpr.symbol("t")
    assert dim_bounds(minimum(s, 3) * minimum(t, 2) - minimum(s, 1)) == (-1, 6)
    assert dim_bounds(maximum(minimum(s, 5), 2)) == (2, 5)
    assert dim_bounds((s % 4) // 2 + 1) == (1, 2)
    assert dim_bounds(maximum(s - 3, 0)) == (0, None)
    assert dim_bounds(s - t) == (None, None)
    assert dim_bounds(7) == (7, 7)


@given(dims)
@settings(deadline=None)
def test_text_pickle_and_copy_give_the_same_object(x):
    """Text, pickling and copying all end at the one canonical object."""
    assert parse_dim(str(x)) == x
    assert pickle.loads(pickle.dumps(x)) == x
    assert copy.deepcopy(x) is x


def test_substitute_and_symbols():
    """Substitution replaces some symbols and simplifies; evaluation needs all."""
    size = (a * b + 1) // 2
    assert size.symbols == {"a", "b"}
    assert size.substitute({"a": 2 * c}) == (2 * c * b + 1) // 2 == b * c
    assert size.substitute({"a": 3, "b": 5}) == 8
    with pytest.raises(ValueError, match="no value for b"):
        size.evaluate({"a": 1})


def test_refusals():
    """Division by zero, odd names and runaway sizes are refused with a reason."""
    with pytest.raises(ZeroDivisionError, match="a divided by zero"):
        a // 0
    with pytest.raises(ValueError, match="identifiers"):
        SymExpr.symbol("a b")
    with pytest.raises(TypeError):
        a + 1.5
    with pytest.raises(ValueError, match="degree above"):
        reduce(mul, [a] * 100)


def test_only_the_latest_results_are_kept_alive():
    """The table of expressions is weak, and so many results of arithmetic are remembered, no more."""
    gc.collect()
    before = len(dims_module._expressions)
    made = [a + i for i in range(10**6, 10**6 + 3 * dims_module._KEPT_RESULTS)]
    assert len(dims_module._expressions) >= before + len(made) - dims_module._KEPT_RESULTS
    del made
    gc.collect()
    assert len(dims_module._expressions) <= before + dims_module._KEPT_RESULTS


def test_integers_of_other_kinds_are_read_each_time():
    """What counts as an integer may change, or have no hash; only its number is remembered."""

    class Counter:
        """A number that goes up; it has no hash."""

        number = 0

        def __index__(self) -> int:
            self.number += 1
            return self.number

        def __eq__(self, other):
            raise AssertionError("compared")

    n = Counter()
    found = [a + n, a - n, n - a, a * n, a // n, a % n, n + a, minimum(a, n), maximum(a, n)]
    assert found == [a + 1, a - 2, 3 - a, a * 4, a // 5, a % 6, 7 + a, minimum(a, 8), maximum(a, 9)]


def test_arithmetic_is_remembered(monkeypatch):
    """Compilers ask the same of every kernel: a polynomial is made once, however often it comes up."""
    made: list[object] = []
    intern = dims_module._intern
    monkeypatch.setattr(dims_module, "_intern", lambda terms: made.append(terms) or intern(terms))
    for _ in range(100):
        assert (a * 7919 + b) * (a - 7919) // 7919 - maximum(a % 7919, b) is not None
    assert len(made) < 100


def test_shape_helpers():
    """Products and staticness of shapes."""
    assert dim_product((2, a, 3)) == 6 * a
    assert dim_product(()) == 1
    assert is_static((2, 3))
    assert not is_static((2, a))


def test_comparisons_that_numbers_might_decide_otherwise_are_observed():
    size, other, told = SymExpr.symbol("s0"), SymExpr.symbol("s1"), []
    with observe_comparisons(lambda: told.append(1)):
        assert size == size
        assert size is not None
        assert size != "s0"
        assert not told
        assert size != 5
        assert told
        del told[:]
        assert size not in {5, 6}
        assert told
        del told[:]
        assert size != other
        assert told
        del told[:]
    assert size != 5
    assert size != other
    assert not told
