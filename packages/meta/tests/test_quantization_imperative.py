"""``ImperativePTQ`` and ``ImperativeQuantAware``: Paddle 3.3.1's numbers for the same weights and inputs stand here."""

from typing import Any

import numpy as np
import pytest

import argosy as paddle
from argosy import nn, quantization
from argosy.nn.quant import fake_quant, functional_layers, quant_layers
from argosy.quantization.imperative import fuse_utils
from argosy.static import InputSpec
from argosy.static.quantization.cal_kl_threshold import cal_kl_threshold

SPEC = [InputSpec([None, 1, 4, 4], "float32")]


def _net() -> Any:
    """A convolution, norm, pooling, transposed convolution and linear layer with fixed weights."""
    layers = [
        nn.Conv2D(1, 4, 3, padding=1), nn.BatchNorm2D(4), nn.ReLU(), nn.MaxPool2D(2), nn.Conv2DTranspose(4, 2, 2),
        nn.Flatten(), nn.Linear(18, 5), nn.Softmax(),
    ]  # fmt: skip
    model, rng = nn.Sequential(*layers), np.random.default_rng(0)
    for p in model.parameters():
        p.set_value(rng.standard_normal(p.shape).astype("float32") * 0.5)
    model[1]._mean.set_value(rng.standard_normal(4).astype("float32") * 0.1)
    model[1]._variance.set_value(1 + rng.random(4).astype("float32"))
    return model


def _inputs(seed: int) -> Any:
    return paddle.to_tensor(np.random.default_rng(seed).standard_normal((3, 1, 4, 4)).astype("float32"))


def _scales(layer: Any) -> tuple[list[float], list[float]]:
    return layer._fake_quant_input._scale.tolist(), layer._fake_quant_weight._scale.tolist()


# ---- calibration


@pytest.mark.parametrize(
    ("activations", "weights", "inputs", "first", "result", "threshold"),
    [
        ("AbsmaxQuantizer", "AbsmaxQuantizer", [2.7111626, 5.1842785], [0.8432758],
         [0.8899841, 2.8580631e-05, 0.0463406, 3.5220350e-05, 0.0636116], 2.9713159),
        ("HistQuantizer", "PerChannelAbsmaxQuantizer", [2.7073503, 5.1766844],
         [0.3325467, 0.8432758, 0.3265850, 0.1573175],
         [0.8892847, 2.8360098e-05, 0.0457253, 3.6187361e-05, 0.0649255], 2.9669633),
    ],
)  # fmt: skip
def test_calibration_is_paddles(
    activations: str,
    weights: str,
    inputs: list[float],
    first: list[float],
    result: list[float],
    threshold: float,
    tmp_path: Any,
) -> None:
    """Scales, thresholds and results of three batches; the export rounds as the model does."""
    config = quantization.PTQConfig(getattr(quantization, activations)(), getattr(quantization, weights)())
    ptq, given = quantization.ImperativePTQ(config), _net()
    given.eval()
    model = ptq.quantize(given, fuse=True, fuse_list=[["0", "1"]])
    plain = [model(_inputs(i)).numpy() for i in range(3)]
    np.testing.assert_allclose(plain[0], given(_inputs(0)).numpy(), rtol=1e-4, atol=1e-6)  # fused, not yet rounded
    ptq.save_quantized_model(model, tmp_path / "m", SPEC)
    assert [type(layer).__name__ for layer in model] == [
        "QuantizedConv2D", "Identity", "ReLU", "MaxPool2D", "Conv2DTranspose", "Flatten", "QuantizedLinear", "Softmax",
    ]  # fmt: skip
    np.testing.assert_allclose([_scales(model[0])[0][0], _scales(model[6])[0][0]], inputs, rtol=1e-6)
    np.testing.assert_allclose(_scales(model[0])[1], first, rtol=1e-6)
    np.testing.assert_allclose(model[3]._quant_config.out_act_quantizer.thresholds, [threshold], rtol=1e-6)
    found = model(_inputs(0)).numpy()
    np.testing.assert_allclose(found[0], result, rtol=2e-5, atol=1e-8)
    assert np.abs(found - plain[0]).max() > 1e-4
    np.testing.assert_allclose(paddle.jit.load(tmp_path / "m")(_inputs(0)).numpy(), found, rtol=1e-5, atol=1e-8)


def test_calibration_leaves_the_given_model_and_marked_layers_alone() -> None:
    given = _net()
    given[6].skip_quant = True
    given.eval()
    ptq = quantization.ImperativePTQ()
    model = ptq.quantize(given)
    model(_inputs(0))
    ptq._convert(model)
    assert isinstance(model[0], quant_layers.QuantizedConv2D)
    assert isinstance(model[6], nn.Linear)
    assert not any(layer._forward_post_hooks for layer in given)
    assert not any(layer._forward_post_hooks for layer in model)
    with pytest.raises(TypeError, match="fuse_list"):
        ptq.quantize(given, fuse=True)
    with pytest.raises(TypeError, match="PTQConfig"):
        quantization.ImperativePTQ("KLQuantizer")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Layer"):
        ptq.quantize("model")  # type: ignore[type-var]


def test_the_registry_knows_layers_and_classes() -> None:
    registry = quantization.PTQRegistry
    assert registry.is_supported_layer(nn.ReLU)
    assert registry.is_supported_layer(nn.Conv2D(1, 1, 1))
    assert not registry.is_supported_layer(nn.Conv2DTranspose)
    assert not registry.is_supported_layer(quant_layers.QuantizedLinear)
    assert registry.is_registered_layer(quant_layers.QuantizedLinear)
    assert [registry.is_simulated_quant_layer(kind) for kind in (nn.Linear, nn.ReLU)] == [True, False]
    info = registry.layer_info(nn.Linear(1, 1))
    assert (info.input_names, info.weight_names, info.output_names) == (["X"], ["Y"], ["Out"])
    with pytest.raises(ValueError, match="not registered"):
        registry.layer_info(nn.Embedding(1, 1))


@pytest.mark.parametrize(
    ("ends", "bits", "wanted"), [(512, 8, 277.5), (512, 4, 258.5), (300, 8, 277.5), (3, 8, 2.5), (0, 8, 0.5)]
)
def test_thresholds_of_histograms(ends: int, bits: int, wanted: float) -> None:
    """Counts that end at ``ends`` of 512 bins: the wheel's threshold, where nothing is in the upper half, too."""
    counts = np.zeros(512, np.float32)
    counts[:ends] = np.floor(np.exp(-np.arange(ends) / 40) * 1000)
    assert cal_kl_threshold(counts, 1.0, bits) == wanted


def test_fused_linear_layers_and_those_without_bias() -> None:
    """A norm of one feature for each output, taken into weights and bias, and hooks that stay."""
    rng, seen = np.random.default_rng(1), []
    model = nn.Sequential(nn.Linear(3, 4, bias_attr=False), nn.BatchNorm1D(4))
    for tensor in (*model.parameters(), model[1]._mean):
        tensor.set_value(rng.standard_normal(tensor.shape).astype("float32"))
    model[1].register_forward_post_hook(lambda layer, inputs, outputs: seen.append(outputs.numpy()))
    model.eval()
    x = paddle.to_tensor(rng.standard_normal((5, 3)).astype("float32"))
    made = fuse_utils.fuse_layers(model, [["0", "1"]])
    expected, found = model(x).numpy(), made(x).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(seen[1], seen[0], rtol=1e-5, atol=1e-6)
    with pytest.raises(TypeError, match="Linear and ReLU"):
        fuse_utils.fuse_layers(nn.Sequential(nn.Linear(1, 1), nn.ReLU()), [["0", "1"]])


# ---- training


@pytest.mark.parametrize("onnx_format", [False, True])
@pytest.mark.parametrize(
    ("weights", "losses", "conv", "result"),
    [
        ("abs_max", [2.2017550, 2.0564115, 2.4576082, 2.3341203], [1.1530017],
         [0.0040770, 0.0064518, 0.5811409, 0.00032948, 0.4080009]),
        ("channel_wise_abs_max", [2.2149940, 2.0663857, 2.4435275, 2.3449657],
         [0.5793398, 1.1536123, 0.6696529, 0.5070245],
         [0.0046475, 0.0065447, 0.5792601, 0.00036620, 0.4091817]),
    ],
)  # fmt: skip
def test_training_is_paddles(
    weights: str, losses: list[float], conv: list[float], result: list[float], onnx_format: bool, tmp_path: Any
) -> None:
    """Losses of four steps, scales and results; with ``onnx_format`` the export has integers as weights."""
    qat = quantization.ImperativeQuantAware(weight_quantize_type=weights, onnx_format=onnx_format)
    model = _net()
    assert qat.quantize(model) is model
    optimizer, found = paddle.optimizer.SGD(0.1, parameters=model.parameters()), []
    for i in range(4):
        loss = model(_inputs(i)).square().sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        found.append(float(loss))
    np.testing.assert_allclose(found, losses, rtol=2e-6)
    np.testing.assert_allclose(_scales(model[0]._layer)[1], conv, rtol=2e-6)
    np.testing.assert_allclose(model[6]._layer._fake_quant_input._state.tolist(), [4.0951], rtol=1e-6)
    model.eval()
    expected = model(_inputs(9)).numpy()
    np.testing.assert_allclose(expected[0], result, rtol=5e-5)
    watched = [isinstance(layer, quant_layers.MAOutputScaleLayer) for layer in model]
    assert watched == [not onnx_format or i in (0, 4, 6) for i in range(8)]
    before = model.state_dict()["6._layer.weight"].numpy()
    qat.save_quantized_model(model, tmp_path / "m", SPEC)
    np.testing.assert_array_equal(model.state_dict()["6._layer.weight"].numpy(), before)
    loaded = paddle.jit.load(tmp_path / "m")
    np.testing.assert_allclose(loaded(_inputs(9)).numpy(), expected, rtol=1e-4, atol=1e-7)
    weight = loaded.state_dict()["6._layer.weight"].numpy()
    assert bool((weight == np.round(weight)).all()) == onnx_format


def test_captured_training_is_the_same() -> None:
    """Scales that move within one program are those of eager steps."""

    def scales(capture: bool) -> list[float]:
        model = quantization.ImperativeQuantAware(weight_quantize_type="channel_wise_abs_max").quantize(_net())
        run = paddle.jit.to_static(model, full_graph=True) if capture else model
        for i in range(3):
            run(_inputs(i)).sum().backward()
        return [float(s) for layer in (model[0], model[6]) for part in _scales(layer._layer) for s in part]

    np.testing.assert_allclose(scales(True), scales(False), rtol=1e-5)


def test_norms_are_fused_before_training() -> None:
    model = _net()
    model.eval()
    expected = model(_inputs(0)).numpy()
    model = quantization.ImperativeQuantAware(["Linear"], fuse_conv_bn=True).quantize(model)
    assert isinstance(model[0]._layer, nn.Conv2D)
    assert isinstance(model[1]._layer, nn.Identity)
    assert not any(layer.training for layer in model.sublayers())
    model[6]._layer._fake_quant_input._scale.set_value(np.array([6.0], "float32"))
    np.testing.assert_allclose(model(_inputs(0)).numpy(), expected, atol=0.05)


class _Half(nn.Layer):
    def forward(self, x: Any) -> Any:
        return x * 0.5


def test_layers_of_ones_own_come_before_or_instead() -> None:
    x, layer = paddle.to_tensor([[127.0, 1.0]]), nn.Linear(2, 1)
    layer.weight.set_value(np.array([[127.0], [3.0]], "float32"))
    before = quant_layers.QuantizedLinear(layer, weight_pre_layer=_Half, act_pre_layer=_Half)
    assert before(x).tolist() == [[63.5 * 63.5 + 1.5 * 0.5]]
    instead = quant_layers.QuantizedLinear(layer, weight_quant_layer=_Half, act_quant_layer=_Half)
    assert instead(x).tolist() == before(x).tolist()
    product = quant_layers.QuantizedMatmul()
    assert product(x, paddle.to_tensor([[127.0, 0.4]]), transpose_y=True).tolist() == [[127.0 * 127.0]]


def test_functions_are_layers_whose_results_are_rounded() -> None:
    """Sums and products are, other functions keep the scale of their result."""

    class Net(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.add, self.join = functional_layers.add(), functional_layers.concat()
            self.turn, self.flat = functional_layers.transpose(), functional_layers.flatten()

        def forward(self, x: Any) -> Any:
            return self.flat(self.turn(self.join([self.add(x, x * 0.3), x], axis=0), [1, 0]))

    x, model = paddle.to_tensor([[1.0, 0.013]]), Net()
    exact = model(x).numpy()
    quantization.ImperativeQuantAware().quantize(model)
    assert isinstance(model.add, quant_layers.FakeQuantMAOutputScaleLayer)
    assert isinstance(model.join, quant_layers.MAOutputScaleLayer)
    scale = (0.9 + 1.3) / 1.9
    rounded = np.round(np.minimum([1.3, 0.0169], scale) / scale * 127) * scale / 127
    np.testing.assert_allclose(model(x).numpy(), [rounded[0], exact[1], rounded[1], exact[3]], rtol=1e-6)


def test_channels_of_zeros_stay_zeros() -> None:
    """A pruned channel has the scale 0, and no value divides by it."""
    quant = fake_quant.FakeQuantChannelWiseAbsMax(channel_num=2, quant_on_weight=True)
    weight = paddle.to_tensor([[0.0, 0.0], [1.0, 0.3]], stop_gradient=False)
    found = quant(weight)
    found.sum().backward()
    np.testing.assert_allclose(found.numpy(), [[0.0, 0.0], [1.0, 38 / 127]], rtol=1e-6)
    assert weight.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert quant._scale.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"quantizable_layer_type": ["Embedding"]}, "'Embedding' cannot be quantised"),
        ({"weight_quantize_type": "moving_average_abs_max"}, "weight_quantize_type"),
        ({"activation_quantize_type": "abs_max"}, "activation_quantize_type"),
        ({"weight_bits": 17}, "from 2 to 16"),
        ({"activation_bits": True}, "activation_bits"),
    ],
)
def test_what_cannot_be_quantised_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        quantization.ImperativeQuantAware(**options)


def test_learned_steps_and_several_ranks_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="lsq_weight"):
        quant_layers.QuantizedLinear(nn.Linear(1, 1), weight_quantize_type="lsq_weight")
    with pytest.raises(ValueError, match="'range_abs_max' is no way"):
        quant_layers.QuantizedLinear(nn.Linear(1, 1), activation_quantize_type="range_abs_max")
    with pytest.raises(NotImplementedError, match="several ranks"):
        quant_layers.QuantStub(reduce_type="max")
    with pytest.raises(ValueError, match="for weights"):
        fake_quant.FakeQuantChannelWiseAbsMax()
