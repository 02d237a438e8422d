"""Models of every family beside what transformers on torch computed with the same weights (see ``record.py``)."""

import itertools
import json
import mmap
import shutil
import subprocess
import sys
import time
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
from argosy import models
from argosy.jit.export import export_program
from argosy.models import attention, files
from argosy_infer import Generator, Predictor, load_program, make_incremental
from argosy_infer.caches import caches_of
from argosy_infer.compress import round_to_nearest
from argosy_infer.errors import IncrementalError, ProgramFileError
from argosy_tensorcore.safetensors import CheckpointError, SafetensorsFile, save_file
from language.weights_by_name import weights


def _read(path):
    return json.loads(path.read_text())


RECORDS = sorted((Path(__file__).parent / "records").glob("*.json"), key=lambda path: "greedy" not in _read(path))
CAUSAL = [path for path in RECORDS if "greedy" in _read(path)]
VALID = np.array([[True] * 12, [True] * 9 + [False] * 3])


@pytest.fixture(scope="module")
def case(request, tmp_path_factory):
    """A record, and its model of a folder with its configuration and weights."""
    record, folder = _read(request.param), tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text(json.dumps(record["config"]))
    save_file({name: weights(name, shape) for name, shape in record["tensors"].items()}, folder / "model.safetensors")
    return record, models.load_model(folder)


@pytest.mark.parametrize("case", RECORDS, indirect=True, ids=lambda path: path.stem)
def test_outputs_are_those_of_transformers(case, tmp_path):
    """Whole and padded; and the same bits of a folder that is written back."""
    record, model = case
    ids = paddle.to_tensor(record["ids"])
    made = model(ids).numpy()
    expected = np.array(record["outputs"], np.float32).reshape(made.shape)
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    padded = model(paddle.to_tensor(record["ids"] * VALID), paddle.to_tensor(VALID)).numpy()
    expected = np.array(record["padded"], np.float32).reshape(made.shape)
    seen = VALID if made.ndim == 3 else slice(None)
    np.testing.assert_allclose(padded[seen], expected[seen], rtol=0, atol=1e-4 * np.abs(expected).max())
    models.save(model, tmp_path)
    np.testing.assert_array_equal(models.load_model(tmp_path)(ids).numpy(), made)


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("case", CAUSAL, indirect=True, ids=lambda path: path.stem)
def test_greedy_tokens_over_the_cache_are_those_of_transformers(case):
    """64 tokens after a prompt: alone, decoded beside another text whose pieces are others, and all of them checked in
    pieces as guesses are. Rotations that change with a text's length are those of the length that is named."""
    record, model = case
    loaded = export_program(model, [paddle.static.InputSpec([None, None], "int64", "ids")])
    scaling, length = record["config"].get("rope_parameters", {}).get("rope_type"), None
    if scaling in ("dynamic", "longrope"):
        with pytest.raises(IncrementalError, match="say which one is meant by text_length"):
            make_incremental(loaded.program)
        check_rotations_by_length(model, loaded, scaling)
        length = 76
    if scaling == "dynamic":
        return  # transformers turns what it has cached by one length and new tokens by another
    generator = Generator(loaded, capacity=256, block_size=8, text_length=length)
    first, second = (prompt + made for prompt, made in zip(record["prompts"], record["greedy"], strict=True))
    assert generator.generate(first[:12], 64) == first[12:]
    beside, pieces = [], zip(*(itertools.pairwise((0, *x, *range(12, 76))) for x in ((1, 8), (5, 6))), strict=True)
    for (a, b), (c, d) in pieces:
        places, owners = [*range(a, b), *range(c, d)], [1] * (b - a) + [2] * (d - c)
        logits = generator.step(first[a:b] + second[c:d], places, owners, [b - a - 1, b - a + d - c - 1])
        beside.append(logits.argmax(-1))
    assert np.array(beside[2:]).T.tolist() == [first[12:], second[12:]]
    guesses = [generator.step(second[a:b], range(a, b), [3] * (b - a)) for a, b in ((0, 5), (5, 22), (22, 75))]
    assert np.concatenate(guesses).argmax(-1)[11:].tolist() == second[12:]


def check_rotations_by_length(model, loaded, scaling):
    """Short texts, and those that are long from the start, are decoded as the whole model computes them at their
    length; whoever loads a folder gets the rotations of all tokens that are asked for."""
    prompt = [3, 17, 5, 40]
    generate = models.LanguageModel(model).generate
    whole = list(prompt)
    for _ in range(4):  # 8 tokens are the model's own length
        whole.append(int(model(paddle.to_tensor([whole])).numpy()[0, -1].argmax()))
    assert (
        Generator(loaded, 64, compiler="reference", text_length=8).generate(prompt, 4)
        == generate(prompt, 4)
        == whole[4:]
    )
    length = 20 if scaling == "dynamic" else 80  # long factors are the same of all long texts
    ids = np.random.default_rng(0).integers(0, 48, 20).tolist()
    made = Generator(loaded, 64, compiler="reference", text_length=length).step(ids, range(20), [0] * 20)
    want = model(paddle.to_tensor([ids])).numpy()[0]
    np.testing.assert_allclose(made, want, rtol=0, atol=1e-5 * np.abs(want).max())


def test_padding_that_sees_no_token_changes_nothing(tmp_path):
    """Behind windows and before texts padding sees nothing but padding; neither what texts are nor gradients of weights
    become NaN by that."""
    config = _read(Path(__file__).parent / "records" / "qwen2-windows.json")["config"]
    config |= {"sliding_window": 2, "layer_types": ["sliding_attention", "full_attention", "full_attention"]}
    model = models.build(models.ConfigFile(config))
    model.eval()
    ids, real = np.arange(1, 10)[None], np.ones((1, 9), bool)
    want = model(paddle.to_tensor(ids)).numpy()
    for before, after in ((0, 4), (3, 0)):
        widths = ((0, 0), (before, after))
        padded, seen = np.pad(ids, widths), np.pad(real, widths)
        logits = model(paddle.to_tensor(padded), paddle.to_tensor(seen))
        (logits[:, before : before + 9] ** 2).mean().backward()
        for parameter in model.parameters():
            assert np.isfinite(parameter.grad.numpy()).all(), parameter.name
        model.clear_gradients()
        made = logits.numpy()
        assert np.isfinite(made).all()
        if after:  # positions are counted from the first column
            np.testing.assert_allclose(made[:, :9], want, rtol=0, atol=1e-5 * np.abs(want).max())


def test_what_heads_mean_is_computed_or_refused(tmp_path):
    """GPT-2's head of its own and BERT's; heads without code."""
    sizes = {"vocab_size": 48, "n_embd": 32, "n_layer": 1, "n_head": 4, "n_positions": 16, "model_type": "gpt2"}
    model = models.build(models.ConfigFile({**sizes, "tie_word_embeddings": False}))
    model.eval()
    models.save(model, tmp_path)
    with SafetensorsFile(tmp_path / "model.safetensors") as file:
        assert file["lm_head.weight"].shape == (48, 32)
    ids = np.arange(6)[None]
    hidden = models.LanguageModel(models.load_model(tmp_path)).hidden(ids).numpy()
    np.testing.assert_allclose(hidden @ model.head.weight.numpy(), model(paddle.to_tensor(ids)).numpy(), atol=1e-5)
    config = _read(Path(__file__).parent / "records" / "bert-masked.json")["config"]
    with pytest.raises(models.ConfigurationError, match=r"ForMaskedLM, .*got 'BertForMultipleChoice'"):
        models.build(models.ConfigFile({**config, "architectures": ["BertForMultipleChoice"]}))
    assert "decoder.weight" in models.build(models.ConfigFile({**config, "tie_word_embeddings": False})).state_dict()


# ---- bad folders


@pytest.fixture
def folder(tmp_path):
    """A Llama as two shards with an index."""
    record = json.loads((Path(__file__).parent / "records" / "llama.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(record["config"]))
    tensors = {name: weights(name, shape) for name, shape in record["tensors"].items()}
    names = sorted(tensors)
    shards = {"model-1.safetensors": names[:10], "model-2.safetensors": names[10:]}
    for shard, held in shards.items():
        save_file({name: tensors[name] for name in held}, tmp_path / shard)
    table = {name: shard for shard, held in shards.items() for name in held}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": table}))
    return tmp_path


def changed(folder, **values):
    config = json.loads((folder / "config.json").read_text()) | values
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not ...}))


def rewritten(folder, change):
    """The second shard and its rows of the index after ``change(tensors)``."""
    tensors = dict(SafetensorsFile(folder / "model-2.safetensors"))
    change(tensors)
    save_file(tensors, folder / "model-2.safetensors")
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    table = {name: shard for name, shard in index["weight_map"].items() if shard == "model-1.safetensors"}
    table |= dict.fromkeys(tensors, "model-2.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": table}))


def test_a_shard_that_the_index_does_not_name_is_refused(folder):
    shutil.copy(folder / "model-2.safetensors", folder / "model-00003-of-00003.safetensors")
    with pytest.raises(CheckpointError, match=r"index\.json does not name the shard model-00003-of-00003\.safetensors"):
        models.load_model(folder)


def test_shards_are_read(folder):
    assert models.load_model(folder)(paddle.to_tensor([[1, 2, 3]])).shape == [1, 3, 48]


def test_folders_are_imported_as_programs(folder):
    """By the importer that the distribution names; with the positions of the model."""
    project = tomllib.loads((Path(__file__).parents[2] / "packages" / "meta" / "pyproject.toml").read_text())
    ((_, named),) = project["project"]["entry-points"]["argosy.importers"].items()
    importer = getattr(import_module(named.partition(":")[0]), named.partition(":")[2])()
    assert importer.accepts(str(folder))
    assert not importer.accepts(str(folder / "config.json"))
    loaded = importer.load(str(folder))
    (logits,) = Predictor(loaded, "reference").run(np.array([[1, 2, 3]]))
    want = models.load_model(folder)(paddle.to_tensor([[1, 2, 3]])).numpy()
    np.testing.assert_allclose(logits, want, rtol=0, atol=1e-5 * np.abs(want).max())
    assert loaded.program.attributes["positions_limit"] == 80


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "lama"}, "model_type.*expected|model_type.*one of"),
        ({"hidden_size": ...}, "hidden_size"),
        ({"hidden_size": "32"}, "hidden_size.*whole number.*'32'"),
        ({"num_key_value_heads": 3}, "num_key_value_heads.*divisor"),
        ({"hidden_act": "mish"}, "hidden_act.*silu"),
        ({"rope_parameters": {"rope_type": "ntk"}}, "rope_type.*yarn"),
        ({"rope_parameters": {"rope_theta": float("nan")}}, "rope_theta.*finite number"),
        ({"rope_parameters": {"partial_rotary_factor": 1e9}}, "partial_rotary_factor.*1 at most"),
        (
            {"rope_parameters": {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [1.0]}},
            "short_factor.*4",
        ),
    ],
)
def test_configurations_that_are_wrong_are_refused_by_key(folder, values, message):
    changed(folder, **values)
    with pytest.raises(models.ConfigurationError, match=message):
        models.load_model(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("model.norm.weight"), "1 tensors are missing.*model.norm.weight"),
        (lambda t: t.update(extra=np.zeros(3, np.float32)), "belong to no parameter.*extra"),
        (
            lambda t: t.update({"model.norm.weight": np.zeros(31, np.float32)}),
            r"model.norm.weight has shape \[31\].*\[32\]",
        ),
    ],
)
def test_tensors_that_are_wrong_are_refused_by_name(folder, change, message):
    rewritten(folder, change)
    with pytest.raises(CheckpointError, match=message):
        models.load_model(folder)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"weight_map": {"a": "../other.safetensors"}}, "no safetensors file of this folder"),
        ({"weight_map": {"a": "model-3.safetensors"}}, "model-3.safetensors does not exist"),
        ({"weight_map": {"a": "model-2.safetensors"}}, "differ"),
        ({"weight_map": [1]}, "must map"),
        ([], "no index"),
    ],
)
def test_indices_that_are_wrong_are_refused(folder, table, message):
    (folder / "model.safetensors.index.json").write_text(json.dumps(table))
    with pytest.raises(CheckpointError, match=message):
        models.load_model(folder)


def test_exports_name_tensors_of_the_files(folder):
    """Nothing but what is in no file is written; the weights are mapped from the shards, where the folder and the
    export are moved together, too. A weight that was changed is written; files that were changed are refused."""
    model = models.load_model(folder)
    (folder / "export").mkdir()
    before = (folder / "model-2.safetensors").read_bytes()
    with pytest.raises(ProgramFileError, match=r"model-2.safetensors holds weights that the export names"):
        models.export(model, folder / "model-2")
    assert (folder / "model-2.safetensors").read_bytes() == before
    models.export(model, folder / "export" / "m")
    written = SafetensorsFile(folder / "export" / "m.safetensors")
    assert not [name for name in written if name.endswith("proj.weight")]
    ids = np.array([[1, 2, 3]])
    want = model(paddle.to_tensor(ids)).numpy()
    moved = folder.rename(folder.with_name(folder.name + "-moved"))
    loaded = load_program(moved / "export" / "m")
    weight = loaded.states["model.layers.0.mlp.up_proj.weight"]
    while isinstance(weight, np.ndarray):
        weight = weight.base
    assert isinstance(weight, (memoryview, mmap.mmap))
    np.testing.assert_allclose(Predictor(loaded).run(ids)[0], want, rtol=0, atol=1e-5 * np.abs(want).max())
    changed_model = models.load_model(moved)
    changed_model.model.norm.weight.set_value(changed_model.model.norm.weight * 2)
    models.export(changed_model, moved / "export" / "changed")
    assert "model.norm.weight" in SafetensorsFile(moved / "export" / "changed.safetensors")
    rewritten(moved, lambda tensors: tensors.update({name: array * 2 for name, array in tensors.items()}))
    with pytest.raises(ProgramFileError, match=r"lies in .*model-2.safetensors: .* is another one"):
        load_program(moved / "export" / "m")
    (moved / "model-2.safetensors").unlink()
    with pytest.raises(ProgramFileError, match=r"lies in .*model-2.safetensors"):
        load_program(moved / "export" / "m")


def test_training_leaves_the_files_as_they_are(folder):
    before = [path.read_bytes() for path in sorted(folder.glob("*.safetensors"))]
    model = models.load_model(folder)
    optimizer = paddle.optimizer.AdamW(1e-2, parameters=model.parameters())
    ids = paddle.to_tensor([[1, 2, 3, 4]])
    losses = []
    for _ in range(3):
        loss = model.loss(ids, paddle.to_tensor([[2, 3, 4, 5]]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    assert losses[2] < losses[0]
    assert [path.read_bytes() for path in sorted(folder.glob("*.safetensors"))] == before


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize("cache_dtype", [None, "int8"])
@pytest.mark.parametrize("name", ["deepseek_v2", "deepseek_v2-no-query-latent", "deepseek_v3-yarn"])
def test_latent_attention_keeps_latent_channels_of_each_token(name, cache_dtype, tmp_path):
    """16 + 4 numbers instead of 4 heads of 12 + 12; in pieces, as bytes too, the logits are the whole model's."""
    model, ids = exported(name, tmp_path)
    generator = Generator(tmp_path / "export", capacity=64, block_size=4, cache_dtype=cache_dtype)
    caches = caches_of(generator.predictor.program)
    assert {(c.kind, c.block) for c in caches if not c.scales_of} == {("latent", (4, 1, 20))}
    assert {(c.dtype, c.scales_of.endswith("latent")) for c in caches} == (
        {("int8", False), ("float32", True)} if cache_dtype else {("float32", False)}
    )
    expected = model(paddle.to_tensor([ids])).numpy()[0]
    rows = [generator.step(ids[a:b], range(a, b), [0] * (b - a)) for a, b in ((0, 7), (7, 8), (8, 12))]
    bound = 0.03 if cache_dtype else 1e-5
    np.testing.assert_allclose(np.concatenate(rows), expected, rtol=0, atol=bound * np.abs(expected).max())


def test_compressed_latent_attention_keeps_latent_channels(tmp_path):
    """What heads make keys and values of stays in floats, and is reported."""
    exported("deepseek_v3", tmp_path)
    small, report = round_to_nearest(load_program(tmp_path / "export"))
    skipped = [name for name, reason in report.skipped.items() if "cached channels" in reason]
    assert skipped == [f"model.layers.{i}.self_attn.kv_b_proj.weight" for i in range(3)]
    assert {c.kind for c in caches_of(make_incremental(small.program))} == {"latent"}


@pytest.mark.parametrize("name", ["gemma2", "gpt_oss", "mistral"])
def test_caches_of_bytes_give_what_rounded_keys_and_values_give(name, tmp_path, monkeypatch):
    """Each head of a token to 1 in 127 of its largest number: a quarter of the memory, but for scales."""
    model, ids = exported(name, tmp_path)
    plain, small = (Generator(tmp_path / "export", capacity=64, cache_dtype=dtype) for dtype in (None, "int8"))
    exact = model(paddle.to_tensor([ids])).numpy()[0]
    attend = attention.F.scaled_dot_product_attention

    def rounded(x):
        step = x.abs().max(-1, keepdim=True) / 127
        return (x / step).round() * step

    monkeypatch.setattr(
        attention.F,
        "scaled_dot_product_attention",
        lambda query, key, value, *others, **rule: attend(query, rounded(key), rounded(value), *others, **rule),
    )
    expected = model(paddle.to_tensor([ids])).numpy()[0]
    made = np.concatenate([small.step(ids[a:b], range(a, b), [0] * (b - a)) for a, b in ((0, 7), (7, 8), (8, 12))])
    largest = np.abs(exact).max()
    np.testing.assert_allclose(made, expected, rtol=0, atol=2e-3 * largest)  # a number at a tie may round elsewhere
    assert 1e-6 * largest < np.abs(made - exact).max() < 0.1 * largest
    sizes = [sum(c.block_bytes for c in caches_of(g.predictor.program)) for g in (plain, small)]
    width = caches_of(plain.predictor.program)[0].block[-1]
    assert sizes[1] * 4 * width == sizes[0] * (width + 4)


def exported(name, folder):
    """The model of a record, exported into a folder, and ids."""
    record = json.loads((Path(__file__).parent / "records" / f"{name}.json").read_text())
    (folder / "config.json").write_text(json.dumps(record["config"]))
    save_file({n: weights(n, shape) for n, shape in record["tensors"].items()}, folder / "model.safetensors")
    model = models.load_model(folder)
    paddle.jit.save(model, folder / "export", input_spec=[paddle.static.InputSpec([None, None], "int64", "ids")])
    return model, record["ids"][0]


@pytest.mark.parametrize("name", ["mixtral", "gpt_oss"])
def test_experts_are_trained_as_they_are_captured(name, tmp_path):
    """A captured training step, whose experts are grouped products, has the loss and gradients of eager code."""
    record = json.loads((Path(__file__).parent / "records" / f"{name}.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(record["config"]))
    save_file({n: weights(n, shape) for n, shape in record["tensors"].items()}, tmp_path / "model.safetensors")
    ids = paddle.to_tensor(record["ids"])

    def gradients(captured):
        model = models.load_model(tmp_path)

        def step(x):
            loss = model.loss(x[:, :-1], x[:, 1:])
            loss.backward()
            return loss

        loss = (paddle.jit.to_static(step, full_graph=True) if captured else step)(ids)
        return float(loss), {n: p.grad.numpy() for n, p in model.named_parameters() if p.grad is not None}

    (eager, expected), (captured, made) = gradients(False), gradients(True)
    assert captured == pytest.approx(eager, rel=1e-5)
    assert expected.keys() == made.keys()
    assert any("experts" in key for key in made)
    for key, value in expected.items():
        np.testing.assert_allclose(made[key], value, rtol=0, atol=2e-5 * max(np.abs(value).max(), 1e-3), err_msg=key)


SAVER = """
import sys
import numpy as np
from argosy.jit.export import export_program
from argosy.models import attention, files
files.SHARD_BYTES = int(sys.argv[3])
value = int(sys.argv[2])
tensors = {f"t{i}": np.full(5000, value, np.int32) for i in range(8)}
print("ready", flush=True)
sys.stdin.readline()
files.write_folder(sys.argv[1], {"value": value}, tensors)
"""


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("sizes", [(50000, 50000), (1 << 30, 50000), (50000, 1 << 30)], ids=["shards", "split", "join"])
def test_a_save_that_is_killed_leaves_the_old_model_or_the_new_one(sizes, tmp_path):
    """At any moment, tensors and configuration; the next save removes what was left, and other files stay."""
    tmp_path = tmp_path / "model"
    tmp_path.mkdir()
    (tmp_path / "tokenizer.json").write_text("{}")
    files.SHARD_BYTES, whole = sizes[0], files.SHARD_BYTES
    try:
        rng = np.random.default_rng(0)
        seen = set()
        for attempt in range(8):
            old = {f"t{i}": np.full(5000, 0, np.int32) for i in range(8)}
            files.SHARD_BYTES = sizes[0]
            files.write_folder(tmp_path, {"value": 0}, old)
            arguments = [sys.executable, "-c", SAVER, str(tmp_path), "1", str(sizes[1])]
            with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as saver:
                saver.stdout.readline()
                saver.stdin.write(b"\n")
                saver.stdin.flush()
                time.sleep(float(rng.uniform(0, 0.03)) if attempt else 0.5)
                saver.kill()
            found = {
                int(value) for array in files.ModelFiles(tmp_path).values() for value in (array.min(), array.max())
            }
            assert found in ({0}, {1})
            assert found == {json.loads((tmp_path / "config.json").read_text())["value"]}
            seen |= found
        assert 1 in seen
        files.SHARD_BYTES = sizes[1]
        files.write_folder(tmp_path, {"value": 2}, old)
        shards = {path.name for path in tmp_path.glob("*.safetensors")}
        named = set(files.ModelFiles(tmp_path)._shards.values())
        assert shards == named
        assert {path.name for path in tmp_path.iterdir()} - shards <= {
            "config.json", "tokenizer.json", "model.safetensors.index.json"
        }  # fmt: skip
        assert (tmp_path / "tokenizer.json").exists()
        assert [path.name for path in tmp_path.parent.iterdir()] == ["model"]
    finally:
        files.SHARD_BYTES = whole


@pytest.mark.parametrize("name", ["llama", "mixtral"])
def test_a_compressed_program_is_decoded_as_it_is_run(name, tmp_path):
    """Weights of eight bits; what the cache gives is what the compressed program gives for the whole text."""
    _, prompt = exported(name, tmp_path)
    small, report = round_to_nearest(load_program(tmp_path / "export"))
    assert len(report.layers) >= 8
    assert all(0 < layer.error < 0.01 for layer in report.layers)
    made = Generator(small, capacity=64).generate(prompt, max_new_tokens=8)
    (logits,) = Predictor(small, "reference").run(np.array([[*prompt, *made]]))
    assert made == logits[0, len(prompt) - 1 : -1].argmax(-1).tolist()
