"""Language models of folders with tokenizers: text in, text and vectors out."""

import json
import shutil

import numpy as np
import pytest
import tokenizers

import argosy as paddle
from argosy import models
from argosy.models.importer import program_of
from argosy.models.pooling import Pooling, Projection
from argosy_cinn import explain
from argosy_infer import Generator, SamplingOptions
from argosy_infer.llm import GenerationSettings
from argosy_tensorcore.safetensors import CheckpointError, SafetensorsFile, save_file
from language.weights_by_name import weights

LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 48,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
    "rms_norm_eps": 1e-6, "hidden_act": "silu", "tie_word_embeddings": True, "eos_token_id": 1,
}  # fmt: skip
BERT = {
    "model_type": "bert", "architectures": ["BertModel"], "hidden_size": 32, "intermediate_size": 48,
    "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 32, "hidden_act": "gelu",
}  # fmt: skip


def make_folder(folder, config):
    library = tokenizers.Tokenizer(tokenizers.models.BPE())
    library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=280, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet)
    library.train_from_iterator(["the quick brown fox and the lazy dog"] * 3, trainer)
    library.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "</s>"}))
    config = {**config, "vocab_size": library.get_vocab_size()}
    (folder / "config.json").write_text(json.dumps(config))
    model = models.build(models.ConfigFile(config))
    for name, parameter in model.named_parameters():
        parameter.set_value(weights(name, list(parameter.shape)))
    models.save(model, folder)
    return folder


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("llama"), LLAMA)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("bert"), BERT)


def test_text_follows_text(llama):
    language = models.load(llama)
    ids = language.tokenizer.encode("the quick")
    made = language.generate(ids, max_new_tokens=20)
    scores = language.logits([*ids, *made]).numpy()[0, len(ids) - 1 : -1]
    assert made == scores.argmax(-1).tolist()
    assert language.generate("the quick", max_new_tokens=20) == language.tokenizer.decode(made)
    assert "".join(language.stream("the quick", max_new_tokens=20)) == language.tokenizer.decode(made)


def test_tokens_are_drawn_as_the_folder_says_unless_told_otherwise(llama, tmp_path):
    for path in llama.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "generation_config.json").write_text(json.dumps({"do_sample": True, "temperature": 2.0, "top_k": 0}))
    language = models.load(tmp_path)
    drawn, greedy = language.generate([5, 9], 24), language.generate([5, 9], 24, SamplingOptions())
    assert drawn != greedy
    assert greedy == models.load(llama).generate([5, 9], 24)
    (tmp_path / "generation_config.json").write_text(json.dumps({"num_beams": 4, "do_sample": True}))
    with pytest.raises(NotImplementedError, match="num_beams beside do_sample"):
        models.load(tmp_path).generate([5, 9], 4)


def test_beams_are_searched_as_asked_and_as_the_folder_says(llama, tmp_path):
    """After ids, texts, and several of these; nothing stays cached."""
    language = models.load(llama)
    ids = language.tokenizer.encode("the quick")
    found = language.generate(ids, 8, num_beams=3, num_return_sequences=3)
    assert len({tuple(row) for row in found}) == 3
    assert language.generate(ids, 8, num_beams=3) == found[0]
    assert language.generate(ids, 8, num_beams=1) == language.generate(ids, 8)
    texts = [language.tokenizer.decode(row) for row in found]
    assert language.generate("the quick", 8, num_beams=3, num_return_sequences=3) == texts
    alone = [language.generate(text, 8, num_beams=3) for text in ("fox", "the quick")]
    assert language.generate(["fox", "the quick"], 8, num_beams=3) == alone
    (generator,) = language._generators.values()
    assert (generator.allocator.tables, len(generator.allocator.free)) == ({}, generator.allocator.blocks)
    for path in llama.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "generation_config.json").write_text(json.dumps({"num_beams": 3}))
    folder = models.load(tmp_path)
    assert folder.generate(ids, 8) == found[0]
    assert (
        folder.generate(ids, 8, num_beams=1) == folder.generate(ids, 8, SamplingOptions()) == language.generate(ids, 8)
    )
    for error, message, given in (
        (ValueError, "num_return_sequences should be 1 to num_beams, 2, got 3", {"num_return_sequences": 3}),
        (ValueError, "no room for guesses", {"speculative": True}),
        (NotImplementedError, "stop should have no texts", {"stop": "fox"}),
        (NotImplementedError, "beams are not drawn", {"temperature": 1.0}),
    ):
        with pytest.raises(error, match=message):
            language.generate("fox", 4, num_beams=2, **given)
    with pytest.raises(NotImplementedError, match="a beam search gives whole texts"):
        folder.stream(ids, 4)


PROMPTS = ["the quick", "fox", "the quick brown fox and the lazy dog " * 2, "the quick"]


def test_several_prompts_give_what_each_gives_alone(llama):
    """Of any lengths, more than the cache holds at once, drawn and greedy; one text ends before the others."""
    language = models.load(llama)
    ids = [language.tokenizer.encode(text) for text in PROMPTS]
    greedy = [language.generate(row, 9) for row in ids]
    ends = greedy[1][3]
    alone = [row[: row.index(ends)] if ends in row else row for row in greedy]
    assert language.generate(ids, 9, stop=ends) == alone
    assert language.generate(PROMPTS, 9, stop=ends) == [language.tokenizer.decode(row) for row in alone]
    drawn = language.generate(PROMPTS, 9, temperature=1.5, seed=3)
    assert drawn == [language.generate(text, 9, temperature=1.5, seed=3 + i) for i, text in enumerate(PROMPTS)]
    assert drawn[0] != drawn[3]
    assert language.generate(np.array([ids[0], ids[0]]), 4) == [greedy[0][:4]] * 2
    same = {"num_return_sequences": 2, "temperature": 1.5, "seed": 3}
    assert language.generate(PROMPTS[0], 9, **same) == language.generate([PROMPTS[0]] * 2, 9, temperature=1.5, seed=3)
    assert language.generate(ids[:2], 9, num_return_sequences=2) == [[row] * 2 for row in greedy[:2]]
    with pytest.raises(ValueError, match="num_return_sequences should be 1 or more, got 0"):
        language.generate(PROMPTS[0], num_return_sequences=0)
    (generator,) = language._generators.values()
    small = Generator(program_of(language.model), capacity=48)
    assert small.generate_batch(ids, 9) == greedy
    assert (generator.allocator.tables, small.allocator.tables) == ({}, {})


def test_texts_end_before_texts(llama):
    language = models.load(llama)
    whole = language.generate("the quick", 24)
    stop = whole[11:14]
    expected = whole[: whole.index(stop)]
    assert language.generate("the quick", 24, stop=stop) == expected
    assert language.generate(["the quick", "fox"], 24, stop=[stop, "none of it"])[0] == expected
    assert "".join(language.stream("the quick", 24, stop=[stop])) == expected
    with pytest.raises(ValueError, match="tokens end ids"):
        language.generate([3], 4, stop="x")


def test_chats_are_answered(llama, tmp_path):
    for path in llama.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "chat_template.jinja").write_text("{% for m in messages %}{{ m.role }}:{{ m.content }} {% endfor %}")
    language = models.load(tmp_path)
    chat = [{"role": "user", "content": "fox"}]
    assert language.generate(chat, 6) == language.generate("user:fox ", 6)
    assert language.generate([chat, chat], 6) == [language.generate(chat, 6)] * 2


def test_names_of_transformers_are_told_in_ours(llama):
    language = models.load(llama)
    for name, meant in (("do_sample", "temperature"), ("stop_strings", "stop"), ("max_length", "max_new_tokens")):
        with pytest.raises(TypeError, match=f"{name}.*{meant}"):
            language.generate("fox", **{name: 1})
    with pytest.raises(NotImplementedError, match="no code for 'num_beam_groups'"):
        language.generate("fox", num_beam_groups=4)
    with pytest.raises(TypeError, match="no setting 'heat': there are"):
        language.generate("fox", heat=1)


def test_what_is_saved_is_loaded(llama, tmp_path):
    language = models.load(llama)
    settings = {"do_sample": True, "temperature": 0.5, "top_p": 0.9, "eos_token_id": [1, 7], "max_new_tokens": 5}
    (tmp_path / "generation_config.json").write_text(json.dumps(settings | {"bad_words_ids": [[3, 4]], "min_p": 0.1}))
    language.generation = GenerationSettings.read(tmp_path)
    language.save(tmp_path / "copy")
    again = models.load(tmp_path / "copy")
    assert again.generation == language.generation
    assert again.generate("fox") == language.generate("fox")
    assert "llama: 0.0 million weights, 64 positions, a tokenizer of" in repr(again)


@pytest.mark.parametrize("dtype", ["int8", "bool"])
def test_weights_become_floats(llama, dtype):
    with pytest.raises(TypeError, match="float32, float16"):
        models.load(llama, dtype)


def test_matrices_of_several_dtypes_become_one(llama, tmp_path):
    """That of most numbers, as products take one; vectors stay, and so do matrices that have it."""
    shutil.copytree(llama, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "model.safetensors"
    tensors = dict(SafetensorsFile(path))
    save_file({n: x.astype(np.float16) if "q_proj" in n or "norm" in n else x for n, x in tensors.items()}, path)
    loaded = models.load(tmp_path)
    for name, parameter in loaded.model.named_parameters():
        assert parameter.payload.dtype.name == ("float16" if "norm" in name else "float32"), name
    rounded = {
        n: x.astype(np.float16).astype(np.float32) if "q_proj" in n or "norm" in n else x for n, x in tensors.items()
    }
    save_file(rounded, path)
    assert loaded.generate("the quick") == models.load(tmp_path).generate("the quick")


def test_pickles_are_not_read(llama, tmp_path):
    (tmp_path / "config.json").symlink_to(llama / "config.json")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin may run code"):
        models.load(tmp_path)


def test_keys_are_turned_where_they_are_cached(llama):
    """One kernel in each layer rotates keys and writes them into the cache, beside those of values and queries."""
    language = models.load(llama)
    language.generate([5, 6, 7], max_new_tokens=1)
    (generator,) = language._generators.values()
    lines = explain(generator.predictor.executable).splitlines()
    maps = [set(line.partition("; reads")[0].split()) for line in lines if line.lstrip().startswith("map_")]
    writes, turns = (
        [{"logical_andx3", "sub"} & ops == kind for ops in maps].count(True)
        for kind in ({"logical_andx3", "sub"}, {"sub"})
    )
    assert (writes, turns) == (2, 2), maps


def test_a_step_reads_weights_once_and_fuses_attention(tmp_path):
    """A prompt and one row alike; the tied table is read whole by the head alone."""
    language = models.load(make_folder(tmp_path, {**LLAMA, "hidden_size": 128, "intermediate_size": 192}))
    for tokens in (1, 2):  # the prompt's step, then one of one row
        language.generate([5, 6, 7], max_new_tokens=tokens)
        (generator,) = language._generators.values()
        report = generator.predictor.executable.report()
        assert (report["unfused_attention"], report["weights_read_again"]) == ([], [])


@pytest.mark.parametrize(
    ("ids", "message"), [
        ([[280]], "vocabulary"), ([-1], "vocabulary"), ([1.5], "whole numbers"), ([[[1]]], "whole"), ("fox", "a text"),
        ([[1, 2], [3]], "one length"),
    ],
)  # fmt: skip
def test_ids_that_the_model_has_not_are_refused(llama, ids, message):
    with pytest.raises(ValueError, match=message):
        models.load(llama).logits(ids)


def test_positions_beyond_the_model_are_refused_when_generating(llama):
    with pytest.raises(ValueError, match="64"):
        models.load(llama).generate([3] * 65, 4)


def test_masks_are_of_the_ids(bert):
    language = models.load(bert)
    with pytest.raises(ValueError, match=r"ids \[2, 3\] whether it is a token, got \[1, 3\]"):
        language.hidden([[1, 2, 3], [4, 5, 6]], [1, 1, 0])


def test_texts_are_cached_in_bytes_where_asked_for(llama):
    language, small = models.load(llama), models.load(llama, cache_dtype="int8")
    made = small.generate("the quick", 8)
    assert len(made) > 4
    assert made[:4] == language.generate("the quick", 8)[:4]
    (generator,) = small._generators.values()
    assert {array.dtype.name for name, array in generator.predictor.states.items() if name.endswith(".key")} == {"int8"}


def test_texts_become_the_mean_of_their_tokens(bert):
    language = models.load(bert)
    texts = ["the quick brown fox", "dog", "naïve 東京"]
    made = language.embed(texts).numpy()
    for text, vector in zip(texts, made, strict=True):
        alone = language.hidden(language.tokenizer.encode(text)).numpy()[0].mean(0)
        np.testing.assert_allclose(vector, alone, rtol=0, atol=1e-5 * np.abs(alone).max())
    apart = language.embed([*texts, "dog"], batch_size=2).numpy()
    np.testing.assert_allclose(apart, made[[0, 1, 2, 1]], rtol=0, atol=1e-5 * np.abs(made).max())
    with pytest.raises(ValueError, match="one or more at a time; got 0 and 32"):
        language.embed([])
    with pytest.raises(TypeError, match="generates no text"):
        language.generate([1, 2], 3)


@pytest.mark.parametrize("mode", ["mean", "cls", "max", "lasttoken"])
def test_sentence_encoders_pool_as_their_modules_say(bert, tmp_path, mode):
    for path in bert.iterdir():
        (tmp_path / path.name).symlink_to(path)
    kinds = ("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for kind, path in kinds]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "1_Pooling").mkdir()
    names = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens", "lasttoken": "lasttoken"}
    flags = {f"pooling_mode_{name}": kind == mode for kind, name in names.items()}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **flags}))
    language = models.load(tmp_path)
    hidden = language.hidden(language.tokenizer.encode("the lazy dog")).numpy()[0]
    expected = {"mean": hidden.mean(0), "cls": hidden[0], "max": hidden.max(0), "lasttoken": hidden[-1]}[mode]
    texts = ["the lazy dog", "the quick brown fox and the dog"]
    made = language.embed(texts).numpy()
    np.testing.assert_allclose(made[0], expected / np.linalg.norm(expected), rtol=0, atol=1e-5)
    language.save(tmp_path / "again")
    again = models.load(tmp_path / "again")
    assert again.pooling == language.pooling
    np.testing.assert_array_equal(again.embed(texts).numpy(), made)


def test_folders_of_sentence_encoders_are_laid_out_as_sentence_transformers_does(bert, tmp_path):
    """Modules in folders of their own; texts are as long as sentence_bert_config.json says."""
    language = models.load(bert)
    language.pooling = Pooling("first", True, 4, (Projection(32, 48, False, "Identity"), Projection(48, 8)))
    language.save(tmp_path)
    modules = json.loads((tmp_path / "modules.json").read_text())
    assert [module["path"] for module in modules] == ["", "1_Pooling", "2_Dense", "3_Dense", "4_Normalize"]
    table = json.loads((tmp_path / "1_Pooling" / "config.json").read_text())
    assert (table["word_embedding_dimension"], table["pooling_mode_cls_token"]) == (32, True)
    again, text = models.load(tmp_path), "the quick brown fox and the lazy dog"
    assert again.pooling.length == 4
    hidden = language.hidden(language.tokenizer.encode(text)[:4]).numpy()[0, 0]
    for layer in (each.linear for each in language.pooling.projections):
        hidden = hidden @ layer.weight.numpy() + (0 if layer.bias is None else layer.bias.numpy())
    hidden = np.tanh(hidden)
    np.testing.assert_allclose(again.embed(text).numpy()[0], hidden / np.linalg.norm(hidden), rtol=0, atol=1e-5)
    (tmp_path / "3_Dense" / "config.json").write_text(json.dumps({"in_features": 48, "out_features": 9}))
    with pytest.raises(CheckpointError, match=r"3_Dense.*expected linear.weight of shape \[9, 48\], found \[8, 48\]"):
        models.load(tmp_path)
    with pytest.raises(NotImplementedError, match="pooled vectors"):
        language.save(tmp_path / "model.gguf")


def test_modules_that_are_not_known_are_refused(bert, tmp_path):
    for path in bert.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "modules.json").write_text(json.dumps([{"path": "", "type": "sentence_transformers.models.LSTM"}]))
    with pytest.raises(models.ConfigurationError, match="got LSTM"):
        models.load(tmp_path)


def test_a_folder_without_a_tokenizer_takes_ids(llama, tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).symlink_to(llama / name)
    language = models.load(tmp_path, dtype="bfloat16")
    assert language.logits([1, 2, 3]).dtype == paddle.bfloat16
    with pytest.raises(models.ConfigurationError, match="tokenizer"):
        language.generate("text")
