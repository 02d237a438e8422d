"""Programs prepared for eager mode."""

import numpy as np

from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.reference.interpreter import interpret, prepare
from argosy_pir.builder import Builder
from argosy_pir.program import Program
from argosy_pir.types import TensorType

VECTOR = TensorType((3,), "float32")


def test_a_prepared_program_computes_what_the_interpreter_does():
    expansion = get_operator("gelu").expand([VECTOR], {"approximate": True})
    x = np.array([-1, 0, 2], np.float32)
    np.testing.assert_array_equal(prepare(expansion.program)([x])[0], interpret(expansion.program, [x])[0][0])


def test_constants_that_are_returned_cannot_be_changed_from_outside():
    run = prepare(get_operator("eye").expand([], {"num_rows": 2, "num_columns": None, "dtype": "float32"}).program)
    run([])[0][...] = 7
    np.testing.assert_array_equal(run([])[0], np.eye(2))


def test_what_depends_on_constants_alone_is_computed_when_preparing():
    program = Program()
    x = program.add_input(VECTOR)
    builder = Builder(program.block)
    two = builder.constant(TensorType((), "float32"), 2.0)
    root = builder.create("prim.sqrt", (two,)).result
    spread = builder.create("prim.broadcast", (root,), {"shape": (3,), "axes": ()}).result
    program.set_outputs([builder.create("prim.mul", (x, spread)).result])
    run = prepare(program)
    assert len(run.__self__.steps) == 1
    np.testing.assert_array_equal(run([np.ones(3, np.float32)])[0], np.full(3, np.sqrt(np.float32(2))))


def test_intermediate_values_are_let_go_after_their_last_use():
    run = prepare(get_operator("softplus").expand([VECTOR], {"beta": 1.0, "threshold": 20.0}).program)
    assert sum(map(len, run.__self__.final)) == len(run.__self__.steps) - 1
