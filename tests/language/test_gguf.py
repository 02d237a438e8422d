"""GGUF files beside the same model in a folder: written by us, and by the library with llama.cpp's order of rows."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import gguf
import numpy as np
import pytest

import argosy as paddle
from argosy import models
from argosy.models.gguf import ARCHITECTURES, _array, rearrange, rows_by_halves
from argosy.models.gguf_blocks import WRITTEN
from argosy_tensorcore.safetensors import CheckpointError, save_file
from language.weights_by_name import weights

RECORDS = Path(__file__).parent / "records"
CASES = ["llama", "llama-biases-tied", "qwen2", "qwen3", "gemma2", "gemma3_text"]


def model_of(case, folder):
    record = json.loads((RECORDS / f"{case}.json").read_text())
    (folder / "config.json").write_text(json.dumps(record["config"]))
    save_file({name: weights(name, shape) for name, shape in record["tensors"].items()}, folder / "model.safetensors")
    return record, models.load_model(folder)


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    model = model_of("llama", folder)[1]
    models.save(model, folder / "model.gguf")
    return folder / "model.gguf"


@pytest.mark.parametrize("case", CASES)
def test_a_file_gives_what_the_folder_gives(case, tmp_path):
    record, model = model_of(case, tmp_path)
    if "rope_theta" in record["config"].get("rope_parameters", {}):
        assert record["config"]["rope_parameters"]["rope_type"] == "default"
    ids = paddle.to_tensor(record["ids"])
    expected = model(ids).numpy()
    if case.startswith("gemma"):  # a GGUF file does not hold the scale: it is that of the head
        if case == "gemma3_text":  # nor which layers have windows: all but each sixth one
            with pytest.raises(ValueError, match=r"say nothing of layer_types: expected \['sliding_attention', "):
                models.save(model, tmp_path / "model.gguf")
            record["config"]["layer_types"] = ["sliding_attention"] * 3
            record["config"]["rope_parameters"]["full_attention"]["rope_theta"] = 500.0
        record["config"]["query_pre_attn_scalar"] = record["config"]["head_dim"]
        (tmp_path / "config.json").write_text(json.dumps(record["config"]))
        model = models.load_model(tmp_path)
        expected = model(ids).numpy()
    models.save(model, tmp_path / "model.gguf")
    made = models.load_model(tmp_path / "model.gguf")(ids).numpy()
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize(("case", "kind"), [("qwen2", "F16"), ("llama-biases-tied", "BF16"), ("qwen2", "Q8_0")])
def test_biases_in_float32_are_added_to_products_of_other_dtypes(case, kind, tmp_path):
    """Files have vectors in float32, whatever their matrices are in; norms stay so."""
    record, model = model_of(case, tmp_path)
    ids = paddle.to_tensor(record["ids"])
    expected = model(ids).numpy()
    models.save(model, tmp_path / "model.gguf", kind)
    for integers in (False, True):
        made = models.load_model(tmp_path / "model.gguf", integers=integers)
        room = {"F16": 0.01, "BF16": 0.08, "Q8_0": 0.05}[kind] * np.abs(expected).max()
        np.testing.assert_allclose(made(ids).astype("float32").numpy(), expected, rtol=0, atol=room)
        assert made.model.norm.weight.dtype == paddle.float32


def test_rows_of_queries_lie_as_llama_cpp_wants_them(llama):
    """The order of Hugging Face's converter: within a head, rows of both halves alternate."""
    stored = {tensor.name: tensor.data for tensor in gguf.GGUFReader(llama).tensors}
    query = weights("model.layers.0.self_attn.q_proj.weight", [32, 32])
    expected = query.reshape(4, 2, 4, 32).swapaxes(1, 2).reshape(32, 32)
    np.testing.assert_array_equal(stored["blk.0.attn_q.weight"], expected)
    np.testing.assert_array_equal(
        stored["blk.0.attn_v.weight"], weights("model.layers.0.self_attn.v_proj.weight", [16, 32])
    )


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q6_K"])
def test_blocks_are_what_the_library_makes_of_them(kind, tmp_path):
    """A Llama whose rows are whole blocks; formats that the library only reads are random bytes."""
    wide = kind.endswith("_K")
    width = 256 if wide else 32
    config = json.loads((RECORDS / "llama.json").read_text())["config"]
    config |= {"hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": 1}
    config["head_dim"] = width // 4
    model = models.build(models.ConfigFile(config))
    path = tmp_path / "model.gguf"
    models.save(model, path, "F32" if wide else kind)
    if wide:
        check_written_blocks(kind, model.model.layers[0].mlp.down_proj.weight.numpy().T)
        _with_random_blocks(path, gguf.GGMLQuantizationType[kind])
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    loaded = models.load_model(path)
    tensor = stored["blk.0.ffn_down.weight"]
    assert tensor.tensor_type.name == kind
    expected = gguf.dequantize(tensor.data, tensor.tensor_type).T
    made = loaded.model.layers[0].mlp.down_proj.weight
    assert made.dtype == {"F16": paddle.float16, "BF16": paddle.bfloat16}.get(kind, paddle.float32)
    np.testing.assert_array_equal(made.astype("float32").numpy(), expected)


def test_rows_that_are_no_heads_are_refused():
    rows = np.zeros((12, 4), np.float32)
    with pytest.raises(CheckpointError, match=r"q_proj.weight has 12 rows; expected two halves for each of 4 heads"):
        rearrange("model.layers.0.self_attn.q_proj.weight", rows, ARCHITECTURES["llama"], {"q_proj": 4}, rows_by_halves)


def test_empty_blocks_have_no_numbers():
    kind = gguf.GGMLQuantizationType.Q8_0
    empty = SimpleNamespace(shape=np.array([64, 0]), tensor_type=kind, data=np.zeros((0, 68), np.uint8))
    assert _array(empty).shape == (0, 64)


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"])
def test_blocks_are_multiplied_with_as_integers(kind, tmp_path):
    """No layer of blocks has float weights, and logits are those of the float32 that blocks stand for; the integers go
    into other layouts as they are, but for minima of groups, which are no multiples of scales."""
    drawn, config = kind not in ("Q8_0", "Q4_0"), json.loads((RECORDS / "llama.json").read_text())["config"]
    config |= {"hidden_size": 64, "intermediate_size": 512 if drawn else 96, "num_hidden_layers": 1, "head_dim": 16}
    path, ids = tmp_path / "model.gguf", paddle.to_tensor([[3, 1, 4, 1, 5]])
    models.save(models.build(models.ConfigFile(config)), path, "F32" if drawn else kind)
    if drawn:
        _with_random_blocks(path, gguf.GGMLQuantizationType[kind])
    made, expected = models.load_model(path, integers=True), models.load_model(path)(ids).numpy()
    floats = [name for name, p in made.named_parameters() if p.ndim == 2]
    assert not [name for name in floats if "down_proj" in name or not drawn]
    np.testing.assert_allclose(made(ids).numpy(), expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    with pytest.raises(ValueError, match=r"got 'gguf', which only files that end so hold: give format"):
        models.save(made, tmp_path / "packed")
    if kind in ("Q4_1", "Q5_1", "Q4_K", "Q5_K"):
        with pytest.raises(NotImplementedError, match=r"down_proj has no .* layout: its offsets are no multiples"):
            models.save(made, tmp_path / "packed", "compressed-tensors")
        return
    models.save(made, tmp_path / "packed", "compressed-tensors")
    again = models.load_model(tmp_path / "packed")
    np.testing.assert_array_equal(again(ids).numpy(), made(ids).numpy())


@pytest.mark.parametrize(("kind", "vocabulary"), [("Q8_0", 67), ("Q4_0", 66), ("Q4_0", 67), ("Q4_K", 66)])
def test_a_table_that_the_head_shares_stays_in_blocks(kind, vocabulary, tmp_path):
    """Rows are taken out of its blocks, of which two halves share bytes, and the head multiplies with them; the blocks
    are written back as they are, ids beyond the table are refused."""
    config = json.loads((RECORDS / "llama.json").read_text())["config"]
    config |= {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1, "head_dim": 64}
    config |= {"tie_word_embeddings": True, "vocab_size": vocabulary}
    path, ids = tmp_path / "model.gguf", [3, 1, 32, 33, 34, vocabulary - 1]
    models.save(models.build(models.ConfigFile(config)), path, kind)
    made, floats = models.load(path, integers=True), models.load(path)
    assert not [name for name, p in made.model.named_parameters() if p.ndim == 2]
    expected = floats.logits(ids).numpy()
    np.testing.assert_allclose(made.logits(ids).numpy(), expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    assert made.generate(ids, max_new_tokens=8) == floats.generate(ids, max_new_tokens=8)
    with pytest.raises(ValueError, match=rf"outside of the model's vocabulary: expected 0 to {vocabulary - 1}"):
        made.generate([vocabulary])
    narrow = models.load_model(path, "bfloat16", integers=True)(paddle.to_tensor([ids]))
    assert narrow.dtype == paddle.bfloat16
    np.testing.assert_allclose(
        narrow.astype("float32").numpy().reshape(expected.shape), expected, rtol=0, atol=0.05 * np.abs(expected).max()
    )
    if kind == "Q4_K":
        with pytest.raises(NotImplementedError, match=r"embed_tokens.weight has integers that no block holds"):
            models.save(made.model, tmp_path / "again.gguf")
        return
    models.save(made.model, tmp_path / "again.gguf")
    again, table = gguf.GGUFReader(tmp_path / "again.gguf").tensors, "token_embd.weight"
    stored = [next(t.data for t in each if t.name == table) for each in (again, gguf.GGUFReader(path).tensors)]
    np.testing.assert_array_equal(*stored)
    models.save(made.model, tmp_path / "folder", "compressed-tensors")  # where it is floats
    again = models.load(tmp_path / "folder").logits(ids).numpy()
    np.testing.assert_allclose(again, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def check_written_blocks(kind, weight):
    """What we write, the library reads within half a step, and the roundings of the steps themselves; ends of ranges,
    zeros and numbers of one sign too."""
    weight = np.concatenate([weight[:4], np.abs(weight[4:6]), -np.abs(weight[6:8]), 0 * weight[:1]])
    weight[0, :256] = 0
    made = gguf.dequantize(WRITTEN[kind](weight).reshape(len(weight), -1), gguf.GGMLQuantizationType[kind])
    groups, room = (32, 1 / 15) if kind == "Q4_K" else (16, 1 / 31)
    wide, blocks = weight.reshape(-1, groups), np.abs(weight).reshape(-1, 256).max(1)
    span = np.maximum(wide.max(1), 0) - np.minimum(wide.min(1), 0) if kind == "Q4_K" else np.abs(wide).max(1)
    error = np.abs(made - weight).reshape(-1, groups).max(1)
    assert (error <= span * room * 0.51 + np.repeat(blocks, 256 // groups) * (0.03 if kind == "Q4_K" else 0.005)).all()
    assert not made[0, :256].any()
    assert not made[-1].any()


def _with_random_blocks(path, kind):
    """The file with the second matrix of its perceptron in ``kind``."""
    size, nbytes = gguf.GGML_QUANT_SIZES[kind]

    def blocks_of(array):
        rows, columns = array.shape
        blocks = np.random.RandomState(0).randint(0, 256, (rows, columns // size, nbytes)).astype(np.uint8)
        scale = np.frombuffer(np.array([0.01], np.float16).tobytes(), np.uint8)
        blocks[..., :2] = blocks[..., 2:4] = blocks[..., -2:] = scale  # random bytes may be a scale that is NaN
        return blocks.reshape(rows, -1)

    rewrite(path, f"{path}.new", quantised={"blk.0.ffn_down.weight": (blocks_of, kind)})
    Path(f"{path}.new").replace(path)


def rewrite(source, path, add=lambda writer: None, quantised=()):
    """The file ``source`` with more metadata, or with tensors in other formats, at ``path``."""
    reader, writer = gguf.GGUFReader(source), gguf.GGUFWriter(path, "llama")
    for name, field in reader.fields.items():
        if not name.startswith(("GGUF.", "general.architecture", "tokenizer.ggml.model")):
            writer.add_key_value(name, field.contents(), field.types[0])
    add(writer)
    for tensor in reader.tensors:
        if tensor.name in quantised:
            make, kind = quantised[tensor.name]
            writer.add_tensor(tensor.name, make(tensor.data), raw_dtype=kind)
        else:
            writer.add_tensor(tensor.name, np.array(tensor.data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("length", [0, 3, 4, 20, 40, 200, 1000, -40])
def test_files_that_are_cut_short_are_refused(llama, tmp_path, length):
    (tmp_path / "cut.gguf").write_bytes(llama.read_bytes()[:length])
    with pytest.raises(CheckpointError, match=r"cut\.gguf"):
        models.load_model(tmp_path / "cut.gguf")


def test_damaged_files_are_read_or_refused_by_name(llama, tmp_path):
    """Bytes of the header changed at random: never another error, never memory for what a header claims."""
    whole, draw = llama.read_bytes(), np.random.RandomState(1)
    for _ in range(60):
        damaged = bytearray(whole)
        for at in draw.randint(0, 1500, draw.randint(1, 4)):
            damaged[at] = draw.randint(256)
        (tmp_path / "damaged.gguf").write_bytes(damaged)
        said = "damaged.gguf"
        try:
            models.load_model(tmp_path / "damaged.gguf")
        except (CheckpointError, models.ConfigurationError) as error:
            said = str(error)
        assert "damaged.gguf" in said
    models.save(models.load_model(llama), tmp_path / "damaged.gguf", "Q8_0")
    blocks = (tmp_path / "damaged.gguf").read_bytes()
    (tmp_path / "damaged.gguf").write_bytes(blocks.replace(b"blk.0.attn_norm.weight", b"blk.0.attn_norm.weighs"))
    with pytest.raises(CheckpointError, match=r"attn_norm\.weighs|input_layernorm"):
        models.load_model(tmp_path / "damaged.gguf", integers=True)


def test_what_a_file_cannot_hold_is_refused(tmp_path):
    model = model_of("mixtral", tmp_path)[1]
    with pytest.raises(ValueError, match="knows llama"):
        models.save(model, tmp_path / "model.gguf")
    model = model_of("llama-yarn", tmp_path)[1]
    with pytest.raises(ValueError, match="plain rotary"):
        models.save(model, tmp_path / "model.gguf")
    for kind, value in zip(("Q8_0", "Q4_0", "Q4_K", "Q6_K"), (np.inf, -np.inf, np.nan, np.inf), strict=True):
        model = model_of("llama", tmp_path)[1]
        parameter = dict(model.named_parameters())["model.layers.1.mlp.up_proj.weight"]
        values = np.full(parameter.shape, 0.5, np.float32)
        values[0, 7] = value
        parameter.set_value(values)
        with pytest.raises(ValueError, match=rf"layers.1.mlp.up_proj.weight has numbers .* not finite; ({kind}|Q8_0) "):
            models.save(model, tmp_path / "model.gguf", kind)
    with pytest.raises(ValueError, match="format is one of"):
        models.save(model_of("llama", tmp_path)[1], tmp_path / "model.gguf", "Q2_K")
    assert not list(tmp_path.glob("*.partial"))


def test_tokenizers_that_are_not_implemented_say_so(llama, tmp_path):
    path = tmp_path / "text.gguf"
    rewrite(llama, path, lambda writer: writer.add_tokenizer_model("bert"))
    with pytest.raises(NotImplementedError, match="'bert'"):
        models.load(path)
    assert models.load_model(path) is not None


@pytest.mark.parametrize("kind", ["Q4_K", "Q6_K"])
def test_a_writer_that_is_killed_leaves_the_old_file(kind, tmp_path):
    """Whole, when a process ends while blocks are packed; the next writer removes what it left."""
    _, model = model_of("llama", tmp_path)
    path = tmp_path / "model.gguf"
    models.save(model, path, kind)
    before = path.read_bytes()
    code = (
        "import os, sys\nimport gguf\nfrom argosy import models\n"
        "seen = gguf.GGUFWriter.write_kv_data_to_file\n"
        "def end(self, *a, **k):\n    seen(self, *a, **k)\n    os._exit(9)\n"
        "gguf.GGUFWriter.write_kv_data_to_file = end\n"
        "models.save(models.load_model(sys.argv[1]), sys.argv[2], sys.argv[3])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path, path, kind], check=False)
    assert done.returncode == 9
    assert path.read_bytes() == before
    assert len([p for p in tmp_path.iterdir() if "argosy-tmp" in p.name]) == 1
    models.save(model, path, kind)
    assert path.read_bytes() == before
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".gguf", ".json", ".safetensors"]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    """A failed one leaves nothing, and the old file."""
    _, model = model_of("llama", tmp_path)
    abandoned = tmp_path / f".model.gguf.{'0' * 16}.argosy-tmp"
    abandoned.write_bytes(b"GGUF")
    models.save(model, tmp_path / "model.gguf")
    assert not abandoned.exists()
    before = (tmp_path / "model.gguf").read_bytes()
    parameter = model.parameters()[0]
    parameter.payload = None
    with pytest.raises(AttributeError):
        models.save(model, tmp_path / "model.gguf")
    assert (tmp_path / "model.gguf").read_bytes() == before
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".gguf", ".json", ".safetensors"]


PIECES = [
    "<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), *"\u2581theqckbrownfxui.",
    "\u2581t", "he", "\u2581the", "qu", "th", "ick", "ck", "\u2581qu", "\u2581quick", "\u2581\u2581", "er", "ro",
]  # fmt: skip


def merged_by_scores(text):
    """The ids of a text, by the definition: neighbours whose piece has the highest score are merged, the first of
    them where several have it."""
    parts = list("\u2581" + text.replace(" ", "\u2581")) if text else []
    while True:
        pairs = enumerate(pairwise(parts))
        found = [(SCORES[PIECES.index(a + b)], -i) for i, (a, b) in pairs if a + b in PIECES]
        if not found:
            break
        at = -max(found)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    ids = [[PIECES.index(p)] if p in PIECES else [3 + byte for byte in p.encode()] for p in parts]
    return [number for each in ids for number in each]


SCORES = [0.0] * 259 + [-1000.0] * (len(PIECES) - 271)
SCORES += [-3.0, -9.0, -4.0, -6.0, -1.0, -2.0, -8.0, -7.0, -5.0, -12.0, -11.0, -10.0]


def pieces_of(model, folder):
    """The tokenizer of a file that the library wrote."""

    def add(writer):
        writer.add_tokenizer_model("llama")
        writer.add_token_list(PIECES)
        writer.add_token_scores(SCORES)
        writer.add_token_types([2, 3, 3, *[6] * 256, *[1] * (len(PIECES) - 259)])
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)

    models.save(model, folder / "model.gguf")
    rewrite(folder / "model.gguf", folder / "pieces.gguf", add)
    return models.load(folder / "pieces.gguf").tokenizer


def test_pieces_are_merged_by_their_scores(tmp_path):
    """As SentencePiece does, whose order is in no list of merges; bytes of letters that are no piece."""
    tokenizer = pieces_of(model_of("llama", tmp_path)[1], tmp_path)
    for text in ["the quick brown fox.", "  the  three quicker", "thethe", "na\u00efve \u6771\u4eac", "q"]:
        assert tokenizer.encode(text, special=False) == merged_by_scores(text)
        assert tokenizer.encode(text) == [1, *merged_by_scores(text)]
        assert tokenizer.decode(tokenizer.encode(text)) == text
