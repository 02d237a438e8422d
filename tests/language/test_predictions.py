"""Modules that predict further tokens (DeepSeek-V3's report, section 2.2): read from folders, equal to the report's
formula, and verified guesses give the tokens that the model gives without them."""

import json

import numpy as np
import pytest

import argosy as paddle
from argosy import models
from argosy.models.attention import Positions
from argosy.models.files import ModelFiles
from argosy.models.importer import program_of
from argosy_infer import Generator
from argosy_infer.errors import InputError
from argosy_infer.llm import SamplingOptions, SpeculativeGenerator
from argosy_tensorcore.safetensors import CheckpointError, save_file
from language.weights_by_name import weights

WIDTH, VOCABULARY = 32, 48
CONFIG = {
    "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "first_k_dense_replace": 1,
    "hidden_size": WIDTH, "intermediate_size": 40, "kv_lora_rank": 16, "max_position_embeddings": 64,
    "moe_intermediate_size": 24, "n_group": 2, "topk_group": 1, "n_routed_experts": 4, "n_shared_experts": 1,
    "norm_topk_prob": True, "num_attention_heads": 2, "num_experts_per_tok": 2, "num_hidden_layers": 2,
    "num_nextn_predict_layers": 1, "q_lora_rank": 24, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 12,
    "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "vocab_size": VOCABULARY,
}  # fmt: skip
MODULE = "model.layers.2."


def layer_tensors(i):
    """The tensors of a layer with experts, as published files have them."""
    shapes = {
        "input_layernorm": [WIDTH], "post_attention_layernorm": [WIDTH], "self_attn.q_a_proj": [24, WIDTH],
        "self_attn.q_a_layernorm": [24], "self_attn.q_b_proj": [24, 24], "self_attn.kv_a_proj_with_mqa": [20, WIDTH],
        "self_attn.kv_a_layernorm": [16], "self_attn.kv_b_proj": [40, 16], "self_attn.o_proj": [WIDTH, 24],
    }  # fmt: skip
    if i == 0:
        shapes |= {f"mlp.{n}_proj": [40, WIDTH] for n in ("gate", "up")} | {"mlp.down_proj": [WIDTH, 40]}
    else:
        shapes["mlp.gate"] = [4, WIDTH]
        for member in [*(f"mlp.experts.{e}" for e in range(4)), "mlp.shared_experts"]:
            shapes |= {f"{member}.{n}_proj": [24, WIDTH] for n in ("gate", "up")}
            shapes[f"{member}.down_proj"] = [WIDTH, 24]
    made = {f"model.layers.{i}.{name}.weight": shape for name, shape in shapes.items()}
    return made | ({f"model.layers.{i}.mlp.gate.e_score_correction_bias": [4]} if i else {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two layers and a module, whose embeddings and head are there again, as in the published files."""
    shapes = {name: [VOCABULARY, WIDTH] for name in ("model.embed_tokens.weight", "lm_head.weight")}
    shapes |= {"model.norm.weight": [WIDTH], MODULE + "eh_proj.weight": [WIDTH, 2 * WIDTH]}
    shapes |= {f"{MODULE}{name}.weight": [WIDTH] for name in ("enorm", "hnorm", "shared_head.norm")}
    for i in range(3):
        shapes |= layer_tensors(i)
    tensors = {name: weights(name, shape) for name, shape in shapes.items()}
    tensors[MODULE + "embed_tokens.weight"] = tensors["model.embed_tokens.weight"]
    tensors[MODULE + "shared_head.head.weight"] = tensors["lm_head.weight"]
    made = tmp_path_factory.mktemp("predictions")
    (made / "config.json").write_text(json.dumps(CONFIG))
    save_file(tensors, made / "model.safetensors")
    return made


def rms(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight


def test_a_module_is_what_the_report_says(folder, tmp_path):
    """Numpy's normalisations and projection around the block, which is the third of a model of three layers with the
    same tensors; the module is in the folder that is written."""
    model, ids = models.load_model(folder), np.random.default_rng(0).integers(0, VOCABULARY, (2, 9))
    states = model.model(paddle.to_tensor(ids[:, :-1]))
    got = model.head(model.model.predict_further(paddle.to_tensor(ids[:, 1:]), states)).numpy()
    tensors = dict(ModelFiles(folder))
    embedded = tensors["model.embed_tokens.weight"][ids[:, 1:]]
    both = [rms(embedded, tensors[MODULE + "enorm.weight"]), rms(states.numpy(), tensors[MODULE + "hnorm.weight"])]
    projected = np.concatenate(both, -1) @ tensors[MODULE + "eh_proj.weight"].T
    plain = {n: a for n, a in tensors.items() if not n.startswith(MODULE) or n in layer_tensors(2)}
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": 3}))
    save_file({n: np.array(a) for n, a in plain.items()}, tmp_path / "plain" / "model.safetensors")
    block = models.load_model(tmp_path / "plain").model.layers[2]
    made = block(paddle.to_tensor(projected), Positions(8, None)).numpy()
    want = rms(made, tensors[MODULE + "shared_head.norm.weight"]) @ tensors["lm_head.weight"].T
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())
    models.save(model, tmp_path / "again")
    again = models.load_model(tmp_path / "again")
    state = again.model.predict_further(paddle.to_tensor(ids[:, 1:]), states)
    np.testing.assert_array_equal(again.head(state).numpy(), got)
    with pytest.raises(ValueError, match="depth should be 1 to 1"):
        model.model.predict_further(paddle.to_tensor(ids), states, 2)


def test_verified_guesses_change_no_token(folder):
    """Greedy and drawn tokens, over a prompt of several pieces, up to the last position and where the cache is full;
    the draft's guesses over its cache are those of the whole sequence."""
    model = models.load_model(folder)
    plain = Generator(program_of(model), capacity=64)
    both = models.programs_of_predictions(model)
    generator = SpeculativeGenerator(*both, capacity=64)
    prompt = np.random.default_rng(1).integers(0, VOCABULARY, 11).tolist()
    for count, options in ((53, None), (20, SamplingOptions(temperature=0.7, top_k=8, seed=3))):
        assert generator.generate(prompt, count, options) == plain.generate(prompt, count, options)
    ids = prompt + plain.generate(prompt, 53)
    states = model.model(paddle.to_tensor([ids[:-1]]))
    further = model.head(model.model.predict_further(paddle.to_tensor([ids[1:]]), states)).numpy()[0].argmax(-1)
    right, position = 0, len(prompt)
    generator.guessed = generator.accepted = 0
    generator.generate(prompt, 53)
    while position < 63:  # a step verifies what was guessed from the token before
        hit = further[position - 1] == ids[position + 1] if position + 1 < 64 else False
        right, position = right + hit, position + 1 + hit
    assert abs(generator.accepted - right) <= 1  # the last one may come after the last token that was asked for
    assert 0 < generator.guessed <= 53
    with pytest.raises(InputError, match="1 outputs and 2 inputs"):
        SpeculativeGenerator(program_of(model), both[1])


def test_a_module_with_a_tensor_missing_is_refused(folder, tmp_path):
    tensors = {name: np.array(array) for name, array in ModelFiles(folder).items()}
    del tensors[MODULE + "enorm.weight"]
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"layers.2.enorm.weight"):
        models.load_model(tmp_path)
    with pytest.raises(ValueError, match="has no module"):
        models.programs_of_predictions(models.build(models.ConfigFile(CONFIG)))
