"""GGUF files beside llama.cpp: what it generates from files that we wrote and from one that it wrote, and the ids that
its tokenizers give. `record_llama_cpp.py` asked it."""

import json
from functools import cache
from pathlib import Path

import pytest
import tokenizers

from argosy import models
from argosy.models.configuration import ConfigFile
from argosy.models.gguf_words import WORDS
from argosy_infer.llm import ChatTemplate, Tokenizer
from language.test_gguf import RECORDS, model_of, pieces_of
from language.weights_by_name import weights

HERE = Path(__file__).parent
FAMILIES = ("llama", "llama-biases-tied", "qwen2", "qwen3", "gemma2")
FORMATS = ("F16", "BF16", "Q8_0", "Q4_0")
KINDS = (
    "gpt-2", "llama-bpe", "qwen2", "dbrx", "smollm", "deepseek-v3", "tekken", "gpt-4o", "falcon", "default", "pieces"
)  # fmt: skip
CASES = (*FAMILIES, *FORMATS, "Q4_K")
TEXTS = [
    "the fox's 1234567 tails\n\n  and \u6771\u4eac  na\u00efve ",
    "",
    "  quick=brown's $5.25 don't",
    "The\tdogs'LL run!?\r\n x",
    "the</s>quick <s>brown",
    "aBCd's XMLHttp CAFÉ'S 3.14159, 12ab_c\u00a0 \u6f22\u5b57\u304b\u306a!?//\n",
]


def write_file(case, folder):
    """The file of a case but the one that llama.cpp wrote."""
    path = folder / "model.gguf"
    if case in FAMILIES:
        models.save(model_of(case, folder)[1], path)
    else:
        models.save(wide_model(64 if case in FORMATS else 256), path, case if case in FORMATS else None)
    return path


def wide_model(width):
    """A Llama whose rows are whole blocks."""
    config = json.loads((RECORDS / "llama.json").read_text())["config"]
    sizes = {"hidden_size": width, "intermediate_size": width, "head_dim": width // 4, "num_key_value_heads": 1}
    model = models.build(ConfigFile(config | sizes | {"num_hidden_layers": 1}))
    for name, parameter in model.named_parameters():
        made = weights(name, list(parameter.shape[::-1]))  # [out, in], as files have them
        parameter.set_value(made.T if "embed" not in name else weights(name, list(parameter.shape)))
    model.eval()
    return model


@cache
def record():
    return json.loads((HERE / "llama_cpp.json").read_text())


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("case", CASES)
def test_what_llama_cpp_generates(case, tmp_path):
    path = HERE / "llama_cpp_q4_k.gguf" if case == "Q4_K" else write_file(case, tmp_path)
    language = models.load(path)
    for prompt, expected in record()["greedy"][case]:
        assert language.generate(prompt, len(expected)) == expected


def tokenizer_of(kind, folder):
    """A trained tokenizer that cuts words as ``kind`` says, or the one of pieces."""
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    if kind == "pieces":
        return pieces_of(model_of("llama", folder)[1], folder)
    library = tokenizers.Tokenizer(tokenizers.models.BPE(ignore_merges=WORDS[kind].whole))
    by_library = {"gpt-2": [], "smollm": [tokenizers.pre_tokenizers.Digits(individual_digits=True)]}
    split = (
        by_library[kind]
        if kind in by_library
        else [tokenizers.pre_tokenizers.Split(tokenizers.Regex(each), "isolated") for each in WORDS[kind].patterns]
    )
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind in by_library)
    library.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([*split, byte_level])
    library.decoder = tokenizers.decoders.ByteLevel()
    if WORDS[kind].begins:
        library.post_processor = tokenizers.processors.TemplateProcessing("<s> $A", None, [("<s>", 0)])
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=330, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet)
    library.train_from_iterator(["the quick brown fox's 12345 dogs' tails don't $5.25\n"] * 4, trainer)
    return Tokenizer.from_json(library.to_str(), special, ChatTemplate("{{ messages[0].content }}</s>", special))


def write_text_file(kind, folder):
    """A file with a tokenizer, of a model that has some tokens more, and that tokenizer."""
    config = json.loads((RECORDS / "llama.json").read_text())["config"] | {"vocab_size": 336, "num_hidden_layers": 1}
    tokenizer, path = tokenizer_of(kind, folder), folder / f"{kind}.gguf"
    models.save(models.build(ConfigFile(config)), path, tokenizer=tokenizer)
    return path, tokenizer


@pytest.mark.parametrize("kind", KINDS)
def test_the_tokenizer_of_a_file_gives_the_ids_of_llama_cpp(kind, tmp_path):
    path, library = write_text_file(kind, tmp_path)
    language = models.load(path)
    for text, expected in zip(TEXTS, record()["ids"][kind], strict=True):
        assert language.tokenizer.encode(text) == library.encode(text) == expected
        assert language.tokenizer.decode(expected) == library.decode(expected)
    assert language.tokenizer.special == library.special
    assert language.generation.stop == (library.id_of("eos_token"),)
    if library.template is not None:
        assert language.tokenizer.chat([{"role": "user", "content": "dogs"}])[-1] == 1


def test_a_tokenizer_is_written_beside_a_folders_model(tmp_path):
    library = tokenizer_of("qwen2", tmp_path)
    model = model_of("llama", tmp_path)[1]
    models.save(model, tmp_path / "made", tokenizer=library)
    tokenizer = models.load(tmp_path / "made").tokenizer
    assert [tokenizer.encode(text) for text in TEXTS] == [library.encode(text) for text in TEXTS]
    assert tokenizer.special == library.special
    assert tokenizer.template.source == library.template.source


def test_what_a_file_cannot_say_of_a_tokenizer_is_refused(tmp_path):
    def refused(error, text, change=lambda form: None, kind="qwen2", case="wide"):
        form = json.loads(tokenizer_of(kind, tmp_path).to_json())
        change(form)
        config = json.loads((RECORDS / "llama.json").read_text())["config"] | {"num_hidden_layers": 1}
        model = models.build(ConfigFile(config | ({"vocab_size": 336} if case == "wide" else {})))
        with pytest.raises(error, match=text):
            models.save(model, tmp_path / "refused.gguf", tokenizer=Tokenizer.from_json(json.dumps(form), {}))
        assert not (tmp_path / "refused.gguf").exists()

    refused(ValueError, r"has token \d+, the model 48", case="narrow")
    refused(NotImplementedError, "words cut by", lambda form: form.update(pre_tokenizer={"type": "Whitespace"}))
    refused(NotImplementedError, "ignore_merges", lambda form: form["model"].update(ignore_merges=True))
    refused(NotImplementedError, "order of scores", lambda form: form["model"]["merges"].pop(0), "pieces")
    words = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    refused(NotImplementedError, "WordLevel", lambda form: form.update(model=words, added_tokens=[]))
