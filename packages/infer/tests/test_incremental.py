"""The incremental program gives what the whole program gives, token by token, for any number of sequences."""

import numpy as np
import pytest

from argosy_infer import Generator, LoadedProgram, SamplingOptions, make_incremental
from argosy_infer.errors import IncrementalError
from argosy_phi_ops import prim
from argosy_phi_ops.context import building, context
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.passes.decompose import Decompose
from argosy_phi_ops.reference.interpreter import interpret
from argosy_pir.builder import Builder
from argosy_pir.dims import SymExpr
from argosy_pir.program import Program
from argosy_pir.types import TensorType

VOCABULARY, WIDTH, HEADS, CONTEXT = 11, 8, 2, 16
B, S = SymExpr.symbol("b"), SymExpr.symbol("s")
SHAPES = {
    "tokens": (VOCABULARY, WIDTH),
    "positions": (CONTEXT, WIDTH),
    "qkv": (WIDTH, 3 * WIDTH),
    "out": (WIDTH, WIDTH),
}


def attention(x, states):
    size = WIDTH // HEADS
    qkv = prim.dot_general(x, states["qkv"], lhs_contract=(2,), rhs_contract=(0,))
    qkv = prim.reshape(qkv, shape=(B, S, 3, HEADS, size))
    parts = []
    for i in range(3):
        part = prim.slice(qkv, start=(0, 0, i, 0, 0), limit=(B, S, i + 1, HEADS, size), stride=(1,) * 5)
        parts.append(prim.reshape(part, shape=(B, S, HEADS, size)))
    op = get_operator("scaled_dot_product_attention")
    operands, attributes = op.signature.bind(tuple(parts), {"is_causal": True})
    made = context().builder.create("phi.scaled_dot_product_attention", operands, attributes)
    mixed = prim.reshape(made.results[0], shape=(B, S, WIDTH))
    return prim.dot_general(mixed, states["out"], lhs_contract=(2,), rhs_contract=(0,))


def model(positions="iota", extra=None):
    """A one-layer causal model: embeddings, attention with a residual, and logits by the embedding table."""
    program = Program("model")
    ids = program.add_input(TensorType((B, S), "int64"), "ids")
    states = {name: program.add_state(name, TensorType(shape, "float32")).argument for name, shape in SHAPES.items()}
    with building(Builder.at_end(program.block)):
        x = prim.gather(states["tokens"], prim.reshape(ids, shape=(B, S, 1)), axes=(0,))
        if positions == "iota":
            index = prim.iota(shape=(S, 1), axis=0, dtype="int64")
            rows = prim.gather(states["positions"], index, axes=(0,))
        else:
            rows = prim.slice(states["positions"], start=(0, 0), limit=(S, WIDTH), stride=(1, 1))
        x = x + rows
        x = x + attention(x, states)
        if extra is not None:
            x = extra(x)
        flat = prim.reshape(x, shape=(B * S, WIDTH))
        logits = prim.dot_general(flat, states["tokens"], lhs_contract=(1,), rhs_contract=(1,))
        logits = prim.reshape(logits, shape=(B, S, VOCABULARY))
    program.set_outputs([logits])
    program.verify()
    return program


def weights(seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}


def whole(program, states, ids):
    plain = program.clone()
    Decompose().run(plain)
    (logits,), _ = interpret(plain, [np.asarray(ids, np.int64)], [states[s.name] for s in program.states])
    return logits


@pytest.mark.parametrize("positions", ["iota", "slice"])
@pytest.mark.parametrize("chunks", [(7,), (1,) * 7, (4, 2, 1)])
def test_any_split_into_steps_gives_the_logits_of_the_whole(positions, chunks):
    program, states = model(positions), weights()
    ids = np.random.default_rng(1).integers(0, VOCABULARY, 7)
    expected = whole(program, states, ids[None])[0]
    generator = Generator(LoadedProgram(program, states), capacity=16, block_size=2, compiler="reference")
    at = 0
    for size in chunks:
        logits = generator.step(ids[at : at + size], range(at, at + size), [0] * size)
        np.testing.assert_allclose(logits, expected[at : at + size], rtol=2e-5, atol=1e-5)
        at += size


def test_sequences_share_a_step_without_seeing_each_other():
    program, states = model(), weights()
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, VOCABULARY, 5), rng.integers(0, VOCABULARY, 3)
    generator = Generator(LoadedProgram(program, states), capacity=32, block_size=4, compiler="reference")
    logits = generator.step([*first, *second], [*range(5), *range(3)], [7] * 5 + [9] * 3)
    np.testing.assert_allclose(logits[:5], whole(program, states, first[None])[0], rtol=2e-5, atol=1e-5)
    np.testing.assert_allclose(logits[5:], whole(program, states, second[None])[0], rtol=2e-5, atol=1e-5)


def test_greedy_generation_equals_running_the_whole_program_again_and_again():
    program, states = model(), weights()
    generator = Generator(LoadedProgram(program, states), capacity=16, block_size=4, compiler="reference")
    made = generator.generate([3, 1], 6)
    ids = [3, 1]
    for _ in range(6):
        ids.append(int(whole(program, states, [ids])[0, -1].argmax()))
    assert made == ids[2:]
    assert sorted(generator.allocator.free) == [0, 1, 2, 3]  # all blocks came back


def test_prompts_of_any_length_need_one_compilation_of_each_program():
    pytest.importorskip("argosy_cinn")
    program, states = model(), weights()
    plain = Generator(LoadedProgram(program, states), capacity=32, block_size=4, compiler="reference")
    compiled = Generator(LoadedProgram(program, states), capacity=32, block_size=4, compiler="cinn")
    for prompt in ([1, 2, 3], [4], [5, 6, 7, 8, 9, 10, 1]):
        assert compiled.generate(prompt, 5) == plain.generate(prompt, 5)
    for predictor in (compiled.predictor, compiled._of_one):
        report = predictor.executable.report()
        assert report["not_symbolic"] == ""
        assert report["compilations"] == 1


def test_tokens_of_one_sequence_attend_in_one_kernel():
    """What is cached is gathered once for a piece of a prompt, and no scores lie in memory."""
    cinn = pytest.importorskip("argosy_cinn")
    generator = Generator(LoadedProgram(model(), weights()), capacity=32, block_size=4, compiler="cinn")
    generator.step([1, 2, 3], range(3), [0] * 3)
    kernels = [line.split()[0] for line in cinn.explain(generator._of_one.executable).splitlines() if line[:2] == "  "]
    assert sum(name.startswith("attention_") for name in kernels) == 1


def test_sampling_repeats_for_a_seed_and_differs_between_seeds():
    program, states = model(), weights()
    generator = Generator(LoadedProgram(program, states), capacity=64, compiler="reference")
    runs = [generator.generate([1], 12, SamplingOptions(temperature=1.5, top_k=8, seed=s)) for s in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


def test_the_incremental_program_verifies_and_parses_back():
    program = make_incremental(model())
    program.verify()
    assert str(Program.parse(str(program))) == str(program)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (lambda x: prim.cumulative(x, axis=1, kind="sum"), r"cumulative .*mixes indices along the tokens"),
        (lambda x: prim.reverse(x, axes=(1,)), r"reverse .*mixes indices along the tokens"),
        (
            lambda x: x + prim.broadcast(prim.reduce_sum(x, axes=(1,)), shape=x.shape, axes=(0, 2)),
            "reduces over the tokens",
        ),
    ],
)
def test_what_mixes_positions_is_refused_by_name(extra, message):
    with pytest.raises(IncrementalError, match=message):
        make_incremental(model(extra=extra))
