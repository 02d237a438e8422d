"""Token ids and positions that a model does not have are refused by name, compiled and interpreted."""

import numpy as np
import pytest

from argosy_hwadapt import device
from argosy_infer import Generator, LoadedProgram, Predictor, SamplingOptions
from argosy_infer.errors import InputError, LogitsError
from argosy_phi_ops import compiler as compilers
from argosy_phi_ops import prim
from argosy_phi_ops.compiler import available_compilers
from argosy_phi_ops.context import emit_at
from argosy_phi_ops.declare.operator import get_operator
from argosy_pir.builder import Builder
from argosy_pir.dims import SymExpr
from argosy_pir.program import Program
from argosy_pir.types import TensorType

VOCABULARY, CONTEXT, WIDTH = 11, 8, 4
COMPILERS = sorted({"reference", available_compilers()[0]})


def model(dtype="int64", whole_operators=True):
    """Embeddings of tokens and positions, attention, logits; lookups as operators (so are exports) or primitives."""
    b, s = SymExpr.symbol("b"), SymExpr.symbol("s")
    program = Program("model")
    ids = program.add_input(TensorType((b, s), dtype), "ids")
    shapes = {"tokens": (VOCABULARY, WIDTH), "places": (CONTEXT, WIDTH)}
    states = {name: program.add_state(name, TensorType(shape, "float32")).argument for name, shape in shapes.items()}
    builder = Builder.at_end(program.block)

    def apply(name, *args, **kwargs):
        op = get_operator(name)
        operands, attributes = op.signature.bind(args, kwargs)
        return builder.create(f"phi.{name}", operands, attributes).results[0]

    with emit_at(builder):
        places = prim.iota(shape=(s,), axis=0, dtype="int64")
        if whole_operators:
            x, rows = apply("embedding", ids, states["tokens"]), apply("embedding", places, states["places"])
        else:
            x = prim.gather(states["tokens"], prim.reshape(ids, shape=(b, s, 1)), axes=(0,))
            rows = prim.slice(states["places"], start=(0, 0), limit=(s, WIDTH), stride=(1, 1))
        x = x + prim.broadcast_to(rows, (b, s, WIDTH))
        parts = [prim.reshape(x, shape=(b, s, 1, WIDTH))] * 3
        mixed = prim.reshape(apply("scaled_dot_product_attention", *parts, is_causal=True), shape=(b, s, WIDTH))
        logits = prim.dot_general(x + mixed, states["tokens"], lhs_contract=(2,), rhs_contract=(1,))
    program.set_outputs([logits])
    rng = np.random.default_rng(0)
    return LoadedProgram(program, {n: rng.standard_normal(k).astype(np.float32) for n, k in shapes.items()})


@pytest.fixture(params=COMPILERS)
def compiler(request):
    return request.param


@pytest.mark.parametrize("whole_operators", [True, False])
@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([1, 11], "token 11 is outside of the model's vocabulary: expected 0 to 10"),
        ([-1], "token -1 is outside of the model's vocabulary"),
        ([1.5], r"the prompt should be a sequence of integers, got \[1.5\]"),
        ([True], "the prompt should be a sequence of integers"),
        ([[1, 2]], "the prompt should be a sequence of integers"),
        ([2**63], "integers of 64 bits, got 9223372036854775808"),
        ([1] * 9, "the prompt has 9 tokens; the model has 8 positions"),
    ],
)
def test_prompts_that_the_model_does_not_have_are_refused(compiler, whole_operators, prompt, message):
    """They used to be clamped, and read stale caches."""
    generator = Generator(model(whole_operators=whole_operators), capacity=32, compiler=compiler)
    with pytest.raises(InputError, match=message):
        generator.generate(prompt, 2)
    assert generator.allocator.lengths == generator.allocator.tables == {}


def test_generation_ends_with_an_error_where_positions_do(compiler):
    generator = Generator(model(), capacity=32, compiler=compiler)
    assert len(generator.generate([1, 2, 3], 6)) == 6  # the last one has no position of its own
    stream = generator.stream([1, 2, 3], 7)
    assert len([next(stream) for _ in range(6)]) == 6
    with pytest.raises(InputError, match="position 8 is outside of the model's positions: expected 0 to 7"):
        next(stream)


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([3], r"positions of sequence 0 should begin at 0 to 2 and follow each other, got \[3\]"),
        ([1, 3], r"follow each other, got \[1, 3\]"),
        ([2, 2], "follow each other"),
        ([-1], "position -1 is outside of the model's positions"),
        ([8], "position 8 is outside"),
        ([0.5], "positions should be a sequence of integers"),
    ],
)
def test_positions_that_leave_some_out_are_refused(compiler, positions, message):
    generator = Generator(model(), capacity=32, compiler=compiler)
    generator.step([1, 2], [0, 1], [0, 0])
    with pytest.raises(InputError, match=message):
        generator.step([3] * len(positions), positions, [0] * len(positions))
    generator.step([3], [2], [0])


def test_a_sequence_that_goes_on_earlier_forgets_what_was_behind(compiler):
    generator = Generator(model(), capacity=32, compiler=compiler)
    expected = generator.step([1, 5, 6], [0, 1, 2], [1, 1, 1])[-1]
    generator.step([1, 2, 3], [0, 1, 2], [0, 0, 0])
    generator.step([5], [1], [0])
    with pytest.raises(InputError, match="should begin at 0 to 2"):
        generator.step([6], [3], [0])
    np.testing.assert_allclose(generator.step([6], [2], [0])[-1], expected, rtol=1e-5, atol=1e-5)


def test_exports_with_int32_tokens_generate(compiler):
    options = SamplingOptions()
    expected = Generator(model(), capacity=32, compiler=compiler).generate([1, 2, 3], 4, options)
    assert Generator(model("int32"), capacity=32, compiler=compiler).generate([1, 2, 3], 4, options) == expected


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_nan_end_generation(compiler, temperature):
    loaded = model()
    loaded.states["places"][2] = np.nan
    generator = Generator(loaded, capacity=32, compiler=compiler)
    stream = generator.stream([1, 2], 4, SamplingOptions(temperature))
    next(stream)
    with pytest.raises(LogitsError, match="position 3: 11 of 11 are NaN"):
        next(stream)


def test_a_predictor_refuses_indices_as_eager_execution_does(compiler):
    predictor = Predictor(model(), compiler)
    predictor.run([[1, 2]])
    with pytest.raises(IndexError, match="embedding: index 99 is out of range; expected 0 to 10"):
        predictor.run([[1, 99]])
    with pytest.raises(IndexError, match="embedding: index 8 is out of range; expected 0 to 7"):
        predictor.run([[1] * 9])
    predictor.run([[1, 2]])


@pytest.mark.parametrize(
    ("dtype", "given", "message"),
    [
        ("int32", [2**32 + 5], "holds 4294967301, which int32 does not"),
        ("int32", [1.0], "has dtype float64, which int32 does not hold"),
        ("uint8", [-1], "holds -1, which uint8 does not"),
        ("bool", [1], "has dtype int64, which bool does not hold"),
        ("float32", [2**24 + 1], "holds 16777217, which float32 does not"),
        ("float32", [1e300], "holds 1e[+]300, which float32 does not"),
        ("float32", ["a"], "input 'x': "),
    ],
)
def test_values_that_do_not_fit_an_input_are_refused(compiler, dtype, given, message):
    """2**32 + 5 used to become 5."""
    program = Program("same")
    program.set_outputs([program.add_input(TensorType((SymExpr.symbol("n"),), dtype), "x")])
    predictor = Predictor(LoadedProgram(program, {}), compiler)
    with pytest.raises(InputError, match=message):
        predictor.run(given)


@pytest.mark.parametrize(
    ("dtype", "given"),
    [("int32", [5]), ("uint8", [255]), ("float32", [1, 2]), ("float32", [0.1, np.inf, np.nan]), ("int64", [True])],
)
def test_values_that_fit_an_input_convert(compiler, dtype, given):
    program = Program("same")
    program.set_outputs([program.add_input(TensorType((SymExpr.symbol("n"),), dtype), "x")])
    (made,) = Predictor(LoadedProgram(program, {}), compiler).run(given)
    np.testing.assert_array_equal(made, np.array(given, dtype))


def test_a_program_is_compiled_for_the_device_that_is_named(monkeypatch):
    """With its weights and inputs there, and its outputs here."""
    made = []

    class Compiler:
        def compile(self, program, where):
            made.append(where)
            return self

        def bind(self, states):
            assert [state.device for state in states] == made
            return lambda inputs: inputs

    monkeypatch.setitem(compilers._made, "asked", Compiler())
    program = Program("f")
    weight = program.add_state("w", TensorType((2,), "float32"))
    program.set_outputs([program.add_input(TensorType((2,), "float32"), "x")], [weight.argument])
    loaded = LoadedProgram(program, {"w": np.zeros(2, np.float32)})
    (result,) = Predictor(loaded, "asked", device="virtual:1").run(np.array([1, 2], np.float32))
    assert (made, result.tolist()) == ([device("virtual", 1)], [1.0, 2.0])
