"""The incremental program gives what the whole program gives, token by token, for any number of sequences."""

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy_infer import Generator, LoadedProgram, Predictor, SamplingOptions, make_incremental
from argosy_infer.caches import Cache, caches_of
from argosy_infer.errors import IncrementalError
from argosy_phi_ops import prim
from argosy_phi_ops.compiler import available_compilers
from argosy_phi_ops.context import context, emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.ops.common.loops import scan
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


def attention(x, states, window):
    size = WIDTH // HEADS
    qkv = prim.dot_general(x, states["qkv"], lhs_contract=(2,), rhs_contract=(0,))
    qkv = prim.reshape(qkv, shape=(B, S, 3, HEADS, size))
    parts = []
    for i in range(3):
        part = prim.slice(qkv, start=(0, 0, i, 0, 0), limit=(B, S, i + 1, HEADS, size), stride=(1,) * 5)
        parts.append(prim.reshape(part, shape=(B, S, HEADS, size)))
    op = get_operator("scaled_dot_product_attention")
    operands, attributes = op.signature.bind(tuple(parts), {"is_causal": True, "window": window})
    made = context().builder.create("phi.scaled_dot_product_attention", operands, attributes)
    mixed = prim.reshape(made.results[0], shape=(B, S, WIDTH))
    return prim.dot_general(mixed, states["out"], lhs_contract=(2,), rhs_contract=(0,))


def model(positions="iota", extra=None, window=None):
    """A one-layer causal model: embeddings, attention with a residual, and logits by the embedding table."""
    program = Program("model")
    ids = program.add_input(TensorType((B, S), "int64"), "ids")
    states = {name: program.add_state(name, TensorType(shape, "float32")).argument for name, shape in SHAPES.items()}
    with emit_at(Builder.at_end(program.block)):
        x = prim.gather(states["tokens"], prim.reshape(ids, shape=(B, S, 1)), axes=(0,))
        if positions == "iota":
            index = prim.iota(shape=(S, 1), axis=0, dtype="int64")
            rows = prim.gather(states["positions"], index, axes=(0,))
        else:
            rows = prim.slice(states["positions"], start=(0, 0), limit=(S, WIDTH), stride=(1, 1))
        x = x + rows
        x = x + attention(x, states, window)
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


def test_prompts_of_any_length_need_one_compilation():
    pytest.importorskip("argosy_cinn")
    program, states = model(), weights()
    plain = Generator(LoadedProgram(program, states), capacity=32, block_size=4, compiler="reference")
    compiled = Generator(LoadedProgram(program, states), capacity=32, block_size=4, compiler="cinn")
    for prompt in ([1, 2, 3], [4], [5, 6, 7, 8, 9, 10, 1]):
        assert compiled.generate(prompt, 5) == plain.generate(prompt, 5)
    report = compiled.predictor.executable.report()
    assert report["not_symbolic"] == ""
    assert report["compilations"] == 1


@settings(deadline=None, max_examples=12)
@given(st.data())
def test_any_interleaving_of_sequences_and_pieces_gives_the_logits_of_the_whole(steppers, data):
    """Any sequences advance by any number of tokens in a step, in any order, and any of the tokens are wanted."""
    expected, generators = steppers
    generator = data.draw(st.sampled_from(generators))
    ids = np.array(data.draw(st.lists(st.integers(0, VOCABULARY - 1), min_size=CONTEXT, max_size=CONTEXT)))
    wanted = expected(ids)
    names, lengths = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)), {}
    for name in list(generator.allocator.tables):  # of an example that failed
        generator.allocator.release(name)
    for _ in range(data.draw(st.integers(1, 5))):
        new = {n: data.draw(st.integers(0, min(5, CONTEXT - lengths.get(n, 0)))) for n in names}
        tokens = [(n, lengths.get(n, 0) + i) for n in names for i in range(new[n])]
        if not tokens:
            continue
        tokens = data.draw(st.permutations(tokens))
        outputs = data.draw(st.lists(st.integers(0, len(tokens) - 1), min_size=1, max_size=len(tokens) + 2))
        owners, places = map(list, zip(*tokens, strict=True))
        logits = generator.step(ids[places], places, owners, outputs)
        np.testing.assert_allclose(logits, wanted[[places[i] for i in outputs]], rtol=2e-5, atol=1e-4)
        lengths = {n: lengths.get(n, 0) + new[n] for n in names}
    for name in names:
        generator.allocator.release(name)
    assert len(generator.allocator.free) == generator.allocator.blocks


@pytest.fixture(scope="module", params=[None, 1, 3], ids=["full", "window 1", "window 3"])
def steppers(request):
    program, states = model(window=request.param), weights()
    compilers = ["reference", *(["cinn"] if find_spec("argosy_cinn") else [])]
    loaded = LoadedProgram(program, states)
    return lambda ids: whole(program, states, ids[None])[0], [
        Generator(loaded, capacity=128, block_size=size, compiler=c) for c in compilers for size in (1, 3, 16)
    ]


def test_a_step_computes_of_the_wanted_tokens_what_follows_the_last_attention():
    """The product with the vocabulary has as many rows as there are outputs."""
    program = make_incremental(model())
    heads = [op for op in program.walk() if op.name == "prim.dot_general" and op.result.shape[-1] == VOCABULARY]
    assert [str(op.result.shape[0]) for op in heads] == ["m"]


def test_the_program_describes_its_caches_and_limits():
    program = make_incremental(model(window=3), block_size=8)
    size = WIDTH // HEADS
    assert caches_of(program) == (
        Cache("cache.0.key", "window", 0, (8, HEADS, size), "float32", 3),
        Cache("cache.0.value", "window", 0, (8, HEADS, size), "float32", 3),
    )
    assert caches_of(program)[0].block_bytes == 8 * WIDTH * 4
    assert program.attributes["tokens_limit"] == VOCABULARY
    assert program.attributes["positions_limit"] == CONTEXT
    assert caches_of(model()) == ()


@pytest.mark.parametrize("compiler", sorted({"reference", available_compilers()[0]}))
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tokens": [1, VOCABULARY]}, "tokens: index 11 is out of range; expected 0 to 10"),
        ({"positions": [0, CONTEXT]}, "positions: index 16 is out of range"),
        ({"starts": [0, 1]}, "starts: index 1 is out of range"),
        ({"outputs": [2]}, "outputs: index 2 is out of range"),
    ],
)
def test_the_program_refuses_numbers_that_it_does_not_have(compiler, changed, message):
    program = make_incremental(model(), block_size=4)
    caches = {cache.name: cache.allocate(2) for cache in caches_of(program)}
    predictor = Predictor(LoadedProgram(program, {**weights(), **caches}), compiler)
    given = {"tokens": [1, 2], "positions": [0, 1], "starts": [0, 2], "block_tables": [[1]], "outputs": [1]}
    predictor.run(**given)
    before = predictor.states["cache.0.key"].array().copy()
    with pytest.raises(IndexError, match=message):
        predictor.run(**given | changed)
    np.testing.assert_array_equal(predictor.states["cache.0.key"].array(), before)


def test_caches_of_bytes_have_scales_and_keep_windows():
    """Each token and head has one; what differs is how keys and values are rounded."""
    program, states = model(window=3), weights()
    made = make_incremental(program, block_size=8, cache_dtype="int8")
    found = {c.name: c for c in caches_of(made)}
    assert found["cache.0.value"] == Cache("cache.0.value", "window", 0, (8, HEADS, WIDTH // HEADS), "int8", 3)
    scales = Cache("cache.0.key.scales", "window", 0, (8, HEADS), "float32", 3, "cache.0.key")
    assert found["cache.0.key.scales"] == scales
    generator = Generator(LoadedProgram(program, states), 32, 4, "reference", cache_dtype="int8")
    ids = np.array([1, 2, 3, 10, 4, 5, 9])
    logits = np.concatenate([generator.step(ids[i : i + 1], [i], [0]) for i in range(7)])
    expected = whole(program, states, ids[None])[0]
    assert 1e-6 < np.abs(logits - expected).max() / np.abs(expected).max() < 0.03
    with pytest.raises(IncrementalError, match="cache_dtype should be 'int8' or None, got 'int4'"):
        make_incremental(program, cache_dtype="int4")


def test_other_inputs_may_run_along_the_tokens():
    program = model()
    bias = program.add_input(TensorType((B, S, VOCABULARY), "float32"), "bias")
    with emit_at(Builder.before(program.block.last)):
        outputs = [prim.add(program.outputs[0], bias)]
    program.set_outputs(outputs)
    made = make_incremental(program)
    assert [x.name_hint for x in made.inputs][5:] == ["bias"]
    caches = {cache.name: cache.allocate(2) for cache in caches_of(made)}
    predictor = Predictor(LoadedProgram(made, {**weights(), **caches}), "reference")
    extra = np.random.default_rng(3).standard_normal((3, VOCABULARY)).astype(np.float32)
    given = {"positions": [0, 1, 2], "starts": [0, 3], "block_tables": [[1]], "outputs": [2, 0]}
    (logits,) = predictor.run(tokens=[1, 2, 3], bias=extra, **given)
    expected = whole(model(), weights(), np.array([[1, 2, 3]]))[0] + extra
    np.testing.assert_allclose(logits, expected[[2, 0]], rtol=2e-5, atol=1e-5)
    program.add_input(TensorType((3, B), "float32"), "column")
    with pytest.raises(IncrementalError, match=r"input column .* runs along neither tokens nor rows"):
        make_incremental(program)


def test_sampling_repeats_for_a_seed_and_differs_between_seeds():
    program, states = model(), weights()
    generator = Generator(LoadedProgram(program, states), capacity=64, compiler="reference")
    runs = [generator.generate([1], 12, SamplingOptions(temperature=1.5, top_k=8, seed=s)) for s in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


def test_the_incremental_program_verifies_and_parses_back():
    program = make_incremental(model())
    program.verify()
    assert str(Program.parse(str(program))) == str(program)


def last_of_loop(x):
    """What a loop of three steps carries, which reads all of ``x`` [b, s, d]."""

    def step(_, carried):
        return [], [prim.add(carried[0], prim.reduce_sum(x, axes=(0, 1)))]

    return scan(step, [prim.constant(0.0, "float32", (3,))], [prim.constant(0.0, "float32", x.shape[2:])])[1][0]


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (
            lambda x: prim.cumulative(x, axis=1, kind="sum", reverse=True),
            r"cumulative .*mixes indices along the tokens",
        ),
        (lambda x: prim.reverse(x, axes=(1,)), r"reverse .*mixes indices along the tokens"),
        (
            lambda x: x + prim.broadcast(prim.reduce_sum(x, axes=(1,)), shape=x.shape, axes=(0, 2)),
            "reduces over the tokens",
        ),
        (
            lambda x: prim.sub(x, prim.broadcast(last_of_loop(x), shape=x.shape, axes=(2,))),
            r"control.scan .* reads tokens from around it",
        ),
    ],
)
def test_what_mixes_positions_is_refused_by_name(extra, message):
    with pytest.raises(IncrementalError, match=message):
        make_incremental(model(extra=extra))


@pytest.mark.parametrize("compiler", sorted({"reference", available_compilers()[0]}))
def test_scans_along_the_text_carry_on(compiler):
    """A running sum and a running logarithm of sums behind attention: pieces of any size beside another row, and a row
    that goes on from an earlier token, give what the whole program gives."""

    def extra(x):
        return prim.cumulative(x, axis=1, kind="logsumexp") + prim.cumulative(x * 0.5, axis=1, kind="sum")

    program, states = model(extra=extra), weights()
    generator = Generator(LoadedProgram(program, states), capacity=64, block_size=4, compiler=compiler)
    found = caches_of(generator.predictor.program)
    assert [(c.kind, c.block) for c in found if c.kind == "recurrent"] == [("recurrent", (4, WIDTH))] * 2
    ids = np.random.default_rng(0).integers(0, VOCABULARY, (2, 12))
    want = whole(program, states, ids)
    rows = {0: [], 1: []}
    for (a, b), (c, d) in (((0, 5), (0, 1)), ((5, 6), (1, 9)), ((6, 12), (9, 12))):
        places, owners = [*range(a, b), *range(c, d)], [0] * (b - a) + [1] * (d - c)
        made = generator.step([*ids[0, a:b], *ids[1, c:d]], places, owners)
        rows[0].append(made[: b - a])
        rows[1].append(made[b - a :])
    for row, parts in rows.items():
        np.testing.assert_allclose(np.concatenate(parts), want[row], rtol=0, atol=2e-5 * np.abs(want).max())
    again = generator.step(ids[0, 3:12], range(3, 12), [0] * 9)  # from the fourth token on
    np.testing.assert_allclose(again, want[0, 3:], rtol=0, atol=2e-5 * np.abs(want).max())


def test_a_text_does_not_end_before_it_may():
    program, states = model(), weights()
    generator = Generator(LoadedProgram(program, states), capacity=16, block_size=4, compiler="reference")
    first = generator.generate([3, 1], 1)
    assert generator.generate([3, 1], 6, stop=first) == []
    made = generator.generate([3, 1], 6, stop=first, min_new_tokens=2)
    assert len(made) >= 2
    assert first[0] not in made
