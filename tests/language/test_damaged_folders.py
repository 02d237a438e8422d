"""Folders whose JSON is damaged: an index of shards, ``config.json``, ``tokenizer.json`` and the settings of generation
with any value in any place are read, or refused by the errors that their readers name, before memory is taken."""

import contextlib
import copy
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy import models
from argosy_infer.llm import GenerationSettings, SettingsError, Tokenizer, TokenizerError
from argosy_infer.llm.chat import ChatError
from argosy_tensorcore.safetensors import CheckpointError, save_file
from language.weights_by_name import weights

NUMBERS = st.sampled_from([0, -1, 1, 3, 2**31, 2**40, 10**30, 0.5, -0.0, 1e400, float("nan")])
LEAVES = (
    st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "32", "silu", "default", "../x", "\ud800", "a" * 300])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FIXTURES = [HealthCheck.function_scoped_fixture]
NAMES = ["llama-yarn", "deepseek_v3", "gemma3_text", "gpt_oss", "bert"]


def places(value, path=()):
    """Where there is something in a JSON value."""
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def damaged(table, draw):
    """The table with a value in the place of another, or without it."""
    made = copy.deepcopy(table)
    *outer, last = draw(st.sampled_from(list(places(made))))
    inner = made
    for key in outer:
        inner = inner[key]
    if isinstance(inner, dict) and draw(st.integers(0, 4)) == 0:
        del inner[last]
    else:
        inner[last] = draw(VALUES)
    return made


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Tiny models of several families."""
    made = {}
    for name in NAMES:
        record = json.loads((Path(__file__).parent / "records" / f"{name}.json").read_text())
        made[name] = tmp_path_factory.mktemp(name), record["config"]
        tensors = {n: weights(n, shape) for n, shape in record["tensors"].items()}
        save_file(tensors, made[name][0] / "model.safetensors")
    return made


@settings(max_examples=40, deadline=None, suppress_health_check=FIXTURES)
@given(st.data())
def test_configurations(folders, data):
    folder, config = folders[data.draw(st.sampled_from(NAMES))]
    (folder / "config.json").write_text(json.dumps(damaged(config, data.draw)))
    with contextlib.suppress(models.ConfigurationError, CheckpointError, NotImplementedError):
        models.load_model(folder)


@pytest.mark.parametrize("key", ["num_hidden_layers", "n_routed_experts", "hidden_size", "vocab_size", "kv_lora_rank"])
def test_sizes_beyond_all_files(folders, key):
    folder, config = folders["deepseek_v3"]
    (folder / "config.json").write_text(json.dumps(config | {key: 10**12}))
    with pytest.raises((models.ConfigurationError, CheckpointError)):
        models.load_model(folder)


@settings(max_examples=40, deadline=None, suppress_health_check=FIXTURES)
@given(st.data())
def test_indices_of_shards(folders, data):
    folder, config = folders["llama-yarn"]
    (folder / "config.json").write_text(json.dumps(config))
    names = models.load_model(folder).state_dict()
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(names, "model.safetensors")}
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps(damaged(index, data.draw)))
    with contextlib.suppress(CheckpointError):
        models.load_model(folder)
    path.unlink()


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """A folder with a tokenizer of pieces of words, its settings and those of generation."""
    library = pytest.importorskip("tokenizers")
    made = library.Tokenizer(library.models.BPE(unk_token="?"))
    made.pre_tokenizer = library.pre_tokenizers.Whitespace()
    made.train_from_iterator(
        ["the argosy sails", "a ring"],
        library.trainers.BpeTrainer(vocab_size=40, special_tokens=["?", "<end>"], show_progress=False),
    )
    folder = tmp_path_factory.mktemp("tokenizer")
    own = {"eos_token": "<end>", "chat_template": "{{ messages }}", "model_max_length": 10}
    drawn = {"do_sample": True, "temperature": 0.5, "top_k": 3, "eos_token_id": [1], "max_new_tokens": 4}
    return folder, json.loads(made.to_str()), own, drawn


@settings(max_examples=40, deadline=None, suppress_health_check=FIXTURES)
@given(st.data())
def test_tokenizers_and_settings(tokenizer, data):
    folder, *tables = tokenizer
    which = data.draw(st.integers(0, 2))
    tables[which] = damaged(tables[which], data.draw)
    for name, table in zip(("tokenizer", "tokenizer_config", "generation_config"), tables, strict=True):
        (folder / f"{name}.json").write_text(json.dumps(table))
    with contextlib.suppress(TokenizerError, SettingsError, ChatError):
        ids = Tokenizer.read(folder).encode("the argosy")
        assert all(type(i) is int for i in ids)
        GenerationSettings.read(folder)
