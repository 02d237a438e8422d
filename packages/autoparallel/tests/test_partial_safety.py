"""A value that is a sum still to be made is never taken for the sum: every primitive, every kind of reduction."""

import functools

import numpy as np
import pytest
from occurrences import occurrences, operation, values
from ranks import on_ranks

from argosy_autoparallel import (
    Layout,
    Partial,
    ProcessMesh,
    ReduceType,
    Replicate,
    count_collectives,
    partition_program,
    shard_tensor,
)
from argosy_autoparallel.groups import communicators, ensure_groups
from argosy_autoparallel.spmd import strategies
from argosy_autoparallel.spmd.linearity import patterns_of
from argosy_autoparallel.spmd.strategy import StrategyQuery
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.reference.interpreter import interpret

REDUCE = {
    ReduceType.kRedSum: lambda terms: terms[0] + terms[1],
    ReduceType.kRedAvg: lambda terms: (terms[0] + terms[1]) / 2,
    ReduceType.kRedMax: lambda terms: np.maximum(*terms),
    ReduceType.kRedMin: lambda terms: np.minimum(*terms),
    ReduceType.kRedProd: lambda terms: terms[0] * terms[1],
}
NO_FLOATS = {
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "dim_size", "iota", "logical_and", "logical_not",
    "logical_or", "logical_xor", "reduce_and", "reduce_or", "rng_bits", "shift_left", "shift_right",
}  # fmt: skip


@functools.cache
def programs():
    return occurrences(most=2)


def terms_of(value, kind):
    """Two unequal terms whose reduction is ``value``, exactly."""
    if kind is ReduceType.kRedSum:
        return value + 0.5, np.full_like(value, -0.5)
    if kind is ReduceType.kRedAvg:
        return value + 0.5, value - 0.5
    if kind is ReduceType.kRedProd:
        return value * 2, np.full_like(value, 0.5)
    lower = value - 0.5 if kind is ReduceType.kRedMax else value + 0.5
    mask = np.arange(value.size).reshape(value.shape) % 2 == 0
    return np.where(mask, value, lower), np.where(mask, lower, value)


def setting_of(program, given):
    op = operation(program)
    types = [x.type for x in op.operands], [x.type for x in op.results]
    return StrategyQuery(op, *types, op.attributes, 2, {}, given)


def may_be_partial(program, kind):
    """Which operands: floating-point ones, and complex ones where they can be compared to nothing."""
    kinds = "f" if kind in (ReduceType.kRedMax, ReduceType.kRedMin) else "fc"
    return [values(program, np.random.default_rng(0))[i].dtype.kind in kinds for i in range(len(program.inputs))]


def claims(program, kind):
    """The strategies that let partial operands of this kind in, on whole tensors."""
    fits = may_be_partial(program, kind)
    given = [Partial(kind) if fit else Replicate() for fit in fits]
    for strategy in strategies(setting_of(program, given)):
        placements = *strategy.operands, *strategy.results
        if any(p.is_partial() for p in strategy.operands) and not any(p.is_shard() for p in placements):
            if all(fit or not p.is_partial() for fit, p in zip(fits, strategy.operands, strict=True)):
                yield strategy


def assert_same(actual, expected, what):
    assert actual.dtype == expected.dtype, what
    assert actual.shape == expected.shape, what
    close = 1e-9 if expected.dtype.itemsize >= 8 and expected.dtype.kind == "f" else 1e-4
    np.testing.assert_allclose(actual, expected, rtol=close, atol=close, err_msg=what)


@pytest.mark.parametrize("kind", REDUCE, ids=lambda kind: kind.name)
def test_whatever_commutes_with_a_reduction_does(kind):
    """A strategy that lets terms in gives terms whose reduction is the result; each claim of linearity is tried."""
    tried = set()
    for name, found in programs().items():
        for program in found:
            rng = np.random.default_rng(1)
            inputs = values(program, rng)
            expected = interpret(program, inputs)[0]
            for strategy in claims(program, kind):
                terms = [terms_of(x, kind) if p.is_partial() else (x, x)
                         for x, p in zip(inputs, strategy.operands, strict=True)]  # fmt: skip
                ranks = [interpret(program, [t[rank] for t in terms])[0] for rank in range(2)]
                for placement, *parts, whole in zip(strategy.results, *ranks, expected, strict=True):
                    assert placement == Partial(kind), (name, strategy)
                    assert_same(REDUCE[kind](parts), whole, f"{operation(program)} {strategy}")
                tried.add(name)
    assert tried == patterns_of(kind).keys()


def test_every_primitive_is_reached():
    """Each primitive has programs here, and all that take no floating-point numbers are known."""
    assert all(programs().values())
    without = {name for name, found in programs().items()
               if not any(any(may_be_partial(p, ReduceType.kRedSum)) for p in found)}  # fmt: skip
    assert without == NO_FLOATS


def test_terms_of_a_sum_are_reduced_or_stay_terms():
    """The whole way on two ranks, one operand partial, then all: what comes out reduces to the value, never else."""
    mesh = ProcessMesh([0, 1])

    def main(rank):
        ensure_groups(mesh)
        return {
            f"{operation(program)} with {given}": run(program, given, mesh, rank)
            for name, found in programs().items()
            for program in found[:2]
            for given in subsets(may_be_partial(program, ReduceType.kRedSum))
        }

    for what, ((first, layouts, expected, calls), (second, *_)) in (
        (what, pair) for what, pair in joined(on_ranks(main, 2, timeout=3600))
    ):
        kept = any(layout.is_partial for layout in layouts)
        assert kept or calls, f"{what}: neither reduced nor partial"
        for a, b, layout, whole in zip(first, second, layouts, expected, strict=True):
            if layout.is_partial:
                a = a + b
            else:
                np.testing.assert_array_equal(a, b, err_msg=what)
            assert_same(a, whole, what)


def subsets(fits):
    """One after the other, then all."""
    one = [tuple(i == j for j in range(len(fits))) for i, fit in enumerate(fits) if fit]
    return list(dict.fromkeys([*one, tuple(fits)] if any(fits) else []))


def joined(ranks):
    return [(what, (ranks[0][what], ranks[1][what])) for what in ranks[0]]


def run(program, given, mesh, rank):
    """The outputs of this rank, their layouts, what they stand for, and how often ranks communicated."""
    inputs = values(program, np.random.default_rng(1))
    layouts = [Layout(mesh, [Partial() if p else Replicate()]) for p in given]
    local = [terms_of(x, ReduceType.kRedSum)[rank] if p else x for x, p in zip(inputs, given, strict=True)]
    made = partition_program(program, layouts, [], rank)
    with count_collectives() as counts:
        outputs, _ = interpret(made.program, local, [], communicators())
    return outputs, made.output_layouts, interpret(program, inputs)[0], dict(counts.calls)


@pytest.mark.parametrize("placements", [(0, None), (0, 0), (None, 0)], ids=["first", "both", "second"])
@pytest.mark.parametrize("kind", ReduceType, ids=lambda kind: kind.name)
def test_every_kind_of_reduction_is_made_and_unmade(kind, placements):
    """A tensor becomes terms of a reduction of each kind, on one and on two mesh dimensions, and is its value again;
    an operator that is linear in nothing gets the value.
    """
    x = np.array([[-2.0, -0.0, 3.0], [0.5, 1.0, 7.0]], np.float32)
    x = x > 0.7 if kind in (ReduceType.kRedAny, ReduceType.kRedAll) else x

    def main(rank):
        mesh = ProcessMesh([[0, 1], [2, 3]])
        made = shard_tensor(x, mesh, [Replicate() if p is None else Partial(kind) for p in placements])
        both = get_operator("logical_and" if x.dtype == bool else "multiply")(made, made)
        return made.numpy(), made.placements, both.numpy()

    for value, found, both in on_ranks(main, 4):
        assert Partial(kind) in found
        np.testing.assert_array_equal(value, x)
        np.testing.assert_array_equal(np.signbit(value * 1.0), np.signbit(x * 1.0))
        np.testing.assert_array_equal(both, x * x)
