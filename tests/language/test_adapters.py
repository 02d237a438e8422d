"""Adapters by row beside what PEFT on torch computed with each of them (see ``record_adapters.py``)."""

import json
from pathlib import Path

import numpy as np
import pytest

import argosy as paddle
from argosy import models
from argosy.models.adapters import read_adapter as read_model_adapter
from argosy.models.feedforward import Experts
from argosy.models.importer import program_of
from argosy.models.quantized_layers import (
    InputBytes,
    Numbers,
    QuantizedExperts,
    QuantizedLinear,
    layers_of,
    linear_layers,
)
from argosy_infer import (
    Generator,
    Predictor,
    SamplingOptions,
    add_adapters,
    load_program,
    make_incremental,
    read_adapter,
)
from argosy_infer.adapters import Adapter
from argosy_infer.compress import awq, round_to_nearest, smooth_quant
from argosy_infer.errors import AdapterError, InputError
from argosy_tensorcore.safetensors import save_file
from language.weights_by_name import weights

HERE = Path(__file__).parent
BASE = json.loads((HERE / "records" / "llama.json").read_text())
RECORD = json.loads((HERE / "adapters.json").read_text())
NAMES = ("attention", "all")
IDS = np.array(BASE["ids"])
EXPECTED = [np.array(r["outputs"], np.float32).reshape(2, 12, -1) for r in (BASE, *(RECORD[name] for name in NAMES))]
TOLERANCE = {"rtol": 0, "atol": 1e-4 * max(np.abs(e).max() for e in EXPECTED)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An exported Llama and the two adapters as PEFT writes them."""
    folder = tmp_path_factory.mktemp("adapters")
    (folder / "config.json").write_text(json.dumps(BASE["config"]))
    save_file({n: weights(n, shape) for n, shape in BASE["tensors"].items()}, folder / "model.safetensors")
    spec = [paddle.static.InputSpec([None, None], "int64", "ids")]
    paddle.jit.save(models.load_model(folder), folder / "export", input_spec=spec)
    for name in NAMES:
        write(folder / name, RECORD[name]["config"], tensors(name))
    return folder


def tensors(name):
    return {n: np.float32(0.3) * weights(n, shape) for n, shape in RECORD[name]["tensors"].items()}


def write(folder, config, arrays):
    folder.mkdir(exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps(config))
    save_file(arrays, folder / "adapter_model.safetensors")


@pytest.fixture(scope="module")
def adapted(folder):
    return add_adapters(load_program(folder / "export"), [read_adapter(folder / name) for name in NAMES])


@pytest.fixture(scope="module")
def generator(adapted):
    return Generator(adapted, capacity=128, block_size=4)


def test_each_row_of_a_batch_has_its_adapter(adapted):
    (logits,) = Predictor(adapted).run(ids=np.repeat(IDS, 3, axis=0), adapter=[0, 1, 2] * 2)
    for row, made in enumerate(logits):
        np.testing.assert_allclose(made, EXPECTED[row % 3][row // 3], **TOLERANCE)
    with pytest.raises(IndexError, match="adapter: index 3 is out of range; expected 0 to 2"):
        Predictor(adapted, "reference").run(ids=IDS, adapter=[0, 3])


@pytest.mark.parametrize("case", ["experts", "experts side by side", "matrices side by side"])
def test_experts_and_matrices_of_one_tensor_have_adapters(case, tmp_path):
    """By the names of transformers' modules; rows without an adapter are beside those that have it."""
    record = RECORD[case]
    base = json.loads((HERE / "records" / f"{record['base']}.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(base["config"]))
    save_file({n: weights(n, shape) for n, shape in base["tensors"].items()}, tmp_path / "model.safetensors")
    write(tmp_path / "adapter", record["config"], tensors(case))
    language = models.load(tmp_path, adapters={"mine": tmp_path / "adapter"})
    ids = np.array(base["ids"])
    expected = [np.array(r["outputs"], np.float32).reshape(*ids.shape, -1) for r in (base, record)]
    program = add_adapters(program_of(language.model), list(language.adapters.values()))
    (made,) = Predictor(program).run(ids=np.repeat(ids, 2, axis=0), adapter=[0, 1] * 2)
    scale = max(np.abs(e).max() for e in expected)
    for row, logits in enumerate(made):
        np.testing.assert_allclose(logits, expected[row % 2][row // 2], rtol=0, atol=1e-4 * scale)
    together = language.generate([ids[0], ids[0], ids[1]], 3, SamplingOptions(), adapter=["mine", None, "mine"])
    firsts = [expected[1][0], expected[0][0], expected[1][1]]
    assert [row[0] for row in together] == [int(logits[-1].argmax()) for logits in firsts]
    assert together[0] == language.generate(ids[0], 3, SamplingOptions(), adapter="mine")
    narrow = models.load(tmp_path, "bfloat16", adapters={"mine": tmp_path / "adapter"})  # routers choose in float32
    assert len(narrow.generate([ids[0], ids[1]], 2, SamplingOptions(), adapter=["mine", None])) == 2
    with pytest.raises(ValueError, match=r"no adapter 'other'.*\['mine'\]"):
        language.generate(ids[0], 3, SamplingOptions(), adapter="other")
    for several in ({}, {"num_return_sequences": 2}, {"num_beams": 2}):
        with pytest.raises(ValueError, match="2 prompts have one adapter, or one each, got 3"):
            language.generate([ids[0], ids[1]], 3, adapter=["mine", None, "mine"], **several)
        with pytest.raises(TypeError, match=r"one prompt has one adapter, got \['mine'\]"):
            language.generate(ids[0], 3, adapter=["mine"], **several)


@pytest.mark.parametrize("inputs", [None, InputBytes()])
def test_integers_in_another_order_take_adapters(inputs, folder):
    """As GPTQ's act-order has them: the adapter is that of the inputs as they are, and before they are bytes."""
    model = models.load_model(folder)
    for parent, attribute, name, layer in linear_layers(model):
        weight = layer.weight.numpy()
        order = np.random.default_rng(len(name)).permutation(len(weight))
        scale = np.abs(weight).max(0, keepdims=True) / 127
        numbers = Numbers(np.rint(weight[order] / scale).astype(np.int8), 8, scale, order=order, inputs=inputs)
        setattr(parent, attribute, QuantizedLinear(numbers, bias=False))
    adapted = add_adapters(program_of(model), [read_model_adapter(model, folder / name) for name in NAMES])
    (made,) = Predictor(adapted).run(ids=IDS, adapter=[2, 1])
    for row, number in enumerate((2, 1)):
        np.testing.assert_allclose(made[row], EXPECTED[number][row], rtol=0, atol=0.05 * np.abs(EXPECTED[2]).max())


def test_experts_with_integers_in_another_order_take_adapters():
    """Each expert's order is its own; the adapter is of the inputs as they are, and before they are bytes; those
    that are not symmetric are refused."""
    model = built("mixtral")
    adapter = Adapter({
        f"model.layers.0.mlp.experts.{own}": (
            weights(f"{own}.a", [shape[0], shape[1], 2]), weights(f"{own}.b", [shape[0], 2, shape[2]])
        )
        for own in ("gate_up_proj", "down_proj")
        for shape in [getattr(model.model.layers[0].mlp.experts, own).shape]
    })  # fmt: skip
    (want,) = Predictor(add_adapters(program_of(model), [adapter])).run(ids=IDS, adapter=[1, 0])
    (plain,) = Predictor(program_of(model)).run(IDS)
    assert np.linalg.norm(plain - want) > 0.2 * np.linalg.norm(want)
    for inputs in (None, InputBytes()):
        model = built("mixtral")
        use_orders(model, inputs)
        (made,) = Predictor(add_adapters(program_of(model), [adapter])).run(ids=IDS, adapter=[1, 0])
        assert np.linalg.norm(made - want) < 0.05 * np.linalg.norm(want)
    model = built("mixtral")
    use_orders(model, InputBytes(symmetric=False))
    with pytest.raises(AdapterError, match="and none with it"):
        add_adapters(program_of(model), [adapter])


def built(family):
    record = json.loads((HERE / "records" / f"{family}.json").read_text())
    model = models.build(models.ConfigFile({**record["config"], "num_hidden_layers": 1}))
    model.eval()
    for name, parameter in model.named_parameters():
        parameter.set_value(weights(name, list(parameter.shape)))
    return model


def use_orders(model, inputs):
    """Give experts eight bits, and inputs in an order of each."""
    rng = np.random.default_rng(0)
    for parent, attribute, name, experts in list(layers_of(model, Experts)):
        parts = []
        for gate_up, down in zip(experts.gate_up_proj.numpy(), experts.down_proj.numpy(), strict=True):
            first, second = (rng.permutation(len(each)) for each in (gate_up, down))
            matrices = [*np.split(gate_up, 2, axis=1), down]
            parts.append(
                [in_order(m, order, inputs) for m, order in zip(matrices, (first, first, second), strict=True)]
            )
        setattr(parent, attribute, QuantizedExperts(experts, parts, name))


def in_order(matrix, order, inputs):
    scale = np.abs(matrix).max(0, keepdims=True) / 127
    return Numbers(np.rint(matrix[order] / scale).astype(np.int8), 8, scale, order=order, inputs=inputs)


@pytest.mark.parametrize("family", ["olmo2", "llama"])
def test_adapters_are_of_inputs_as_they_were(family):
    """Factors that a program multiplies inputs with are for its weights alone (OLMo 2 has no norms before layers);
    where a norm was divided by them it is too late, and an adapter that is there before keeps its inputs."""
    name, whole = "model.layers.0.self_attn.q_proj.weight", program_of(built(family))
    adapter = Adapter({name: (weights("a", [32, 4]), weights("b", [4, 32]))})
    adapted = add_adapters(whole, [adapter])
    (want,) = Predictor(adapted).run(ids=IDS, adapter=[1, 0])
    if family == "olmo2":
        small = add_adapters(awq(whole, [[IDS]], 8, -1, skip=["*mlp*", "lm_head*"])[0], [adapter])
    else:
        scaled, _ = smooth_quant(whole, [[IDS]], skip=["*mlp*", "lm_head*"])
        with pytest.raises(AdapterError, match=f"inputs of {name} were divided by factors"):
            add_adapters(scaled, [adapter])
        small, _ = awq(adapted, [{"ids": IDS, "adapter": [0, 0]}], 8, -1, skip=["*mlp*", "lm_head*"])
    assert f"{name}.factors" in small.states
    (made,) = Predictor(small).run(ids=IDS, adapter=[1, 0])
    assert np.linalg.norm(made - want) < 0.03 * np.linalg.norm(want)


def test_sequences_of_a_step_have_their_adapters(generator):
    """Prompts and single tokens of rows with any adapter in one step."""
    assert [x.name_hint for x in generator.predictor.program.inputs][5:] == ["adapter"]
    generator.adapters.update({7: 1, 8: 2})
    rows = {7: EXPECTED[1][0], 8: EXPECTED[2][0], 9: EXPECTED[0][0]}
    at = dict.fromkeys(rows, 0)
    for sizes in ((5, 1, 3), (1, 7, 1), (6, 4, 8)):
        step = [(s, at[s] + i) for s, size in zip(rows, sizes, strict=True) for i in range(size)]
        made = generator.step([IDS[0][p] for _, p in step], [p for _, p in step], [s for s, _ in step])
        np.testing.assert_allclose(made, [rows[s][p] for s, p in step], **TOLERANCE)
        at = {s: at[s] + size for s, size in zip(rows, sizes, strict=True)}
    generator.adapters.clear()


def test_generation_takes_an_adapter(folder, generator):
    made = [generator.generate(IDS[0], 6, adapter=i) for i in range(3)]
    assert [m[0] for m in made] == [int(e[0, -1].argmax()) for e in EXPECTED]
    assert generator.adapters == {}
    with pytest.raises(InputError, match="takes no adapters"):
        Generator(folder / "export", 64, compiler="reference").generate([1], 1, adapter=1)


@pytest.mark.parametrize("input_bits", [None, 8])
def test_weights_of_few_bits_take_adapters(input_bits, folder, adapted):
    """Before or after they are rounded, and their inputs with them: adapters are of these as they were."""
    few = round_to_nearest(adapted, input_bits=input_bits)[0]
    (expected,) = Predictor(few, "reference").run(ids=IDS, adapter=[2, 1])
    small, _ = round_to_nearest(load_program(folder / "export"), input_bits=input_bits)
    late = add_adapters(small, [read_adapter(folder / name) for name in NAMES])
    (made,) = Predictor(late, "reference").run(ids=IDS, adapter=[2, 1])
    room = 0 if input_bits is None else 1e-2 * np.abs(expected).max()  # an input may become the next byte
    np.testing.assert_allclose(made, expected, rtol=0, atol=room)
    assert 0 < np.abs(made[0] - EXPECTED[2][0]).max() < 0.1 * np.abs(EXPECTED[2]).max()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"peft_type": "IA3"}, "'peft_type' should be 'LORA', got 'IA3'"),
        ({"use_dora": True}, "'use_dora' True is not implemented"),
        ({"modules_to_save": ["lm_head"]}, "'modules_to_save'.*not implemented"),
        ({"r": 5}, r"q_proj has factors \[4, 32\] and \[32, 4\]; expected \[5, in\]"),
        ({"r": 0}, "'r' of .* should be a positive number, got 0"),
        ({"lora_alpha": "8"}, "'lora_alpha' of .*got '8'"),
        ({"lora_alpha": float("inf")}, "'lora_alpha' of .*got inf"),
        ({"rank_pattern": [4]}, "'rank_pattern' should be an object"),
        ({"rank_pattern": {"q_(.+)+": 4}}, r"'q_\(.\+\)\+' of 'rank_pattern' is not implemented"),
    ],
)
def test_configurations_that_are_wrong_are_refused_by_key(changes, message, tmp_path):
    write(tmp_path, RECORD["attention"]["config"] | changes, tensors("attention"))
    with pytest.raises(AdapterError, match=message):
        read_adapter(tmp_path)


FIRST = "base_model.model.model.layers.0.self_attn.q_proj"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop(f"{FIRST}.lora_B.weight"), "q_proj has lora_A.weight alone"),
        (lambda t: t.update({f"{FIRST}.lora_magnitude_vector": np.zeros(3, np.float32)}), "magnitude_vector is no"),
        (lambda t: t.update({f"{FIRST}.lora_A.weight": np.zeros((4, 32, 1), np.float32)}), r"factors \[4, 32, 1\]"),
        (
            lambda t: t.update({f"{FIRST}.lora_A.weight": np.zeros((4, 31), np.float32)}),
            r"adapter 1 changes model.layers.0.self_attn.q_proj.weight as \[31, 32\]; it is \[32, 32\]",
        ),
        (
            lambda t: t.update({f"base_model.model.x.lora_{s}.weight": np.zeros((4, 4), np.float32) for s in "AB"}),
            "adapters change x.weight; the program has products with",
        ),
    ],
)
def test_tensors_that_are_wrong_are_refused_by_name(change, message, folder, tmp_path):
    arrays = tensors("attention")
    change(arrays)
    write(tmp_path, RECORD["attention"]["config"], arrays)
    with pytest.raises(AdapterError, match=message):
        add_adapters(load_program(folder / "export"), [read_adapter(tmp_path)])


def test_damaged_folders_are_refused(tmp_path):
    with pytest.raises(AdapterError, match=r"cannot read .*adapter_config\.json"):
        read_adapter(tmp_path)
    write(tmp_path, RECORD["attention"]["config"], tensors("attention"))
    file = tmp_path / "adapter_model.safetensors"
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(AdapterError, match=r"cannot read the adapter .*adapter_model\.safetensors"):
        read_adapter(tmp_path)


def test_an_adapter_is_an_input_by_row(adapted):
    made = make_incremental(adapted.program)
    assert str(made.inputs[-1].type) == "tensor<[rows], int64>"
