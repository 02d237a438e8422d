"""What a new combination of sizes costs: formulas as Python functions, and arrangements of memory that serve others."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy_cinn.plan.formulas import Formulas
from argosy_cinn.plan.memory import Arrangement, Lifetime, assign_offsets
from argosy_pir.dims import SymExpr, evaluate_dim, floor_div, maximum, minimum, modulo

B, T = SymExpr.symbol("b"), SymExpr.symbol("lambda_")
NAMES = ("b", "lambda_")

operations = st.sampled_from([
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * 3 + y, lambda x, y: x * B - 1, minimum, maximum,
    lambda x, y: floor_div(x, 7), lambda x, y: modulo(x, 5), lambda x, y: floor_div(x + y, T + 1),
])  # fmt: skip
leaves = st.sampled_from([B, T, 2, -3, B * T])
formulas = st.recursive(leaves, lambda s: st.builds(lambda f, x, y: f(x, y), operations, s, s), max_leaves=5)


@settings(deadline=None)
@given(st.lists(formulas, min_size=1, max_size=6), st.integers(1, 300), st.integers(1, 300))
def test_compiled_formulas_are_the_formulas(sizes, b, t):
    found = Formulas(sizes, NAMES).evaluate([b, t])
    assert found == [evaluate_dim(size, dict(zip(NAMES, (b, t), strict=True))) for size in sizes]


def test_equal_formulas_are_computed_once():
    made = Formulas([B * T] * 50 + [3], NAMES)
    assert len(made._function(4, 5)) == 2
    assert made.evaluate([4, 5]) == [20] * 50 + [3]


sizes = st.integers(0, 200_000)
lives = st.lists(st.tuples(sizes, sizes, st.integers(0, 20), st.integers(0, 6)), max_size=30)


def meeting(lifetimes, starts):
    """Pairs of values that live together and share memory."""
    found = []
    for i, a in enumerate(lifetimes):
        for j, b in enumerate(lifetimes[:i]):
            together = a.first <= b.last and b.first <= a.last
            apart = starts[i] + a.nbytes <= starts[j] or starts[j] + b.nbytes <= starts[i]
            if together and not apart:
                found.append((i, j))
    return found


@settings(deadline=None)
@given(lives)
def test_an_arrangement_of_some_sizes_serves_all_others(drawn):
    known = [Lifetime(i, n, first, first + length) for i, (n, _, first, length) in enumerate(drawn)]
    other = [Lifetime(i, n, first, first + length) for i, (_, n, first, length) in enumerate(drawn)]
    arrangement = Arrangement(known)
    for lifetimes in (known, other):
        starts, size = arrangement.place([v.nbytes for v in lifetimes])
        assert not meeting(lifetimes, starts)
        assert all(start % 64 == 0 for start in starts)
        assert size >= max((start + v.nbytes for start, v in zip(starts, lifetimes, strict=True)), default=0)


@settings(deadline=None)
@given(lives)
def test_for_the_sizes_it_was_made_for_it_is_the_plan(drawn):
    lifetimes = [Lifetime(i, n, first, first + length) for i, (n, _, first, length) in enumerate(drawn)]
    _, wanted = assign_offsets(lifetimes)
    _, size = Arrangement(lifetimes).place([v.nbytes for v in lifetimes])
    assert size <= wanted


def test_a_chain_needs_few_comparisons():
    """What lies below what lies below is not looked at: n values that live together, n - 1 comparisons."""
    arrangement = Arrangement([Lifetime(i, 64 * (i + 1), 0, 9) for i in range(40)])
    assert sum(map(len, arrangement._below)) == 39
    assert np.all(np.diff(sorted(arrangement.place([64] * 40)[0])) == 128)
