"""Collectives of a program, run by one interpreter for each rank."""

import numpy as np
import pytest

from argosy_hwadapt.inproc import run_ranks
from argosy_phi_ops import prim
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.errors import OperatorError
from argosy_phi_ops.primitives import PRIMITIVES
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir.builder import Builder
from argosy_pir.program import Program
from argosy_pir.types import TensorType, TokenType

RANKS = 3


def program_of(name, shape, attributes, result_shape):
    """A program that applies one collective to its input."""
    program = Program()
    x = program.add_input(TensorType(shape, "float32"))
    builder = Builder(program.block)
    token = builder.create("prim.create_token", (), {}, [TokenType()]).result
    types = [TensorType(result_shape, "float32"), TokenType()]
    program.set_outputs([builder.create(f"prim.{name}", (x, token), attributes, types).results[0]])
    return program


def run(name, inputs, attributes, result_shape):
    """The result of the collective on every rank, given every rank's input."""
    program = program_of(name, inputs[0].shape, attributes, result_shape)

    def rank(communicator):
        return interpret(program, [inputs[communicator.rank]], (), [communicator])[0][0]

    return run_ranks(rank, RANKS)


@pytest.fixture(name="inputs")
def _inputs():
    rng = np.random.default_rng(0)
    return [rng.integers(0, 9, (3, 2)).astype(np.float32) for _ in range(RANKS)]


@pytest.mark.parametrize(("kind", "reduce"), [("sum", np.sum), ("max", np.max), ("min", np.min), ("prod", np.prod),
                                              ("avg", np.mean)])  # fmt: skip
def test_all_reduce(inputs, kind, reduce):
    expected = reduce(np.stack(inputs), axis=0)
    for result in run("all_reduce", inputs, {"group": (), "size": RANKS, "kind": kind}, (3, 2)):
        np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
def test_all_gather_joins_along_the_axis(inputs, axis):
    shape = (9, 2) if axis == 0 else (3, 6)
    for result in run("all_gather", inputs, {"group": (0, 1, 2), "size": RANKS, "axis": axis}, shape):
        np.testing.assert_array_equal(result, np.concatenate(inputs, axis))


def test_reduce_scatter_leaves_every_rank_its_part(inputs):
    results = run("reduce_scatter", inputs, {"group": (), "size": RANKS, "axis": 0, "kind": "sum"}, (1, 2))
    np.testing.assert_array_equal(np.concatenate(results), sum(inputs))


def test_all_to_all_exchanges_parts(inputs):
    attributes = {"group": (), "size": RANKS, "split_axis": 0, "concat_axis": 1}
    for rank, result in enumerate(run("all_to_all", inputs, attributes, (1, 6))):
        np.testing.assert_array_equal(result, np.concatenate([x[rank : rank + 1] for x in inputs], 1))


def test_broadcast_gives_everyone_the_roots(inputs):
    for result in run("broadcast_rank", inputs, {"group": (), "size": RANKS, "root": 1}, (3, 2)):
        np.testing.assert_array_equal(result, inputs[1])


GROUP = {"group": (), "size": RANKS}
STARTED = [
    ("all_reduce", {**GROUP, "kind": "max"}, {}),
    ("all_gather", {**GROUP, "axis": 1}, {}),
    ("reduce_scatter", {**GROUP, "axis": 0, "kind": "sum"}, {}),
    ("all_to_all", {**GROUP, "axis": 0, "concat_axis": 1}, {"axis": "split_axis"}),
    ("broadcast_rank", {**GROUP, "root": 2}, {}),
    ("permute", {"pairs": ((0, 1), (1, 2))}, {}),
]


@pytest.mark.parametrize(("name", "attributes", "renamed"), STARTED)
def test_what_is_started_and_waited_for_is_what_the_collective_gives(inputs, name, attributes, renamed):
    """Two are on their way at once while the operand is written over; each wait gets its own."""

    def build(started):
        program = Program()
        x = program.add_input(TensorType((3, 2), "float32"))
        with emit_at(Builder.at_end(program.block)):
            token = prim.create_token()
            if started:
                y, one, token = prim.start(x, token, collective=name, **attributes)
                z, other, token = prim.start(x + x, token, collective=name, **attributes)
                z, token = prim.wait(z, other, token)
                y, token = prim.wait(y, one, token)
            else:
                plain = {renamed.get(key, key): value for key, value in attributes.items()}
                y, token = getattr(prim, name)(x, token, **plain)
                z, token = getattr(prim, name)(x + x, token, **plain)
        program.set_outputs([y, z])
        program.verify()
        return program

    programs = build(True), build(False)

    def rank(communicator):
        return [interpret(program, [inputs[communicator.rank]], (), [communicator])[0] for program in programs]

    for started, plain in run_ranks(rank, RANKS):
        for one, other in zip(started, plain, strict=True):
            np.testing.assert_array_equal(one, other)


def test_what_cannot_be_started_is_refused():
    with pytest.raises(OperatorError, match=r"prim.start: collective 'send', expected one of all_reduce, all_gather"):
        PRIMITIVES["start"].infer([TensorType((2,), "float32"), TokenType()], {"collective": "send", "size": 2})


def test_permute_sends_along_pairs_and_leaves_zeros_elsewhere(inputs):
    results = run("permute", inputs, {"pairs": ((0, 1), (1, 2))}, (3, 2))
    for result, expected in zip(results, [0 * inputs[0], inputs[0], inputs[1]], strict=True):
        np.testing.assert_array_equal(result, expected)


def test_send_and_recv_form_a_ring(inputs):
    def rank(communicator):
        me, size = communicator.rank, communicator.size
        program = Program()
        x = program.add_input(TensorType((3, 2), "float32"))
        builder = Builder(program.block)
        token = builder.create("prim.create_token", (), {}, [TokenType()]).result
        sent = builder.create("prim.send", (x, token), {"peer": (me + 1) % size, "tag": 0}, [TokenType()]).result
        attributes = {"shape": (3, 2), "dtype": "float32", "peer": (me - 1) % size, "tag": 0}
        got = builder.create("prim.recv", (sent,), attributes, [TensorType((3, 2), "float32"), TokenType()])
        program.set_outputs([got.results[0]])
        return interpret(program, [inputs[me]], (), [communicator])[0][0]

    for me, result in enumerate(run_ranks(rank, RANKS)):
        np.testing.assert_array_equal(result, inputs[me - 1])


def test_a_missing_communicator_is_named(inputs):
    program = program_of("all_reduce", (3, 2), {"group": (5, 6), "size": 2, "kind": "sum"}, (3, 2))
    with pytest.raises(RuntimeError, match=r"all_reduce.*\(5, 6\)") as caught:
        interpret(program, [inputs[0]])
    assert caught.value.__notes__ == ["while interpreting 'prim.all_reduce'"]  # and no line, where none is known
