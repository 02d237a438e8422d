"""Folders of integer weights: GPTQ, AWQ and compressed-tensors, packed here as their specifications say, and by
the tools themselves, give what the dequantised weights give; nothing is a float in between."""

import json
import re
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import argosy as paddle
from argosy import models
from argosy.jit.export import export_program
from argosy.models.configuration import ConfigurationError
from argosy.static import InputSpec
from argosy_infer import Generator, Predictor, load_program, make_incremental
from argosy_infer.caches import caches_of
from argosy_infer.compress import awq, gptq, mixed_precision, round_to_float8, round_to_nearest, smooth_quant
from argosy_tensorcore.safetensors import CheckpointError, SafetensorsFile, load_file, save_file

WIDTH, HIDDEN, GROUP = 128, 256, 64
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": WIDTH,
    "intermediate_size": HIDDEN, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
}  # fmt: skip
LINEAR = {
    "self_attn.q_proj": (WIDTH, WIDTH), "self_attn.k_proj": (WIDTH, 64), "self_attn.v_proj": (WIDTH, 64),
    "self_attn.o_proj": (WIDTH, WIDTH), "mlp.gate_proj": (WIDTH, HIDDEN), "mlp.up_proj": (WIDTH, HIDDEN),
    "mlp.down_proj": (HIDDEN, WIDTH),
}  # fmt: skip
FORMS = ["gptq", "gptq ordered", "gptq asymmetric", "gptq_v2 asymmetric ordered", "gptq eight bits", "gptq one group",
         "awq", "compressed", "compressed asymmetric ordered", "fp8", "int-quantized", "float-quantized"]  # fmt: skip


def packed(numbers, bits, axis):
    """Unsigned numbers in int32, the first in the lowest bits, written a number at a time."""
    moved = np.moveaxis(numbers.astype(np.uint64), axis, -1)
    each = 32 // bits
    words = np.zeros((*moved.shape[:-1], moved.shape[-1] // each), np.uint64)
    for place in range(each):
        words |= moved[..., place::each] << np.uint64(bits * place)
    return np.ascontiguousarray(np.moveaxis(words.astype(np.uint32), -1, axis)).view(np.int32)


def layer(rng, size, out, form, seed=0):
    """Tensors of a layer by suffix, and the weight [in, out] that they stand for; inputs are ordered by ``seed``."""
    if form == "fp8":
        numbers = rng.standard_normal((out, size)).astype(ml_dtypes.float8_e4m3fn)
        scales = (rng.uniform(0.5, 1.5, (-(-out // 128), size // 128)) / size**0.5).astype(np.float32)
        spread = np.repeat(np.repeat(scales, 128, 0)[:out], 128, 1)
        return {"weight": numbers, "weight_scale_inv": scales}, (numbers.astype(np.float32) * spread).T
    if form.endswith("-quantized"):
        numbers = rng.integers(-127, 128, (out, size)).astype(np.int8)
        if form.startswith("float"):
            numbers = rng.standard_normal((out, size)).astype(ml_dtypes.float8_e4m3fn)
        scales = rng.uniform(0.5, 1.5, (out, 1)) / size**0.5 / np.abs(numbers.astype(np.float32)).max()
        tensors = {"weight": numbers, "weight_scale": scales.astype(np.float32)}
        return tensors, (numbers.astype(np.float32) * tensors["weight_scale"]).T
    bits = 8 if "eight" in form else 4
    group = size if "one group" in form else GROUP
    middle = 1 << (bits - 1)
    numbers = rng.integers(0, 2 * middle, (size, out))
    asymmetric = "asymmetric" in form or form == "awq"
    zeros = (
        rng.integers(1, 2 * middle - 1, (size // group, out)) if asymmetric else np.full((size // group, out), middle)
    )
    scales = (rng.uniform(0.5, 1.5, (size // group, out)) / (middle * size**0.5)).astype(np.float16)
    groups = np.arange(size) // group
    if "ordered" in form:
        groups = np.random.default_rng(seed).permutation(groups)
    weight = (numbers - zeros[groups]) * scales[groups].astype(np.float32)
    if form.startswith("gptq"):
        stored = zeros - (0 if "v2" in form else 1)
        tensors = {"qweight": packed(numbers, bits, 0), "qzeros": packed(stored, bits, 1), "scales": scales,
                   "g_idx": groups.astype(np.int32)}  # fmt: skip
    elif form == "awq":
        order = [0, 2, 4, 6, 1, 3, 5, 7]
        spread = [x.reshape(len(x), -1, 8)[..., order].reshape(len(x), -1) for x in (numbers, zeros)]
        tensors = {"qweight": packed(spread[0], 4, 1), "qzeros": packed(spread[1], 4, 1), "scales": scales}
    else:
        tensors = {"weight_packed": packed(numbers.T, bits, 1), "weight_scale": np.ascontiguousarray(scales.T),
                   "weight_shape": np.array([out, size])}  # fmt: skip
        if asymmetric:
            tensors["weight_zero_point"] = packed(zeros.T, bits, 0)
        if "ordered" in form:
            tensors["weight_g_idx"] = groups.astype(np.int32)
    return tensors, weight.astype(np.float32)


def settings(form):
    bits, group = (8 if "eight" in form else 4), (-1 if "one group" in form else GROUP)
    if form.startswith("gptq"):
        return {"quant_method": "gptq", "bits": bits, "group_size": group, "checkpoint_format": form.split()[0]}
    if form == "fp8":
        return {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}
    if form == "awq":
        return {"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm", "zero_point": True}
    if form.endswith("-quantized"):
        inputs = {"num_bits": 8, "type": "float", "dynamic": True, "strategy": "token"}
        group = {"targets": ["Linear"], "weights": {"num_bits": 8, "strategy": "channel"}}
        group |= {"input_activations": inputs} if form.startswith("float") else {}
        return {"quant_method": "compressed-tensors", "format": form, "config_groups": {"group_0": group}}
    weights = {"num_bits": 4, "type": "int", "group_size": GROUP, "symmetric": "asymmetric" not in form}
    return {"quant_method": "compressed-tensors", "format": "pack-quantized",
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}  # fmt: skip


def folders(tmp_path, form):
    """The folder of integers, and that of the floats that they stand for."""
    rng = np.random.default_rng(len(form))
    floats = {"model.embed_tokens.weight": rng.standard_normal((64, WIDTH)), "model.norm.weight": np.ones(WIDTH),
              "lm_head.weight": rng.standard_normal((64, WIDTH)) * 0.1}  # fmt: skip
    for i in range(2):
        for name in ("input_layernorm", "post_attention_layernorm"):
            floats[f"model.layers.{i}.{name}.weight"] = np.ones(WIDTH)
    floats = {name: array.astype(np.float32) for name, array in floats.items()}
    integers = dict(floats)
    for i in range(2):
        for name, shape in LINEAR.items():
            tensors, weight = layer(rng, *shape, form)
            base = f"model.layers.{i}.{name}"
            floats[f"{base}.weight"] = np.ascontiguousarray(weight.T)
            integers.update({f"{base}.{suffix}": array for suffix, array in tensors.items()})
    for folder, tensors, extra in (
        ("floats", floats, {}),
        ("integers", integers, {"quantization_config": settings(form)}),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.json").write_text(json.dumps(CONFIG | extra))
        save_file(tensors, tmp_path / folder / "model.safetensors")
    return tmp_path / "integers", tmp_path / "floats"


def check_outputs(integers, floats):
    """Logits are those of the weights that integers stand for; returns the ids."""
    ids = np.random.default_rng(0).integers(0, 64, (2, 20))
    got, want = (model(paddle.to_tensor(ids)).numpy() for model in (integers, floats))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * np.abs(want).max())
    assert integers.model.layers[0].mlp.down_proj.numbers.dtype in (paddle.int8, paddle.float8_e4m3fn)
    return ids


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("form", FORMS)
def test_integers_give_what_the_weights_that_they_stand_for_give(form, tmp_path):
    """Logits, and greedy tokens of the export over its cache; no float weight is in the model or in its export. The
    folder that is written back holds the same bytes."""
    paths = folders(tmp_path, form)
    integers, floats = map(models.load_model, paths)
    if form == "int-quantized":  # bytes by which floats are multiplied are written as packed ones
        check_outputs(integers, floats)
        return
    models.save(integers, tmp_path / "again")
    before, after = (load_file(folder / "model.safetensors") for folder in (paths[0], tmp_path / "again"))
    assert before.keys() == after.keys()
    for name, array in before.items():
        assert np.array(array).tobytes() == np.array(after[name]).tobytes(), name
    ids = check_outputs(integers, floats)
    paddle.jit.save(integers, tmp_path / "export", input_spec=[InputSpec([None, None], "int64", "ids")])
    states = load_program(tmp_path / "export").states
    large = [a for a in states.values() if a.ndim == 2 and a.size >= WIDTH * 64]
    assert sum(a.dtype.itemsize > 1 for a in large) == 2  # embeddings and head
    spoken = list(ids[0, :6])
    for _ in range(8):
        spoken.append(int(floats(paddle.to_tensor([spoken])).numpy()[0, -1].argmax()))
    assert Generator(tmp_path / "export").generate(list(ids[0, :6]), 8) == spoken[6:]


@pytest.mark.parametrize("form", ["int-quantized", "compressed", "compressed asymmetric"])
@pytest.mark.parametrize("tied", [False, True])
def test_tables_of_words_stay_integers(form, tied, tmp_path):
    """Where groups of compressed-tensors target embeddings: the rows, and what a tied head multiplies with."""
    paths, made = folders(tmp_path, form), layer(np.random.default_rng(5), WIDTH, 64, form)

    def put(tensors, weights):
        del tensors["model.embed_tokens.weight"]
        if tied:
            del tensors["lm_head.weight"]
        tensors.update({f"model.embed_tokens.{suffix}": array for suffix, array in weights.items()})

    rewritten(paths[0], lambda c: c["config_groups"]["group_0"].update(targets=["Linear", "Embedding"]),
              lambda tensors: put(tensors, made[0]))  # fmt: skip
    tensors = {name: np.array(array) for name, array in load_file(paths[1] / "model.safetensors").items()}
    put(tensors, {"weight": np.ascontiguousarray(made[1].T)})
    save_file(tensors, paths[1] / "model.safetensors")
    for path in paths:
        config = json.loads((path / "config.json").read_text()) | {"tie_word_embeddings": tied}
        (path / "config.json").write_text(json.dumps(config))
    integers, floats = map(models.load_model, paths)
    check_outputs(integers, floats)
    assert {name for name, p in integers.named_parameters() if p.ndim == 2} == (set() if tied else {"lm_head.weight"})
    models.save(integers, tmp_path / "again")  # as floats
    check_outputs(models.load_model(tmp_path / "again"), floats)


MIXTURES = {
    "mixtral": ("awq", {"num_local_experts": 3, "intermediate_size": WIDTH, "num_hidden_layers": 1}),
    "qwen3_moe": ("gptq ordered", {
        "num_hidden_layers": 1, "num_experts": 3, "moe_intermediate_size": WIDTH, "head_dim": 32,
    }),
    "phi3": ("gptq", {"num_hidden_layers": 1, "pad_token_id": 0}),
    "deepseek_v3": ("fp8", {
        "num_hidden_layers": 2, "first_k_dense_replace": 1, "moe_intermediate_size": WIDTH, "n_routed_experts": 4,
        "num_experts_per_tok": 2, "n_shared_experts": 1, "kv_lora_rank": 128, "q_lora_rank": 128, "n_group": 2,
        "topk_group": 1, "qk_nope_head_dim": 32, "qk_rope_head_dim": 32, "v_head_dim": 32, "num_key_value_heads": 4,
    }),
}  # fmt: skip


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("family", MIXTURES)
def test_experts_and_matrices_of_several_layers_stay_numbers(family, tmp_path):
    """Logits, and tokens of the export, are those of what the numbers stand for; a folder that is written again holds
    the same bytes, but for matrices of several layers."""
    form, changes = MIXTURES[family]
    config = CONFIG | {"model_type": family, "architectures": ["ForCausalLM"], "num_experts_per_tok": 2} | changes
    models.save(models.build(models.ConfigFile(config)), tmp_path / "plain")
    rng, floats = np.random.default_rng(1), dict(load_file(tmp_path / "plain" / "model.safetensors"))
    integers = dict(floats)
    for name in [n for n in floats if n.endswith("proj.weight") or re.search(r"[ab]_proj_with_mqa|[.]w[123][.]", n)]:
        out, size = floats[name].shape
        tensors, weight = layer(rng, size, out, form, len(name.partition("experts.")[2].replace("gate", "up")))
        floats[name] = np.ascontiguousarray(weight.T)
        del integers[name]
        integers |= {f"{name.removesuffix('.weight')}.{suffix}": array for suffix, array in tensors.items()}
    for folder, tensors, extra in (("floats", floats, {}), ("integers", integers, settings(form))):
        (tmp_path / folder).mkdir()
        own = {"quantization_config": extra} if extra else {}
        (tmp_path / folder / "config.json").write_text(json.dumps(config | own))
        save_file(tensors, tmp_path / folder / "model.safetensors")
    made, exact = (models.load_model(tmp_path / folder) for folder in ("integers", "floats"))
    ids = np.random.default_rng(0).integers(0, 64, (2, 9))
    got, want = (model(paddle.to_tensor(ids)).numpy() for model in (made, exact))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * np.abs(want).max())
    whole = export_program(made, [InputSpec([None, None], "int64", "ids")])
    if family == "deepseek_v3":
        assert {c.kind for c in caches_of(make_incremental(whole.program))} == {"latent"}
    large = [name for name, a in whole.states.items() if a.size >= WIDTH * WIDTH and a.dtype.itemsize > 1]
    assert not [name for name in large if "mlp" in name or "attn" in name]
    spoken = [*ids[0], *Generator(whole, capacity=64).generate(list(ids[0]), 6)]
    best = exact(paddle.to_tensor([spoken])).numpy()[0].argmax(-1)
    assert list(best[8:-1]) == spoken[9:]
    if family == "phi3":
        with pytest.raises(NotImplementedError, match="is one of several layers"):
            models.save(made, tmp_path / "again")
        return
    models.save(made, tmp_path / "again")
    again = load_file(tmp_path / "again" / "model.safetensors")
    assert again.keys() == integers.keys()
    for name, array in integers.items():
        assert np.array(array).tobytes() == np.array(again[name]).tobytes(), name


def mixed_four(rng, *shape):
    """Bytes of two numbers in e2m1, exponents, and the floats that they stand for, written a number at a time."""
    blocks = rng.integers(0, 256, (*shape[:-1], shape[-1] // 32, 16)).astype(np.uint8)
    scales = rng.integers(120, 124, blocks.shape[:-1]).astype(np.uint8)
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
    floats = np.empty((*blocks.shape[:-1], 32), np.float32)
    floats[..., 0::2], floats[..., 1::2] = values[blocks % 16], values[blocks // 16]
    return blocks, scales, (floats * 2.0 ** (scales[..., None].astype(np.float32) - 127)).reshape(shape)


def test_experts_in_mxfp4_are_exact_integers(tmp_path):
    """As gpt-oss is published: logits, and tokens of the export, are those of the floats that blocks stand for; what is
    wrong is named."""
    config = CONFIG | {
        "model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "num_hidden_layers": 1, "hidden_size": 64,
        "intermediate_size": 96, "num_local_experts": 3, "num_experts_per_tok": 2, "head_dim": 16,
    }  # fmt: skip
    models.save(models.build(models.ConfigFile(config)), tmp_path / "plain")
    rng, floats = np.random.default_rng(1), {}
    for name, array in load_file(tmp_path / "plain" / "model.safetensors").items():
        if ".experts." not in name or "bias" in name:
            floats[name] = np.array(array) + rng.standard_normal(array.shape).astype(np.float32) * ("bias" in name)
    integers, base = dict(floats), "model.layers.0.mlp.experts"
    for name, shape in (("gate_up_proj", (3, 192, 64)), ("down_proj", (3, 64, 96))):
        blocks, scales, weight = mixed_four(rng, *shape)
        floats[f"{base}.{name}"] = np.ascontiguousarray(weight.swapaxes(1, 2))
        integers |= {f"{base}.{name}_blocks": blocks, f"{base}.{name}_scales": scales}

    def load(folder, tensors, **given):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "config.json").write_text(json.dumps(config | given))
        save_file(tensors, tmp_path / folder / "model.safetensors")
        return models.load_model(tmp_path / folder)

    form = {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}}
    made, exact = load("integers", integers, **form), load("floats", floats)
    ids = np.random.default_rng(0).integers(0, 64, (2, 9))
    got, want = (model(paddle.to_tensor(ids)).numpy() for model in (made, exact))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())
    whole = export_program(made, [InputSpec([None, None], "int64", "ids")])
    experts = {n.rpartition(".")[2]: a for n, a in whole.states.items() if n.endswith(("_numbers", "_scales"))}
    assert {n: (a.dtype.name, a.nbytes) for n, a in experts.items()} == {  # four bits a number, and a scale for 32
        "gate_up_proj_numbers": ("int8", 3 * 192 * 64 // 2), "gate_up_proj_scales": ("bfloat16", 3 * 192 * 64 // 16),
        "down_proj_numbers": ("int8", 3 * 64 * 96 // 2), "down_proj_scales": ("bfloat16", 3 * 64 * 96 // 16),
    }  # fmt: skip
    assert Generator(whole, capacity=64).generate(list(ids[0]), 1) == [int(want[0, -1].argmax())]
    models.save(made, tmp_path / "again")
    again = {name: np.array(array) for name, array in load_file(tmp_path / "again" / "model.safetensors").items()}
    for name, array in integers.items():
        if name.endswith("_blocks"):  # zeros are written without a sign
            low, high = (np.where(x == 8, 0, x) for x in (array & 15, array >> 4))
            array = low | high << 4
        np.testing.assert_array_equal(again[name], array)
    np.testing.assert_array_equal(models.load_model(tmp_path / "again")(paddle.to_tensor(ids)).numpy(), got)
    (tmp_path / "other").mkdir()
    other = models.load_model(folders(tmp_path / "other", "awq")[0])
    with pytest.raises(NotImplementedError, match=r"q_proj has no mxfp4 layout: its numbers are no experts' in e2m1"):
        models.save(other, tmp_path / "wrong", "mxfp4")
    scales, blocks = integers[f"{base}.down_proj_scales"], integers[f"{base}.gate_up_proj_blocks"]
    for name, array, message in (
        ("down_proj_scales", None, "down_proj_scales is missing"),
        ("gate_up_proj_blocks", blocks[:, 1:], r"shape \[3, 191, 2, 16\]; expected \[3, 192, 2, 16\]"),
        ("gate_up_proj_blocks", blocks.astype(np.int8), "gate_up_proj_blocks is int8; expected uint8"),
        ("down_proj_scales", scales * 0 + 255, "down_proj_scales has 255, which is no number"),
    ):
        changed = {**integers, f"{base}.{name}": array}
        with pytest.raises(CheckpointError, match=message):
            load("wrong", {n: a for n, a in changed.items() if a is not None}, **form)


def test_compressed_programs_are_written_as_folders(tmp_path):
    """What GPTQ made of a model's program is the model's own, and, in the layouts of other tools, that of whoever loads
    the folder. What a layout cannot hold is named."""
    model = models.load_model(folders(tmp_path, "gptq")[1])
    ids = np.random.default_rng(0).integers(0, 64, (4, 40))
    whole = export_program(model, [InputSpec([None, None], "int64", "ids")])
    small, _ = gptq(whole, [[ids]], 4, GROUP, act_order=True)
    (want,) = Predictor(small).run(ids)
    models.use_integers(model, small)
    room = {"rtol": 0, "atol": 2e-6 * np.abs(want).max()}
    np.testing.assert_allclose(model(paddle.to_tensor(ids)).numpy(), want, **room)
    for layout in ("gptq", "gptq_v2", "compressed-tensors"):
        models.save(model, tmp_path / layout, layout)
        np.testing.assert_allclose(models.load_model(tmp_path / layout)(paddle.to_tensor(ids)).numpy(), want, **room)
    with pytest.raises(NotImplementedError, match=r"q_proj has no awq layout: it takes .* inputs in their order"):
        models.save(model, tmp_path / "awq", "awq")
    with pytest.raises(ValueError, match="no weight of a linear layer"):
        models.use_integers(model, whole)
    check_layers_of_several_precisions(tmp_path, whole, ids)


def uneven(model):
    """The model with norms whose channels differ by far, which factors of inputs are for."""
    rng = np.random.default_rng(3)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.set_value(np.exp(rng.standard_normal(parameter.shape)).astype(np.float32))
    return model


COMPRESSED = {
    "awq": ("awq", lambda loaded, data: awq(loaded, data, 4, GROUP)),
    "smooth": ("compressed-tensors", smooth_quant),
    "smooth static": ("compressed-tensors", lambda loaded, data: smooth_quant(loaded, data, static=True)),
    "float8": ("compressed-tensors", lambda loaded, data: round_to_float8(loaded)),
}


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("name", COMPRESSED)
def test_factors_of_inputs_are_folded_into_what_makes_these(name, tmp_path):
    """Norms, values of attention that several heads share, and one side of a gated perceptron take them, so that
    nothing is multiplied when the program runs, and a folder holds the weights: whoever loads it computes the same."""
    layout, compressed = COMPRESSED[name]
    model = uneven(models.load_model(folders(tmp_path, "gptq eight bits")[1]))
    ids = np.random.default_rng(0).integers(0, 64, (4, 40))
    whole = export_program(model, [InputSpec([None, None], "int64", "ids")])
    whole = type(whole)(whole.program, {n: np.array(a) for n, a in whole.states.items()})
    small, _ = compressed(whole, [[ids]])
    assert not [state for state in small.states if state.endswith("factors")]
    norm = "model.layers.1.input_layernorm.weight"
    assert np.array_equal(small.states[norm], whole.states[norm]) == (name == "float8")
    (exact,), (want,) = Predictor(whole).run(ids), Predictor(small).run(ids)
    lost = np.linalg.norm(want - exact) / np.linalg.norm(exact)
    if name == "awq":
        (nearest,) = Predictor(round_to_nearest(whole, 4, GROUP)[0]).run(ids)
        assert lost < 0.9 * np.linalg.norm(nearest - exact) / np.linalg.norm(exact)
    else:
        assert lost < 0.15
    models.use_integers(model, small)
    models.save(model, tmp_path / "folder", layout)
    room = 0.01 if name.startswith("smooth") else 2e-6  # inputs that lie between two bytes may become either
    again = models.load_model(tmp_path / "folder")
    for each in (model, again):
        assert np.linalg.norm(each(paddle.to_tensor(ids)).numpy() - want) < room * np.linalg.norm(want)
    models.save(again, tmp_path / "again")
    before, after = (load_file(tmp_path / folder / "model.safetensors") for folder in ("folder", "again"))
    assert {n: np.array(a).tobytes() for n, a in before.items()} == {n: np.array(a).tobytes() for n, a in after.items()}
    with pytest.raises(NotImplementedError, match=r"q_proj has no (gptq|fp8) layout: it"):
        models.save(again, tmp_path / "third", "fp8" if name == "awq" else "gptq")


def test_inputs_that_nothing_takes_factors_of_stay_or_are_multiplied(tmp_path):
    """GPT-2's values lie beside queries and keys, and a GELU is between the layers of its perceptron."""
    paddle.seed(0)  # factors are kept where they help, which for few weights is up to their values
    model = models.build(
        models.ConfigFile({
            "model_type": "gpt2", "vocab_size": 64, "n_embd": 64, "n_head": 4, "n_layer": 1, "n_positions": 64
        })
    )  # fmt: skip
    model.eval()
    ids = np.random.default_rng(0).integers(0, 64, (4, 40))
    whole = export_program(uneven(model), [InputSpec([None, None], "int64", "ids")])
    for compressed in (
        lambda **given: awq(whole, [[ids]], 4, 32, **given),
        lambda **g: smooth_quant(whole, [[ids]], **g),
    ):
        multiplied = compressed()[0]
        own = {name for name in multiplied.states if name.endswith("factors")}
        assert own == {f"blocks.0.{part}.weight.factors" for part in ("attention.outward", "narrow")}
        with pytest.raises(NotImplementedError, match="outward are multiplied first, which no layout holds"):
            models.use_integers(model, multiplied)
        alone = compressed(multiply_inputs=False)[0]
        assert not [name for name in alone.states if name.endswith("factors")]
        (exact,), (want,) = Predictor(whole).run(ids), Predictor(alone).run(ids)
        assert np.linalg.norm(want - exact) < 0.3 * np.linalg.norm(exact)


@pytest.mark.exhaustive(every=2)
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("static", [False, True])
def test_inputs_in_bytes_are_integer_arithmetic(static, symmetric, tmp_path):
    """A folder of int8 weights whose inputs are bytes: a layer's sums are those of integers, the folder that is written
    again has the same bytes, and the export generates what the whole program gives."""
    paths = folders(tmp_path, "int-quantized")
    inputs = {"num_bits": 8, "type": "int", "symmetric": symmetric, "dynamic": not static}
    inputs["strategy"] = "tensor" if static else "token"
    scale = np.array([0.03], np.float32)

    def add_scales(tensors):
        for name in [name for name in tensors if name.endswith("weight_scale")] if static else []:
            tensors[name.replace("weight_scale", "input_scale")] = scale
            if not symmetric:
                tensors[name.replace("weight_scale", "input_zero_point")] = np.array([-20], np.int8)

    rewritten(paths[0], lambda c: c["config_groups"]["group_0"].update(input_activations=inputs), add_scales)
    model, floats = map(models.load_model, paths)
    layer, x = model.model.layers[0].mlp.up_proj, np.random.default_rng(2).standard_normal((2, 5, WIDTH))
    x = x.astype(np.float32)
    x += np.float32(0 if symmetric else 0.7)
    low, high = np.minimum(x.min(-1, keepdims=True), 0), np.maximum(x.max(-1, keepdims=True), 0)
    steps, zero = scale if static else np.maximum(high, -low) / np.float32(127.5), 0
    if not symmetric:
        steps = scale if static else (high - low) / np.float32(255)
        zero = -20 if static else np.clip(np.rint(-128 - low / steps), -128, 127)
    whole = (np.clip(np.rint(x / steps + np.float32(zero)), -128, 127) - zero).astype(np.int64)
    sums = whole @ layer.numbers.numpy().T.astype(np.int64)
    want = sums.astype(np.float32) * steps * layer.scales.numpy()
    np.testing.assert_allclose(layer(paddle.to_tensor(x)).numpy(), want, rtol=2e-6, atol=1e-6)
    models.save(model, tmp_path / "again")
    before, after = (load_file(folder / "model.safetensors") for folder in (paths[0], tmp_path / "again"))
    assert {n: np.array(a).tobytes() for n, a in before.items()} == {n: np.array(a).tobytes() for n, a in after.items()}
    ids = np.random.default_rng(0).integers(0, 64, (2, 20))
    got, exact = (each(paddle.to_tensor(ids)).numpy() for each in (model, floats))
    assert 1e-4 < np.abs(got - exact).max() / np.abs(exact).max() < 0.1
    whole = export_program(model, [InputSpec([None, None], "int64", "ids")])
    (logits,) = Predictor(whole).run(ids[:1])
    assert np.linalg.norm(logits - got[:1]) < 0.01 * np.linalg.norm(logits)  # an input between two bytes becomes either
    assert Generator(whole, capacity=64).generate(list(ids[0]), 1) == [int(logits[0, -1].argmax())]


@pytest.mark.parametrize(("bits", "groups"), [(4, GROUP), (4, -1), (8, GROUP)])
def test_few_bits_beside_inputs_in_bytes_are_written_as_folders(bits, groups, tmp_path):
    """As compressed-tensors has them (W4A8): numbers in a byte each, and a scale for each group; packed ones and zeros
    are read, too."""
    model = models.load_model(folders(tmp_path, "gptq")[1])
    ids = np.random.default_rng(0).integers(0, 64, (4, 40))
    whole = export_program(model, [InputSpec([None, None], "int64", "ids")])
    small, _ = round_to_nearest(whole, bits, groups, input_bits=8)
    (want,), (floats,) = Predictor(small).run(ids), Predictor(round_to_nearest(whole, bits, groups)[0]).run(ids)
    models.use_integers(model, small)
    models.save(model, tmp_path / "bytes")

    def check(folder):
        got = models.load_model(folder)(paddle.to_tensor(ids)).numpy()
        assert np.linalg.norm(got - want) < 0.5 * np.linalg.norm(got - floats)  # a few inputs become the next byte

    check(tmp_path / "bytes")
    config = json.loads((tmp_path / "bytes" / "config.json").read_text())["quantization_config"]
    (group,) = config["config_groups"].values()
    assert (config["format"], group["weights"]["num_bits"]) == ("int-quantized", bits)
    assert group["input_activations"] == {
        "num_bits": 8, "type": "int", "symmetric": True, "dynamic": True, "strategy": "token"
    }  # fmt: skip
    tensors = load_file(tmp_path / "bytes" / "model.safetensors")
    name = "model.layers.0.mlp.up_proj.weight"
    assert (tensors[name].dtype, tensors[name].shape) == ("int8", (HIDDEN, WIDTH))

    def pack(tensors):
        for key in [key for key in tensors if tensors[key].dtype == np.int8]:
            numbers = tensors.pop(key)
            unsigned = (numbers.astype(np.int16) + (1 << bits - 1)).astype(np.uint32)
            shifts = np.arange(0, 32, bits, dtype=np.uint32)
            words = (unsigned.reshape(len(numbers), -1, len(shifts)) << shifts).sum(-1, dtype=np.uint32)
            tensors |= {f"{key}_packed": words.view(np.int32), f"{key}_shape": np.array(numbers.shape)}

    def shift(tensors):
        for key in [key for key in tensors if key.endswith("weight_scale")]:
            tensors[key.replace("scale", "zero_point")] = np.full(tensors[key].shape, -1, np.int8)
            weight = key.removesuffix("_scale")
            tensors[weight] = tensors[weight] - np.int8(1)

    shutil.copytree(tmp_path / "bytes", tmp_path / "packed")
    rewritten(tmp_path / "packed", lambda c: c.update(format="pack-quantized"), pack)
    check(tmp_path / "packed")
    shutil.copytree(tmp_path / "bytes", tmp_path / "zeros")
    rewritten(tmp_path / "zeros", lambda c: c["config_groups"]["group_0"]["weights"].update(symmetric=False), shift)
    check(tmp_path / "zeros")
    again = models.load_model(tmp_path / "zeros")
    models.save(again, tmp_path / "again")
    before, after = (load_file(tmp_path / folder / "model.safetensors") for folder in ("zeros", "again"))
    assert {n: np.array(a).tobytes() for n, a in before.items()} == {n: np.array(a).tobytes() for n, a in after.items()}
    rewritten(tmp_path / "bytes", lambda c: None, lambda t: t.update({name: t[name] + np.int8(100)}))
    if bits == 4:
        with pytest.raises(CheckpointError, match=r"up_proj.weight has numbers that are none of four bits"):
            models.load_model(tmp_path / "bytes")


def test_layers_in_several_formats_are_one_folder(tmp_path):
    """As compressed-tensors says it: "mixed-precision", and a format for each group of layers."""
    model = models.load_model(folders(tmp_path, "gptq")[1])
    ids = np.random.default_rng(0).integers(0, 64, (4, 40))
    whole = export_program(model, [InputSpec([None, None], "int64", "ids")])
    some, _ = round_to_nearest(whole, 4, GROUP, skip=["*mlp*", "*v_proj*", "lm_head*"])
    more, _ = round_to_nearest(some, 8, skip=["*v_proj*", "lm_head*"], input_bits=8)
    small, _ = round_to_float8(more, skip=["lm_head*"])
    (want,) = Predictor(small).run(ids)
    models.use_integers(model, small)
    models.save(model, tmp_path / "mixed")
    config = json.loads((tmp_path / "mixed" / "config.json").read_text())["quantization_config"]
    assert config["format"] == "mixed-precision"
    formats = sorted(group["format"] for group in config["config_groups"].values())
    assert formats == ["float-quantized", "int-quantized", "pack-quantized"]
    got = models.load_model(tmp_path / "mixed")(paddle.to_tensor(ids)).numpy()
    assert np.linalg.norm(got - want) < 0.005 * np.linalg.norm(want)  # an input may become the next byte
    rewritten(tmp_path / "mixed", lambda c: c["config_groups"]["group_0"].update(format="marlin-24"))
    with pytest.raises(NotImplementedError, match=r"group_0: format 'marlin-24' is not implemented; there are pack"):
        models.load_model(tmp_path / "mixed")


def check_layers_of_several_precisions(tmp_path, whole, ids):
    """Bits by layer in folders of compressed-tensors, whose groups name their layers, or give patterns of names, and of
    GPTQ, whose ``dynamic`` does; AWQ has four bits alone."""
    model, small = models.load_model(tmp_path / "floats"), mixed_precision(whole, [[ids]], 6.0, GROUP)[0]
    models.use_integers(model, small)
    models.save(model, tmp_path / "mixed", "compressed-tensors")
    models.save(model, tmp_path / "dynamic", "gptq")
    (want,), given = Predictor(small).run(ids), paddle.to_tensor(ids)
    room = {"rtol": 0, "atol": 2e-6 * np.abs(want).max()}
    config = json.loads((tmp_path / "dynamic" / "config.json").read_text())
    own = config["quantization_config"]["dynamic"]
    assert {form["bits"] for form in own.values()} == {12 - config["quantization_config"]["bits"]}
    config["quantization_config"]["dynamic"] = {"-:lm_head": {}, **own}  # as GPTQModel names what stays in floats
    (tmp_path / "dynamic" / "config.json").write_text(json.dumps(config))
    for folder in ("mixed", "dynamic"):
        np.testing.assert_allclose(models.load_model(tmp_path / folder)(given).numpy(), want, **room)
    config["quantization_config"]["dynamic"] = {name: {"bits": 3} for name in own}
    (tmp_path / "dynamic" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigurationError, match="'bits' should be 4 or 8, got 3"):
        models.load_model(tmp_path / "dynamic")
    config = json.loads((tmp_path / "mixed" / "config.json").read_text())
    groups = config["quantization_config"]["config_groups"]
    assert {group["weights"]["num_bits"] for group in groups.values()} == {4, 8}
    with pytest.raises(NotImplementedError, match="has no awq layout: it takes four bits"):
        models.save(model, tmp_path / "one", "awq")
    first, second = groups.values()
    second["targets"] = ["Linear"]
    for targets, error, message in (
        (["re:" + name.replace(".", "[.]") for name in first["targets"]], None, ""),
        (["re:(a+)+b"], NotImplementedError, "repeated groups"),
        (["re:("], CheckpointError, "is no pattern"),
    ):
        first["targets"] = targets
        (tmp_path / "mixed" / "config.json").write_text(json.dumps(config))
        if error is None:
            np.testing.assert_allclose(models.load_model(tmp_path / "mixed")(given).numpy(), want, **room)
            continue
        with pytest.raises(error, match=message):
            models.load_model(tmp_path / "mixed")


RECORDED = SafetensorsFile(Path(__file__).parent / "quantized.safetensors")


@pytest.mark.parametrize("form", sorted({name.partition("/")[0] for name in RECORDED}))
def test_layers_that_other_tools_packed_multiply_as_theirs(form, tmp_path):
    """What AutoGPTQ, AutoAWQ and compressed-tensors write (see ``record_quantized.py``)."""
    parts = {name.partition("/")[2]: np.array(RECORDED[name]) for name in RECORDED if name.startswith(f"{form}/")}
    x, y = parts.pop("x"), parts.pop("y")
    config = CONFIG | {"hidden_size": 64, "head_dim": 16, "num_attention_heads": 2, "num_key_value_heads": 2,
                       "intermediate_size": 32, "num_hidden_layers": 1}  # fmt: skip
    models.save(models.build(models.ConfigFile(config)), tmp_path / "plain")
    tensors = {name: np.array(array) for name, array in load_file(tmp_path / "plain" / "model.safetensors").items()}
    base = "model.layers.0.self_attn.q_proj"
    del tensors[f"{base}.weight"]
    (tmp_path / "integers").mkdir()
    save_file(tensors | {f"{base}.{n}": a for n, a in parts.items()}, tmp_path / "integers" / "model.safetensors")
    settings = {"quantization_config": json.loads(RECORDED.metadata[form])}
    (tmp_path / "integers" / "config.json").write_text(json.dumps(config | settings))
    model = models.load_model(tmp_path / "integers")
    layer = model.model.layers[0].self_attn.q_proj
    np.testing.assert_allclose(layer(paddle.to_tensor(x)).numpy(), y, rtol=0, atol=2e-5 * np.abs(y).max())
    models.save(model, tmp_path / "again")
    written = load_file(tmp_path / "again" / "model.safetensors")
    for name in parts.keys() - {"bias"}:  # what their code reads is what it wrote
        assert np.array(written[f"{base}.{name}"]).tobytes() == parts[name].tobytes(), name


def rewritten(folder, change_config=None, change_tensors=None):
    config, tensors = json.loads((folder / "config.json").read_text()), dict(load_file(folder / "model.safetensors"))
    tensors = {name: np.array(array) for name, array in tensors.items()}
    (change_config or (lambda _: None))(config["quantization_config"])
    (change_tensors or (lambda _: None))(tensors)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors")


def test_what_is_wrong_is_named(tmp_path):
    """Method, tensor and expectation, before any layer is used."""
    name = "model.layers.0.self_attn.q_proj"
    odd = np.zeros((2, 3), np.int32)
    cases = [
        (lambda c: c.update(quant_method="hqq"), None, ConfigurationError, "'quant_method' should be one of gptq, awq"),
        (lambda c: c.update(bits=3), None, ConfigurationError, "'bits' should be 4 or 8"),
        (None, lambda t: t.pop(f"{name}.scales"), CheckpointError, f"{name}.scales is missing"),
        (None, lambda t: t.update({f"{name}.qzeros": odd}), CheckpointError, r"expected \[2, 16\]"),
        (None, lambda t: t.update({f"{name}.g_idx": np.zeros(WIDTH, np.int32)}), CheckpointError, "64 inputs of each"),
        (None, lambda t: t.update({"model.layers.0.odd.qweight": odd}), NotImplementedError, "odd"),
        (lambda c: c.update(group_size=0), None, CheckpointError, "in groups of 0: expected groups of"),
        (None, lambda t: t.update({f"{name}.qweight": t[f"{name}.qweight"].view(np.float32)}), CheckpointError,
         "q_proj.qweight is float32; expected int32"),
    ]  # fmt: skip
    for i, (config, tensors, error, message) in enumerate(cases):
        folder = tmp_path / str(i)
        folder.mkdir()
        integers, _ = folders(folder, "gptq")
        rewritten(integers, config, tensors)
        with pytest.raises(error, match=message):
            models.load_model(integers)
    model = models.load_model(folders(tmp_path, "awq")[0])
    with pytest.raises(ValueError, match=r"layouts of integer weights are gptq, .*'marlin'"):
        models.save(model, tmp_path / "again", "marlin")
    with pytest.raises(NotImplementedError, match=r"layers.0.self_attn.q_proj has no fp8 layout: it takes e4m3"):
        models.save(model, tmp_path / "again", "fp8")


WRONG = {
    "no scale": (lambda c, t, n: t.pop(f"{n}.weight_scale"), CheckpointError, "q_proj.weight is (int8|float8_e4m3fn)"),
    "scale of a wrong shape": (
        lambda c, t, n: t.update({f"{n}.weight_scale": np.ones((3, 1), np.float32)}),
        CheckpointError, r"q_proj.weight_scale has shape \[3, 1\]; expected \[128, 1\]",
    ),
    "weight of a wrong shape": (
        lambda c, t, n: t.update({f"{n}.weight": t[f"{n}.weight"][:5]}),
        CheckpointError, r"q_proj.weight has shape \[5, 128\]; expected \[128, 128\]",
    ),
    "no weight": (lambda c, t, n: t.pop(f"{n}.weight"), CheckpointError, "q_proj.weight is missing"),
    "weight of floats": (
        lambda c, t, n: t.update({f"{n}.weight": t[f"{n}.weight"].astype(np.float32)}),
        NotImplementedError, "q_proj.weight is float32; (int|float)-quantized is read as",
    ),
    "strategy of weights": (
        lambda c, t, n: c["weights"].update(strategy="block"),
        NotImplementedError, "weights: strategy 'block' of (int|float)-quantized; there are channel, tensor",
    ),
    "asymmetric weights": (
        lambda c, t, n: c["weights"].update(symmetric=False),
        (CheckpointError, NotImplementedError), "zero_point is missing|float-quantized is read as symmetric",
    ),
    "bits": (lambda c, t, n: c["weights"].update(num_bits=6), ConfigurationError, "'num_bits' should be 4 or 8, got 6"),
    "targets": (lambda c, t, n: c.update(targets=["Conv2D"]), ConfigurationError, "groups of which one names model"),
}  # fmt: skip
WRONG_INPUTS = {
    "strategy": ({"strategy": "group"}, NotImplementedError, "strategy 'group', dynamic True; there are 'token'"),
    "no flag of symmetry": ({"symmetric": 1}, ConfigurationError, "'symmetric' should be true or false, got 1"),
    "bits": ({"num_bits": 4}, NotImplementedError, "inputs are bytes in int8"),
    "no scale": ({"dynamic": False, "strategy": "tensor"}, CheckpointError, "q_proj.input_scale is missing"),
    "no flag": ({"dynamic": "local"}, ConfigurationError, "'dynamic' should be true or false, got 'local'"),
}


@pytest.mark.parametrize("form", ["int-quantized", "float-quantized"])
def test_what_is_wrong_of_numbers_in_bytes_is_named(form, tmp_path):
    """Tensor or key, and what was expected, before any layer is used."""
    integers, _ = folders(tmp_path, form)
    config, tensors = json.loads((integers / "config.json").read_text()), load_file(integers / "model.safetensors")

    def load(change, error, message):
        own, held = json.loads(json.dumps(config)), {name: np.array(array) for name, array in tensors.items()}
        change(own["quantization_config"]["config_groups"]["group_0"], held, "model.layers.0.self_attn.q_proj")
        (integers / "config.json").write_text(json.dumps(own))
        save_file(held, integers / "model.safetensors")
        with pytest.raises(error, match=message):
            models.load_model(integers)

    for case in WRONG.values():
        load(*case)
    inputs = {"num_bits": 8, "type": "int", "dynamic": True, "strategy": "token"}
    for changes, error, message in WRONG_INPUTS.values() if form == "int-quantized" else ():
        load(lambda c, t, n, given=inputs | changes: c.update(input_activations=given), error, message)


def test_integers_are_the_blocks_of_gguf_files(tmp_path):
    """What GPTQ packed, in the order of llama.cpp's rows: the library reads the weights that numbers stand for, and who
    loads the file multiplies with the same integers. What no block holds is named with the reason."""
    library = pytest.importorskip("gguf")
    ids = np.random.default_rng(0).integers(0, 64, (2, 20))
    for form, kind in (("gptq", "Q4_0"), ("gptq eight bits", "Q8_0")):
        (tmp_path / kind).mkdir()
        integers, floats = map(models.load_model, folders(tmp_path / kind, form))
        path = tmp_path / kind / "model.gguf"
        models.save(integers, path)
        stored = {tensor.name: tensor for tensor in library.GGUFReader(path).tensors}
        down = stored["blk.1.ffn_down.weight"]
        assert down.tensor_type.name == kind
        wanted = floats.model.layers[1].mlp.down_proj.weight.numpy().T
        np.testing.assert_allclose(library.dequantize(down.data, down.tensor_type), wanted, rtol=1e-6)
        (want, *got) = (
            model(paddle.to_tensor(ids)).numpy()
            for model in (integers, models.load_model(path), models.load_model(path, integers=True))
        )
        for each in got:
            np.testing.assert_allclose(each, want, rtol=0, atol=1e-4 * np.abs(want).max())
    for form, reason in (("awq", "zero points"), ("compressed asymmetric ordered", "zero points"), ("fp8", "float8")):
        (tmp_path / form).mkdir()
        model = models.load_model(folders(tmp_path / form, form)[0])
        with pytest.raises(NotImplementedError, match=rf"_proj.weight has integers that no block holds: .*{reason}"):
            models.save(model, tmp_path / form / "model.gguf")
