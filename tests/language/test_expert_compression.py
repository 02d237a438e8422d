"""Passes of compression on mixtures of experts: each is rounded by itself, by the tokens that it is chosen for."""

import numpy as np
import pytest

import argosy as paddle
from argosy import models
from argosy.models.importer import program_of
from argosy_infer import Generator, Predictor
from argosy_infer.compress import awq, gptq, round_to_float8, round_to_nearest
from argosy_infer.compress.packing import round_matrix
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
    made, (logits,) = Generator(small, 64).generate(list(IDS[0, :9]), 1), Predictor(small).run(IDS[:1, :9])
    assert made == [int(logits[0, -1].argmax())]


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
    assert set(NAMES) <= set(awq(whole, [[IDS]], 4, 32)[1].skipped)


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
