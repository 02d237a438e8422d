"""A program cut into pieces of stages: what the pieces compute together is what it computes."""

import numpy as np
import pytest

import argosy_autoparallel.pipeline.cut_stages  # noqa: F401  (registers its pass)
from argosy_autoparallel import ProcessMesh
from argosy_autoparallel.pipeline.cut import cut, extract
from argosy_autoparallel.pipeline.local_pieces import add_accumulation, localize_pieces
from argosy_autoparallel.pipeline.schedules import eager_one_f_one_b, f_then_b, one_f_one_b, zb_h1
from argosy_autoparallel.pipeline.stages import assign_stages
from argosy_autoparallel.pipeline.step_lists import step_lists
from argosy_autoparallel.schedule import InstructionError, Ref, ScheduleError, run_in_step, verify
from argosy_autoparallel.tensor_layout import Layout
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType
from argosy_pir.passes import PassManager


def built(stages=(0, 1, 1, 1)):
    """A step by hand: ``sum(x w0 w1 w0)`` over two stages that share the first weight, and gradients of the weights."""
    program = Program("step")
    type = TensorType([3], "float32")
    x = program.add_input(type, "x")
    w0, w1 = (program.add_state(name, type).argument for name in ("w0", "w1"))
    with emit_at(Builder.at_end(program.block)):
        y = prim.mul(x, w0)
        z = prim.mul(y, w1)
        u = prim.mul(z, w0)
        loss = prim.reduce_sum(u, axes=(0,))
        forward = [v.op for v in (y, z, u, loss)]
        dz = prim.mul(prim.broadcast(prim.constant(1, "float32", ()), shape=(3,), axes=()), w0)
        d0_late = prim.mul(prim.broadcast(prim.constant(1, "float32", ()), shape=(3,), axes=()), z)
        d1 = prim.mul(dz, y)
        dy = prim.mul(dz, w1)
        d0_early = prim.mul(dy, x)
        d0 = prim.add(d0_late, d0_early)
    for op, stage in zip(forward, stages, strict=True):
        op.annotate(stage=stage)
    for value, stage, phase in [
        (dz, 1, "input"), (d0_late, 1, "weight"), (d1, 1, "weight"), (dy, 1, "input"), (d0_early, 0, "weight"),
        (d0, 0, "weight"),
    ]:  # fmt: skip
        value.op.annotate(stage=stage, phase=f"{phase}-gradient")
    program.set_outputs([loss, d0, d1])
    return program


def run_pieces(whole, arguments):
    """The values of all pieces, run in the order of dependence; gradients by position, their terms added up."""
    values, gradients = dict(zip(whole.program.inputs, arguments[:1], strict=True)), {}

    def order(key):
        return (0, key[1]) if key[0] == "forward" else (1 + (key[0] == "backward_weight"), -key[1])

    for key in sorted(whole.pieces, key=order):
        piece = whole.pieces[key]
        states = [arguments[1 + n] for n in piece.states]
        made, _ = interpret(piece.program, [values[v] for v in piece.inputs], states)
        values.update(zip(piece.outputs, made, strict=False))
        for position, term in zip(piece.gradients, made[len(piece.outputs) :], strict=True):
            gradients[position] = gradients.get(position, 0) + term
    return values, gradients


@pytest.mark.parametrize("split", [False, True])
def test_pieces_compute_what_the_program_does(split):
    """Residuals, messages and the terms of a shared weight included."""
    program = built()
    whole = cut(program, assign_stages(program, 2, {}, {}), 2, split, (1, 2))
    arguments = [np.arange(3, dtype=np.float32) + i for i in range(3)]
    wanted, _ = interpret(program, arguments[:1], arguments[1:])
    values, gradients = run_pieces(whole, arguments)
    np.testing.assert_array_equal(values[program.outputs[0]], wanted[0])
    for position in (1, 2):
        np.testing.assert_array_equal(gradients[position], wanted[position])


@pytest.mark.parametrize("text", ["cut-stages{gradients=[1,2]}", "cut-stages{split=true,gradients=[1,2]}"])
def test_the_pass_calls_pieces_that_inlining_brings_back(text):
    """The program computes what it did, in calls and inlined, and writes the states that it wrote."""
    program = built()
    total = program.add_state("total", program.outputs[0].type).argument
    with emit_at(Builder.before(program.block.last)):
        update = prim.add(total, program.outputs[0])
    update.op.annotate(stage=1)
    program.set_outputs(program.outputs, [*program.state_updates[:2], update])
    arguments = [np.arange(3, dtype=np.float32) + i for i in range(3)]
    states = [*arguments[1:], np.float32(2.0)]
    wanted = interpret(program, arguments[:1], states)
    for steps in (text, f"{text},inline,symbol-dce"):
        made = program.clone()
        PassManager(steps).run(made)
        assert bool(made.functions) == (steps == text)
        for found, expected in zip(interpret(made, arguments[:1], states), wanted, strict=True):
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b)


def test_stages_send_what_the_other_reads_and_nothing_else():
    """One value forward, one gradient back; the shared weight's gradient is not sent but summed where it is made."""
    program = built()
    whole = cut(program, assign_stages(program, 2, {}, {}), 2, True, (1, 2))
    sent = {
        (whole.names[value], key[1])
        for key, piece in whole.pieces.items()
        for value in piece.outputs
        if any(reader[1] != key[1] for reader in whole.readers(value))
    }
    assert len(sent) == 2
    assert {stage for _, stage in sent} == {0, 1}
    assert whole.stages_of_state(0) == [0, 1]
    assert whole.stages_of_state(1) == [1]
    assert whole.pieces["backward_weight", 0].gradients == (1,)
    assert whole.pieces["backward_weight", 1].gradients == (1, 2)


def test_a_stage_reads_no_later_one():
    """The line of the operation that would is named before anything is cut."""
    program = built(stages=(1, 0, 1, 1))
    with pytest.raises(ScheduleError, match="is of stage 0, but reads what stage 1 computes"):
        assign_stages(program, 2, {}, {})
    program = built(stages=(0, 1, 2, 1))
    with pytest.raises(ScheduleError, match="is of stage 2; there are 2"):
        assign_stages(program, 2, {}, {})


def test_extracting_takes_what_is_given():
    """The program of some results from some values; KeyError where it takes more."""
    program = built()
    y, z = (program.block.operations[i].result for i in (0, 1))
    made = extract(program, [z], [y, program.states[1].argument])
    assert len(list(made.block)) == 2
    with pytest.raises(KeyError):
        extract(program, [z], [y])


def lists_and_functions(orders, microbatches, arguments):
    """The lists of two ranks, their functions on the reference interpreter, and the sums of gradients on each."""
    split = any(run.piece == "backward_weight" for order in orders for run in order)
    program = built()
    whole = cut(program, assign_stages(program, 2, {}, {}), 2, split, (1, 2))
    meshes = [ProcessMesh([0]), ProcessMesh([1])]
    inputs = dict.fromkeys(program.inputs)
    made, sums = [], []
    for rank in range(2):
        states = [{stage: Layout.replicate(mesh) for stage, mesh in enumerate(meshes)} for _ in program.states]
        local = localize_pieces(whole, meshes, inputs, states, rank)
        mine, totals = {("report", None): lambda *arrays: [np.array(a) for a in arrays]}, {}
        for key, part in local.programs.items():
            if part is not None:
                mine[key] = _function(part, whole.pieces[key], arguments, totals)
        made.append(mine)
        sums.append(totals)
    lists = step_lists(orders, [local], microbatches, 2, [program.outputs[:1]])
    return lists, made, sums


def _function(program, piece, arguments, totals):
    add_accumulation(program, len(piece.gradients))

    def run(*arrays):
        sums = [totals.setdefault(position, np.zeros(3, np.float32)) for position in piece.gradients]
        made, states = interpret(program, arrays, [*(arguments[1 + n] for n in piece.states), *sums])
        totals.update(zip(piece.gradients, states[len(piece.states) :], strict=True))
        return made

    return run


SCHEDULES = [f_then_b, one_f_one_b, eager_one_f_one_b, zb_h1]


@pytest.mark.parametrize("microbatches", [1, 2, 5])
def test_gradients_have_the_same_bits_under_every_schedule(microbatches):
    """The lists pass the check, run in step in one thread, and give each stage the sums of one process."""
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(3).astype(np.float32) for _ in range(3)]
    xs = [rng.standard_normal(3).astype(np.float32) for _ in range(microbatches)]
    wanted = [interpret(built(), [x], arguments[1:])[0] for x in xs]
    found = []
    for schedule in SCHEDULES:
        lists, functions, sums = lists_and_functions(schedule(2, microbatches), microbatches, arguments)
        verify(lists)
        given = [{ref: xs[ref.at[0]] for ref in one.given} for one in lists]
        left = run_in_step(lists, functions, given)
        for m, (loss, *_) in enumerate(wanted):
            assert [values[Ref("result0", (m,))] for values in left] == [loss, loss]
        found.append(sums)
        np.testing.assert_allclose(sums[0][1] + sums[1][1], sum(g for _, g, _ in wanted), rtol=1e-5, atol=1e-6)
    for sums in found[1:]:
        for mine, first in zip(sums, found[0], strict=True):
            assert mine.keys() == first.keys()
            assert all(mine[position].tobytes() == first[position].tobytes() for position in mine)


def test_a_piece_that_raises_is_named():
    """Rank, instruction and cause."""
    arguments = [np.ones(3, np.float32)] * 3
    lists, functions, _ = lists_and_functions(one_f_one_b(2, 2), 2, arguments)
    functions[1]["forward", 1] = lambda *arrays: 1 / 0
    given = [{ref: arguments[0] for ref in one.given} for one in lists]
    with pytest.raises(InstructionError, match=r"rank 1, instruction \d+: run forward\[1, 0\]: ZeroDivisionError"):
        run_in_step(lists, functions, given)
