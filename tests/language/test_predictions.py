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
    with pytest.raises(InputError, match="program 0 has 1 outputs and 1 inputs"):
        SpeculativeGenerator(program_of(model), both[1])


class Watched(SpeculativeGenerator):
    """Keeps what was guessed of which text."""

    def _guess(self, text, states, first, sequence):
        made = super()._guess(text, states, first, sequence)
        self.seen.append((list(text), first + len(states), made))
        return made


def test_loaded_models_verify_guesses_where_they_are_asked_to(folder):
    """The same tokens; several prompts, adapters and models without modules are refused."""
    language, prompt = models.load(folder), [3, 1, 4, 1, 5]
    made = language.generate(prompt, 20, speculative=True)
    (generator,) = language._generators.values()
    assert generator.guessed > 0
    assert made == language.generate(prompt, 20)
    assert list(language.stream(prompt, 20, speculative=True)) == made
    with pytest.raises(ValueError, match="several prompts share steps"):
        language.generate([prompt, prompt], 3, speculative=True)
    plain = models.LanguageModel(models.build(models.ConfigFile(CONFIG)))
    with pytest.raises(ValueError, match="has no module that predicts"):
        plain.generate(prompt, 3, speculative=True)
    language.adapters["one"] = None
    language._generators = {}
    with pytest.raises(NotImplementedError, match="beside adapters"):
        language.generate(prompt, 3, speculative=True)


def test_two_modules_guess_on():
    """The second one of the first one's guess: as over the whole text, and no token changes."""
    paddle.seed(4)
    model = models.build(models.ConfigFile(CONFIG), predictions=2)
    model.eval()
    generator = Watched(*models.programs_of_predictions(model), capacity=64)
    generator.seen = []
    prompt = np.random.default_rng(1).integers(0, VOCABULARY, 7).tolist()
    tokens = generator.generate(prompt, 12)
    assert tokens == Generator(program_of(model), capacity=64).generate(prompt, 12)
    assert generator.guessed >= 2 * (12 - 1 - generator.accepted) - 2
    rounds = [seen for seen in generator.seen if seen[1] == len(seen[0]) - 1 >= len(prompt)]
    assert len(rounds) >= 4
    for text, _, guesses in rounds[::3]:
        ids = paddle.to_tensor([text])
        first = model.model.predict_further(ids[:, 1:], model.model(ids[:, :-1]), 1)
        guess = int(model.head(first)[0, -1].argmax())
        second = model.model.predict_further(paddle.to_tensor([[*text[2:], guess]]), first, 2)
        assert guesses == [guess, int(model.head(second)[0, -1].argmax())]


def test_losses_of_further_tokens_are_added():
    """A share of the mean over modules, each of the tokens that it predicts (equations 24 and 25 of the report); all
    modules learn, captured as eagerly."""
    paddle.seed(5)
    model = models.build(models.ConfigFile(CONFIG | {"first_k_dense_replace": 2}), predictions=2)
    ids = paddle.to_tensor(np.random.default_rng(2).integers(0, VOCABULARY, (2, 9)))

    def entropy(states, after):
        logits = model.head(states).numpy().astype(np.float64)
        chosen = np.take_along_axis(logits, after.numpy()[..., None], -1)[..., 0]
        return (np.log(np.exp(logits).sum(-1)) - chosen).mean()

    states = model.model(ids[:, :-1])
    first = model.model.predict_further(ids[:, 1:-1], states[:, :-1], 1)
    second = model.model.predict_further(ids[:, 2:-1], first[:, :-1], 2)
    plain = entropy(states, ids[:, 1:])
    want = plain + 0.3 * (entropy(first, ids[:, 2:]) + entropy(second, ids[:, 3:])) / 2
    assert float(model.loss(ids[:, :-1], ids[:, 1:])) == pytest.approx(plain, rel=1e-5)

    def step(x):
        loss = model.loss(x[:, :-1], x[:, 1:], 0.3)
        loss.backward()
        return loss

    assert float(step(ids)) == pytest.approx(want, rel=1e-5)
    names = [f"model.layers.{i}.eh_proj.weight" for i in (2, 3)]
    eager = {name: p.grad.numpy() for name, p in model.named_parameters() if name in names}
    model.clear_gradients()
    assert float(paddle.jit.to_static(step, full_graph=True)(ids)) == pytest.approx(want, rel=1e-5)
    for name, p in model.named_parameters():
        if name in names:
            assert np.abs(eager[name]).max() > 0
            np.testing.assert_allclose(p.grad.numpy(), eager[name], rtol=0, atol=1e-5 * np.abs(eager[name]).max())


def test_a_module_with_a_tensor_missing_is_refused(folder, tmp_path):
    tensors = {name: np.array(array) for name, array in ModelFiles(folder).items()}
    del tensors[MODULE + "enorm.weight"]
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"layers.2.enorm.weight"):
        models.load_model(tmp_path)
    with pytest.raises(ValueError, match="has no module"):
        models.programs_of_predictions(models.build(models.ConfigFile(CONFIG)))
