"""Where collectives write: over the state that they replace, or over the terms that they sum."""

import numpy as np
import pytest

from argosy_cinn import CinnCompiler
from argosy_cinn.assembly.building import assemble_program
from argosy_cinn.fuel import Budget
from argosy_cinn.pipeline import lower_program
from argosy_cinn.plan import buffer_reuse
from argosy_cinn.target import Target
from argosy_hwadapt import device
from argosy_hwadapt.inproc import run_ranks
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.passes.primitives import to_primitives
from argosy_pir import Builder, Program, TensorType
from argosy_tensorcore.storage import StridedArray

N = 8


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    monkeypatch.setattr(buffer_reuse, "LARGE", 0)


def update(collective):
    """A program whose state becomes what ``collective(x, state, token)`` gives."""
    made = Program("update")
    x = made.add_input(TensorType((N, N), "float32"))
    state = made.add_state("state", TensorType((N, N), "float32")).argument
    with emit_at(Builder.at_end(made.block)):
        new, _ = collective(x, state, prim.create_token())
        made.set_outputs([prim.exp(state)], [new])
    return made


def plan_of(program):
    return assemble_program(lower_program(to_primitives(program), Target.host()), Target.host(), Budget())[0]


def half(x):
    return prim.slice(x, start=(0, 0), limit=(N // 2, N), stride=(1, 1))


GATHER = {"size": 2, "axis": 0}
CASES = {
    "gathered": (lambda x, s, token: prim.all_gather(half(x * 2.0), token, **GATHER), True),
    "gathered of the state": (lambda x, s, token: prim.all_gather(half(s * 2.0), token, **GATHER), True),
    "along columns": (
        lambda x, s, token: prim.all_gather(prim.reshape(half(x), shape=(N, N // 2)), token, size=2, axis=1),
        True,
    ),
    "summed": (lambda x, s, token: prim.all_reduce(x * 2.0, token, size=2), True),
    "scattered": (
        lambda x, s, token: prim.reduce_scatter(prim.concat(x, x * 3.0, axis=0), token, size=2, axis=0),
        True,
    ),
    "the state itself": (lambda x, s, token: prim.all_reduce(s, token, size=2), False),
    "the state, exchanged": (
        lambda x, s, token: prim.all_to_all(s, token, size=2, split_axis=0, concat_axis=0),
        False,
    ),
}


@pytest.mark.parametrize(("collective", "in_place"), CASES.values(), ids=CASES)
def test_states_are_written_where_they_lie(collective, in_place):
    """Unless the collective reads them there; who reads the old state does so before."""
    program = update(collective)
    assert bool(plan_of(program).in_place) == in_place
    rng = np.random.default_rng(0)
    given = [(rng.random((N, N), np.float32), rng.random((N, N), np.float32)) for _ in range(2)]

    def rank(communicator):
        x, start = given[communicator.rank]
        state = StridedArray.from_array(start.copy())
        executable = CinnCompiler().compile(program, device("cpu"), [communicator])
        runs = []
        for _ in range(2):
            (made,) = executable.run([StridedArray.from_array(x)], [state])
            runs.append((made.to_host(), state.to_host().copy()))
        return runs

    states = [state for _, state in given]
    for step in range(2):
        found = [runs[step] for runs in run_ranks(rank, 2)]
        after = expected(collective, [x for x, _ in given], states)
        for (made, state), old, new in zip(found, states, after, strict=True):
            np.testing.assert_allclose(made, np.exp(old), rtol=1e-5)
            np.testing.assert_allclose(state, new, rtol=1e-6)
        states = after


def expected(collective, xs, states):
    """The new states, in numpy."""
    name = next(name for name, case in CASES.items() if case[0] is collective)
    rows = N // 2
    if name == "gathered":
        return [np.concatenate([2 * x[:rows] for x in xs])] * 2
    if name == "gathered of the state":
        return [np.concatenate([2 * s[:rows] for s in states])] * 2
    if name == "along columns":
        return [np.concatenate([x[:rows].reshape(N, rows) for x in xs], 1)] * 2
    if name == "summed":
        return [2 * xs[0] + 2 * xs[1]] * 2
    if name == "scattered":
        return [xs[0] + xs[1], 3 * xs[0] + 3 * xs[1]]
    if name == "the state itself":
        return [states[0] + states[1]] * 2
    return [np.concatenate([np.split(s, 2)[rank] for s in states]) for rank in range(2)]


def test_coalesced_collectives_write_where_results_lie():
    """Gathered parts over the states that they replace, parts of sums over their terms."""
    program = Program("step")
    x = program.add_input(TensorType((N, N), "float32"))
    states = [program.add_state(name, TensorType((N, N), "float32")).argument for name in ("first", "second")]
    with emit_at(Builder.at_end(program.block)):
        terms = [prim.dot_general(x, s, lhs_contract=(1,), rhs_contract=(0,)) for s in states]
        *parts, token = prim.reduce_scatter_coalesced(*terms, prim.create_token(), size=2)
        new = [half(s) - part for s, part in zip(states, parts, strict=True)]
        *wholes, token = prim.all_gather_coalesced(*new, token, size=2)
        program.set_outputs([], wholes)
    plan = plan_of(program)
    scatter = next(s.group.op for s in plan.steps if s.group.op and s.group.op.kind == "reduce_scatter_coalesced")
    for operand, result in zip(scatter.operands[:-1], scatter.results[:-1], strict=True):
        assert plan.places[operand] == plan.places[result]
    assert len(plan.in_place) == 2

    rng = np.random.default_rng(0)
    given = rng.random((2, N, N), np.float32)
    firsts = rng.random((2, N, N), np.float32)

    def rank(communicator):
        held = [StridedArray.from_array(s.copy()) for s in firsts]
        executable = CinnCompiler().compile(program, device("cpu"), [communicator])
        for _ in range(2):
            executable.run([StridedArray.from_array(given[communicator.rank])], held)
        return [s.to_host() for s in held]

    expected = firsts
    for _ in range(2):
        sums = [sum(x @ s for x in given) for s in expected]
        rows = [np.concatenate([s[: N // 2]] * 2) for s in expected]
        expected = [r - t for r, t in zip(rows, sums, strict=True)]
    for made in run_ranks(rank, 2):
        np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-4)


def test_a_sum_lies_where_its_terms_were():
    """Where nobody reads these later."""

    def program(reads_terms):
        made = Program("sum")
        x = made.add_input(TensorType((N, N), "float32"))
        with emit_at(Builder.at_end(made.block)):
            terms = prim.dot_general(x, x, lhs_contract=(1,), rhs_contract=(0,))
            total, _ = prim.all_reduce(terms, prim.create_token(), size=2)
            made.set_outputs([prim.cumulative(total * terms if reads_terms else total, axis=0, kind="sum")])
        return made

    def places(program):
        plan = plan_of(program)
        op = next(step.group.op for step in plan.steps if step.group.op and step.group.op.name == "prim.all_reduce")
        return plan.places[op.operand(0)], plan.places[op.results[0]]

    first, second = places(program(False)), places(program(True))
    assert first[0] == first[1]
    assert second[0] != second[1]

    def rank(communicator):
        x = np.full((N, N), 1 + communicator.rank, np.float32)
        return [
            CinnCompiler()
            .compile(program(reads), device("cpu"), [communicator])
            .run([StridedArray.from_array(x)], [])[0]
            .to_host()
            for reads in (False, True)
        ]

    for r, (plain, weighted) in enumerate(run_ranks(rank, 2)):
        column = np.arange(1, N + 1, dtype=np.float32)[:, None] * np.ones(N, np.float32)
        np.testing.assert_allclose(plain, 5 * N * column)
        np.testing.assert_allclose(weighted, 5 * N * (1 + r) ** 2 * N * column)
