"""Which values of a forward pass are kept for the backward pass: no choice of others has fewer bytes."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy_autoparallel.pipeline.residuals import choose_residuals, is_repeatable
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_pir import Builder, Program, TensorType
from argosy_pir.values import OpResult


def size(value):
    return int(np.prod(value.type.shape)) * 4


def reachable(wanted, kept, own):
    """Whether ``wanted`` can be made of ``kept`` by operations that may be made again."""
    pending, seen = list(wanted), set()
    while pending:
        value = pending.pop()
        if value in kept or value in seen:
            continue
        seen.add(value)
        if value.op not in own or not is_repeatable(value.op):
            return False
        pending += [x for x in value.op.operands if isinstance(x, OpResult)]
    return True


STEPS = st.lists(st.tuples(st.sampled_from(["exp", "mul", "sum", "dot"]), st.integers(0, 9), st.integers(0, 9)),
                 min_size=1, max_size=9)  # fmt: skip


@settings(deadline=None)
@given(STEPS, st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_no_other_choice_has_fewer_bytes(steps, read):
    """All sets of values are tried."""
    program = Program("forward")
    values = [program.add_input(TensorType([4, 4], "float32"), "x")]
    with emit_at(Builder.at_end(program.block)):
        for kind, a, b in steps:
            x, y = values[a % len(values)], values[b % len(values)]
            if kind == "exp":
                values.append(prim.exp(x))
            elif kind == "mul":
                values.append(prim.mul(x, y))
            elif kind == "sum":
                row = prim.reduce_sum(x, axes=(1,))
                values.append(prim.broadcast(row, shape=(4, 4), axes=(0,)))
            else:
                values.append(prim.dot_general(x, y, lhs_contract=(1,), rhs_contract=(0,), lhs_batch=(), rhs_batch=()))
    own = list(program.block)
    wanted = {v for i in read if isinstance(v := values[i % len(values)], OpResult)}
    kept = choose_residuals(own, wanted)
    assert reachable(wanted, kept, set(own))
    results = [r for op in own for r in op.results]
    best = next(total for total in sorted(_totals(results, wanted, set(own))))
    assert sum(map(size, kept)) == best


def _totals(results, wanted, own):
    for count in range(len(results) + 1):
        for chosen in combinations(results, count):
            if reachable(wanted, set(chosen), own):
                yield sum(map(size, chosen))
        if count >= len(wanted):
            return


@pytest.mark.parametrize(("length", "kept"), [(8, False), (2, True)])
def test_scores_are_made_again_where_they_are_no_smaller(length, kept):
    """Of attention over short texts the scores are less than queries and keys."""
    program = Program("attention")
    type = TensorType([2, length, 4], "float32")
    with emit_at(Builder.at_end(program.block)):
        x, w = program.add_input(type, "x"), program.add_input(TensorType([4, 4], "float32"), "w")
        q, k = (
            prim.dot_general(x, w, lhs_contract=(2,), rhs_contract=(axis,), lhs_batch=(), rhs_batch=())
            for axis in (0, 1)
        )
        scores = prim.dot_general(q, k, lhs_contract=(2,), rhs_contract=(2,), lhs_batch=(0,), rhs_batch=(0,))
        powers = prim.exp(scores)
    found = choose_residuals(list(program.block), [powers, q, k])
    assert (powers in found or scores in found) == kept
    assert {q, k} <= found
