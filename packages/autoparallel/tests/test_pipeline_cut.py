"""A program cut into pieces of stages: what the pieces compute together is what it computes."""

import numpy as np
import pytest

from argosy_autoparallel.pipeline.cut import cut, extract
from argosy_autoparallel.pipeline.stages import assign_stages
from argosy_autoparallel.schedule import ScheduleError
from argosy_phi_ops import prim
from argosy_phi_ops.context import building
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir import Builder, Program, TensorType


def built(stages=(0, 1, 1, 1)):
    """A step by hand: ``sum(x w0 w1 w0)`` over two stages that share the first weight, and gradients of the weights."""
    program = Program("step")
    type = TensorType([3], "float32")
    x = program.add_input(type, "x")
    w0, w1 = (program.add_state(name, type).argument for name in ("w0", "w1"))
    with building(Builder.at_end(program.block)):
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
        op.attributes["stage"] = stage
    for value, stage, phase in [
        (dz, 1, "input"), (d0_late, 1, "weight"), (d1, 1, "weight"), (dy, 1, "input"), (d0_early, 0, "weight"),
        (d0, 0, "weight"),
    ]:  # fmt: skip
        value.op.attributes.update(stage=stage, phase=f"{phase}-gradient")
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
