"""Passes of compression on mixtures of experts: each is rounded by itself, by the tokens that it is chosen for."""

import numpy as np
import pytest

import argosy as paddle
from argosy import models
from argosy.models.importer import program_of
from argosy.models.quantized_layers import QuantizedExperts
from argosy.models.quantized_layouts import use_integers
from argosy_cinn.pipeline import lower_program
from argosy_cinn.target import Target
from argosy_infer import Generator, LoadedProgram, Predictor
from argosy_infer.compress import awq, gptq, mixed_precision, round_to_float8, round_to_nearest, smooth_quant
from argosy_infer.compress.packing import round_matrix
from argosy_infer.weights import unpack_outputs
from argosy_phi_ops.passes.decompose import Decompose
from language.test_compression import text, train, windows
from language.weights_by_name import weights

CONFIG = {
    "model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "vocab_size": 64, "hidden_size": 64,
    "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu", "num_local_experts": 4,
    "num_experts_per_tok": 2,
}  # fmt: skip
NAMES = [f"model.layers.0.mlp.experts.{own}" for own in ("gate_up_proj", "down_proj")]
OTHERS = ["*self_attn*", "lm_head*", "*gate.weight"]
IDS = np.random.default_rng(0).integers(0, 64, (8, 48))


@pytest.fixture(scope="module")
def model():
    model = models.build(models.ConfigFile(CONFIG))
    model.eval()
    for name, parameter in model.named_parameters():
        parameter.set_value(weights(name, list(parameter.shape)))
    return model


def lost(whole, small):
    """Of the results, by experts alone: one layer chooses as it did."""
    (exact,), (made,) = Predictor(whole).run(IDS), Predictor(small).run(IDS)
    return np.linalg.norm(made - exact) / np.linalg.norm(exact)


def test_experts_are_rounded_one_by_one(model):
    whole = program_of(model)
    small, report = round_to_nearest(whole, 8, 32, skip=OTHERS)
    for name in NAMES:
        parts = [round_matrix(matrix, 8, 32) for matrix in whole.states[name]]
        np.testing.assert_array_equal(small.states[f"{name}_numbers"], [part.whole.T for part in parts])
        np.testing.assert_array_equal(small.states[f"{name}_scales"], [part.scales for part in parts])
    assert [layer.name for layer in report.layers] == NAMES
    assert report.bytes_after < 0.3 * report.bytes_before
    assert lost(whole, small) < 0.01
    assert lost(whole, round_to_float8(whole, skip=OTHERS)[0]) < 0.05
    bytes_, _ = round_to_nearest(whole, 8, 32, skip=OTHERS, input_bits=8)
    assert lost(whole, small) < lost(whole, bytes_) < 0.02
    made, (logits,) = Generator(small, 64).generate(list(IDS[0, :9]), 1), Predictor(small).run(IDS[:1, :9])
    assert made == [int(logits[0, -1].argmax())]


def test_numbers_of_four_bits_share_bytes_in_memory(model):
    """They are multiplied as what they stand for, of passes and of layers; no other matrix of experts is in memory."""
    whole = program_of(model)
    small, report = round_to_nearest(whole, 4, 32, skip=OTHERS)
    parts = {name: [round_matrix(matrix, 4, 32) for matrix in whole.states[name]] for name in NAMES}
    for name in NAMES:
        packed = small.states[f"{name}_numbers"]
        np.testing.assert_array_equal(unpack_outputs(packed), [part.whole.T for part in parts[name]])
    assert report.bytes_after < 0.26 * report.bytes_before  # a half of it are scales in float32
    floats = {name: np.stack([part.dequantize() for part in own]) for name, own in parts.items()}
    (want,) = Predictor(LoadedProgram(whole.program, {**whole.states, **floats})).run(IDS)
    layers = models.build(models.ConfigFile(CONFIG))
    use_integers(layers, small)
    layers.eval()
    for loaded in (small, program_of(layers)):
        (made,) = Predictor(loaded).run(IDS)
        np.testing.assert_allclose(made, want, rtol=0, atol=1e-5 * np.abs(want).max())
        program = loaded.program.clone()
        Decompose().run(program)
        ops = [op for op in lower_program(program, Target.host()).block if op.name == "cinn.scaled_grouped_dot"]
        assert [op.operand(1).shape for op in ops] == [(4, 96, 64), (4, 32, 96)]
    (experts,) = (layer for layer in layers.sublayers() if isinstance(layer, QuantizedExperts))
    again = [[each.dequantize() for each in matrices] for matrices in experts.to_numbers()]
    for gate_up, down, own in zip(*floats.values(), again, strict=True):
        np.testing.assert_array_equal(np.concatenate(own[:2], axis=1), gate_up)
        np.testing.assert_array_equal(own[2], down)


def test_calibration_is_by_the_tokens_of_each_expert(model):
    """GPTQ loses less than the nearest; experts that no token chooses are rounded to the nearest."""
    whole = program_of(model)
    nearest, by_data = round_to_nearest(whole, 4, 32, skip=OTHERS)[0], gptq(whole, [[IDS]], 4, 32, skip=OTHERS)[0]
    assert lost(whole, by_data) < 0.9 * lost(whole, nearest)
    few, _ = gptq(whole, [[IDS[:1, :1]]], 4, 32, act_order=True, skip=OTHERS)
    same = [
        np.array_equal(few.states[f"{NAMES[0]}_numbers"][i], nearest.states[f"{NAMES[0]}_numbers"][i]) for i in range(4)
    ]
    assert sorted(same) == [False, False, True, True]


def test_what_stays_in_floats_is_named(model):
    whole = program_of(model)
    _, report = round_to_nearest(whole, 8, 64, skip=["*.gate_up_proj"])
    assert report.skipped == {NAMES[0]: "it was to be skipped", NAMES[1]: "96 inputs are no multiple of 64"}


def dequantized(whole, small):
    """The first program with the experts that the second one's numbers stand for, and what that has changed besides."""
    states = {name: small.states.get(name, array) for name, array in whole.states.items()}
    for name in NAMES:
        numbers, scales = (small.states[f"{name}_{part}"] for part in ("numbers", "scales"))
        numbers = unpack_outputs(numbers) if numbers.shape[1] < scales.shape[2] else numbers
        each = numbers.shape[2] // scales.shape[1]
        states[name] = numbers.transpose(0, 2, 1) * np.repeat(scales, each, axis=1)
    return LoadedProgram(whole.program, states)


def test_factors_of_experts_are_within_what_makes_their_inputs(model):
    """AWQ's: in the norm, which divides the router, too, and in each expert's own layer before. Nothing is multiplied
    when the program runs; the experts that were not rounded compute what they did."""
    whole = program_of(model)
    small, report = awq(whole, [[IDS]], 4, 32, skip=OTHERS)
    assert [layer.name for layer in report.layers] == NAMES
    assert not [name for name in small.states if name.endswith("factors")]
    (want,), (made,) = Predictor(dequantized(whole, small)).run(IDS), Predictor(small).run(IDS)
    np.testing.assert_allclose(made, want, rtol=0, atol=1e-5 * np.abs(want).max())
    assert lost(whole, small) < 0.97 * lost(whole, round_to_nearest(whole, 4, 32, skip=OTHERS)[0])
    norm, router = "model.layers.0.post_attention_layernorm.weight", "model.layers.0.mlp.gate.weight"
    ratio = small.states[norm] / whole.states[norm]
    assert np.ptp(ratio) > 0.01
    np.testing.assert_allclose(small.states[router] * ratio[:, None], whole.states[router], rtol=1e-5)
    few, _ = awq(whole, [[IDS[:1, :1]]], 4, 32, skip=OTHERS)
    np.testing.assert_allclose(Predictor(few).run(IDS)[0], Predictor(dequantized(whole, few)).run(IDS)[0], atol=1e-4)


@pytest.mark.parametrize("static", [pytest.param(False, marks=pytest.mark.exhaustive), True])
def test_inputs_of_experts_are_bytes(model, static):
    """SmoothQuant's: weights in bytes, and inputs that are what bytes stand for."""
    whole = program_of(model)
    small, report = smooth_quant(whole, [[IDS]], static=static, skip=OTHERS)
    assert [layer.name for layer in report.layers] == NAMES
    assert all(layer.bytes_after < 0.3 * layer.bytes_before for layer in report.layers)
    floats = lost(whole, dequantized(whole, small))
    assert floats < lost(whole, small) < 0.03
    steps = [op for op in small.program.walk() if op.name == "prim.round"]
    assert len(steps) == 2
    assert static == (f"{NAMES[0]}_step" in small.states)
    made, (logits,) = Generator(small, 64).generate(list(IDS[0, :9]), 1), Predictor(small).run(IDS[:1, :9])
    assert made == [int(logits[0, -1].argmax())]


def test_experts_get_bits_by_what_results_lose(model):
    whole = program_of(model)
    small, report = mixed_precision(whole, [[IDS]], 6.0, 32, skip=OTHERS)
    assert set(report.sensitivity) == set(NAMES)
    outputs = {name: small.states[f"{name}_numbers"].shape[1] for name in NAMES}
    assert outputs in ({NAMES[0]: a, NAMES[1]: b} for a, b in ((96, 32), (96, 64), (192, 32)))
    states = {**whole.states, NAMES[1]: np.stack([round_matrix(m, 4, 32).dequantize() for m in whole.states[NAMES[1]]])}
    alone = lost(whole, LoadedProgram(whole.program, states))
    assert report.sensitivity[NAMES[1]] == pytest.approx(alone**2, rel=1e-3)


@pytest.mark.exhaustive
def test_a_trained_mixture_loses_less_where_factors_are_folded():
    """Perplexity on text that calibration has not seen, of a model some of whose channels are large, as those of large
    models are (Dettmers et al., 2022): the norm's are multiplied, and its readers divided. AWQ undoes that."""
    paddle.seed(0)
    model = models.build(models.ConfigFile({**CONFIG, "vocab_size": 128}))
    train(model, 3e-3, 160)
    model.eval()
    layer = model.model.layers[0]
    factors = np.ones(64, np.float32)
    factors[::16] = 30.0
    norm = layer.post_attention_layernorm.weight
    norm.set_value(norm.numpy() * factors)
    for reader in (layer.mlp.gate.weight, layer.mlp.experts.gate_up_proj):
        reader.set_value(reader.numpy() / factors[:, None])
    whole, unseen, data = program_of(model), windows(text(2, 12_000)), [[windows(text(3, 9_600))]]
    passes = {"nearest": round_to_nearest(whole, 4, 32, unseen, OTHERS)}
    passes["awq"] = awq(whole, data, 4, 32, unseen, OTHERS)
    passes["bytes"] = smooth_quant(whole, data, evaluation=unseen, skip=OTHERS)
    gaps = {name: report.perplexity_gap for name, (_, report) in passes.items()}
    assert gaps["awq"] < 0.5 * gaps["nearest"]
    assert gaps["bytes"] < 0.005


def test_folders_hold_rounded_experts(model, tmp_path):
    whole = program_of(model)
    small, _ = gptq(whole, [[IDS]], 4, 32, skip=["lm_head*"])
    fresh = models.build(models.ConfigFile(CONFIG))
    fresh.eval()
    fresh.set_state_dict(model.state_dict())
    with pytest.raises(ValueError, match="no weight of a linear layer"):
        models.use_integers(fresh, whole)
    half, _ = round_to_nearest(whole, 8, -1, skip=["*.gate_up_proj"])
    with pytest.raises(NotImplementedError, match=r"some matrices of model\.layers\.0\.mlp\.experts are floats"):
        models.use_integers(fresh, half)
    models.use_integers(fresh, small)
    models.save(fresh, tmp_path, "gptq")
    (want,), given = Predictor(small).run(IDS), paddle.to_tensor(IDS)
    for each in (fresh, models.load_model(tmp_path)):
        np.testing.assert_allclose(each(given).numpy(), want, rtol=0, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize(
    ("static", "layout"), [(False, "compressed-tensors"), (True, "compressed-tensors"), (None, "awq")]
)
def test_folders_hold_what_factors_have_changed(model, tmp_path, static, layout):
    """Norms, routers, experts and the steps of their inputs in bytes, read again."""
    whole = program_of(model)
    if static is None:
        small, _ = awq(whole, [[IDS]], 4, 32, skip=["lm_head*", "*gate.weight"], multiply_inputs=False)
    else:
        small, _ = smooth_quant(whole, [[IDS]], static=static, skip=["lm_head*", "*gate.weight"], multiply_inputs=False)
    fresh = models.build(models.ConfigFile(CONFIG))
    fresh.eval()
    fresh.set_state_dict(model.state_dict())
    models.use_integers(fresh, small)
    models.save(fresh, tmp_path, layout)
    (want,), given = Predictor(small).run(IDS), paddle.to_tensor(IDS)
    for each in (fresh, models.load_model(tmp_path)):
        close = np.isclose(each(given).numpy(), want, rtol=0, atol=1e-3 * np.abs(want).max())
        assert close.mean() > 0.99  # an input between two bytes may go to either
