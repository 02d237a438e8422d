"""Quantisation simulated in float: Paddle 3.3.1's values, whose numbers stand here, and those of numpy's formulas."""

import numpy as np
import pytest

import argosy as paddle
from argosy.nn.quant import Stub
from argosy.nn.quant.format import LinearDequanter, LinearQuanter
from argosy.nn.quant.qat import QuantedConv2D, QuantedLinear
from argosy.quantization import PTQ, QAT, BaseQuanter, QuantConfig, quanter
from argosy.quantization.imperative import HistQuantizer, KLQuantizer
from argosy.quantization.observers import AbsmaxObserver, GroupWiseWeightObserver, HistObserver, KLObserver
from argosy.quantization.observers.abs_max import AbsmaxObserverLayer
from argosy.quantization.quanters import FakeQuanterLSQ, FakeQuanterWithAbsMaxObserver


def _net():
    layers = [paddle.nn.Conv2D(1, 2, 3, padding=1), paddle.nn.ReLU(), paddle.nn.Flatten(), paddle.nn.Linear(32, 3)]
    net, rng = paddle.nn.Sequential(*layers), np.random.default_rng(0)
    for p in net.parameters():
        p.set_value(rng.standard_normal(p.shape).astype("float32") * 0.3)
    return net


def _inputs(seed):
    return paddle.to_tensor(np.random.default_rng(seed).standard_normal((2, 1, 4, 4)).astype("float32"))


def _everywhere(factory):
    return QuantConfig(activation=factory, weight=factory)


# ---- quanters


def test_the_scale_is_a_moving_average():
    """Scale, state and results of three calls are Paddle's."""
    layer = FakeQuanterWithAbsMaxObserver()._instance(paddle.nn.Linear(2, 2))
    paddles = [
        (1.0, [1.0, -0.2992126], 1.0, 1.9),
        (3.0, [1.7380074, -0.30107215], 1.7380074, 2.71),
        (0.0, [0.0, -0.30138546], 1.3198605, 3.439),
    ]
    for value, expected, scale, state in paddles:
        found = layer(paddle.to_tensor([value, -0.3]))
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
        np.testing.assert_allclose([layer.scales().item(), layer._state.item()], [scale, state], rtol=1e-6)
    assert (layer.bit_length(), layer.quant_axis(), layer.zero_points()) == (8, -1, None)
    assert sorted(layer.state_dict()) == ["_accum", "_scale", "_state"]


def test_evaluation_keeps_the_scale_and_halves_go_away_from_zero():
    """Rounding as Paddle's, and gradients that pass, beyond the scale, too."""
    layer = FakeQuanterWithAbsMaxObserver()._instance(paddle.nn.Linear(2, 2))
    layer.eval()
    layer._scale.set_value(np.array([127.0], "float32"))
    x = paddle.to_tensor([0.5, 1.5, 2.5, -0.5, -1.5, 200.0, -200.0, 127.4], stop_gradient=False)
    y = layer(x)
    y.sum().backward()
    assert y.tolist() == [1.0, 2.0, 3.0, -1.0, -2.0, 127.0, -127.0, 127.0]
    assert x.grad.tolist() == [1.0] * 8
    assert layer.scales().item() == 127.0


def test_a_learned_step_has_the_gradient_of_its_paper():
    """``round(v) - v`` within the range and its ends beyond, over the root of elements and levels; inputs beyond have
    none. Training finds a better step than the first."""
    layer = FakeQuanterLSQ(bit_length=3)._instance(paddle.nn.Linear(2, 2))
    values = np.random.default_rng(0).standard_normal(64).astype("float32") * 3
    x = paddle.to_tensor(values, stop_gradient=False)
    assert not layer(paddle.zeros([3])).any()  # which says nothing of the step
    y = layer(x)
    step = layer.scales().item() / 3
    assert step == pytest.approx(2 * np.abs(values).mean() / 3**0.5, rel=1e-5)
    v = values / step
    np.testing.assert_allclose(y.numpy(), np.clip(np.rint(v), -3, 3) * step, rtol=1e-5, atol=1e-6)
    y.sum().backward()
    inside = np.abs(v) < 3
    np.testing.assert_array_equal(x.grad.numpy(), inside)
    expected = np.where(inside, np.rint(v) - v, np.sign(v) * 3).sum() / (64 * 3) ** 0.5
    np.testing.assert_allclose(layer.parameters()[0].grad.item(), expected, rtol=1e-4)
    layer.clear_gradients()
    adam, losses = paddle.optimizer.Adam(0.02, parameters=layer.parameters()), []
    for _ in range(60):
        loss = ((layer(x.detach()) - x.detach()) ** 2).mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]
    assert (layer.bit_length(), layer.quant_axis(), layer.zero_points()) == (3, -1, None)


@pytest.mark.parametrize(
    ("factory", "quantizer"),
    [(HistObserver(percent=0.99), HistQuantizer(hist_percent=0.99)), (KLObserver(), KLQuantizer())],
)
def test_observers_cut_magnitudes_off_by_their_histogram(factory, quantizer):
    """Where the quantizers of `quantization.imperative` do, over several calls; PTQ converts what they found."""
    net = paddle.nn.Sequential(paddle.nn.Linear(32, 4))
    net.eval()
    ptq = PTQ(QuantConfig(activation=factory, weight=AbsmaxObserver()))
    watched = ptq.quantize(net)
    for seed in range(3):
        x = np.random.default_rng(seed).standard_t(3, (64, 32)).astype("float32")
        watched(paddle.to_tensor(x))
        quantizer.sample_data(None, (paddle.to_tensor(x),))
    quantizer.cal_thresholds()
    observer = watched[0].activation_quanter
    assert observer.scales().item() == pytest.approx(quantizer.thresholds[0], rel=1e-6)
    assert observer.scales().item() < 0.7 * quantizer.abs_max_vals[0]
    made = ptq.convert(watched)(paddle.to_tensor(x)).numpy()
    clipped = np.clip(x, -quantizer.thresholds[0], quantizer.thresholds[0])
    want = clipped @ net[0].weight.numpy() + net[0].bias.numpy()
    np.testing.assert_allclose(made, want, rtol=0, atol=0.03 * np.abs(want).max())


def test_fixed_quanters_round_halves_to_even():
    """LinearQuanter and LinearDequanter, one scale, scales of channels, 4 bits, float8: Paddle's numbers."""
    x = paddle.to_tensor([0.5, 1.5, 2.5, -1.5, 200.0, -200.0, 127.4])
    found = LinearQuanter(np.float32(127.0), np.float32(0.0))(x)
    assert found.tolist() == [0.0, 2.0, 2.0, -2.0, 127.0, -128.0, 127.0]
    rows = paddle.to_tensor([[0.5, 3.0, 300.0]] * 2)
    scales = np.array([127.0, 254.0], "float32")
    integers = LinearQuanter(scales, np.zeros(2, "float32"), quant_axis=0)(rows)
    assert integers.tolist() == [[0.0, 3.0, 127.0], [0.0, 2.0, 127.0]]
    back = LinearDequanter(scales, np.zeros(2, "float32"), quant_axis=0)(integers)
    assert back.tolist() == [[0.0, 3.0, 127.0], [0.0, 4.0, 254.0]]
    four = LinearQuanter(np.array([2.0], "float32"), bit_length=4)(paddle.to_tensor([1.0, 0.3, -1.5, 5.0, -5.0]))
    assert four.tolist() == [4.0, 1.0, -5.0, 7.0, -8.0]
    eight = LinearQuanter(np.array([2.0], "float32"), bit_length=(4, 3))(rows[0])
    assert eight.tolist() == [112.0, 448.0, 448.0]
    assert LinearDequanter(np.array([2.0], "float32"), bit_length=(4, 3))(eight).tolist() == [0.5, 2.0, 2.0]
    with pytest.raises(NotImplementedError, match=r"\(3, 4\)"):
        LinearQuanter(np.float32(1.0), bit_length=(3, 4))


# ---- training aware of it


def _rounded(x, scale, limit=127):
    steps = np.clip(x, -scale, scale) * limit / scale
    return np.sign(steps) * np.floor(np.abs(steps) + 0.5) * scale / limit


def test_training_rounds_inputs_and_weights():
    """A linear layer computes with both rounded, and its gradients are those of the rounded ones."""
    layer = paddle.nn.Linear(4, 3)
    model = QAT(_everywhere(FakeQuanterWithAbsMaxObserver())).quantize(paddle.nn.Sequential(layer))
    x = np.random.default_rng(0).standard_normal((5, 4)).astype("float32")
    w, b = layer.weight.numpy(), layer.bias.numpy()
    y = model(paddle.to_tensor(x))
    y.sum().backward()
    qx, qw = (_rounded(v, (0.9 + np.abs(v).max()) / 1.9) for v in (x, w))
    np.testing.assert_allclose(y.numpy(), qx @ qw + b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model[0].weight.grad.numpy(), np.repeat(qx.sum(0)[:, None], 3, 1), rtol=1e-5, atol=1e-6)
    assert layer.weight.grad is None  # the model given is left as it was


def _trained(model, wrap):
    optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())

    def step(x):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    step = wrap(step)
    return [float(step(_inputs(i))) for i in range(4)], [p.numpy() for p in model.parameters()]


def test_captured_training_is_the_same():
    """One program with its moving averages gives what eager steps give."""
    qat = QAT(_everywhere(FakeQuanterWithAbsMaxObserver()))
    eager = _trained(qat.quantize(_net()), lambda f: f)
    captured = _trained(qat.quantize(_net()), lambda f: paddle.jit.to_static(f, full_graph=True))
    np.testing.assert_allclose(captured[0], eager[0], rtol=1e-5)
    for ours, expected in zip(captured[1], eager[1], strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-6)


def test_converted_models_give_the_same_and_are_served(tmp_path):
    """Weights become integers; what is exported gives what evaluation gave."""
    qat = QAT(_everywhere(FakeQuanterWithAbsMaxObserver()))
    model = qat.quantize(_net())
    for i in range(3):
        model(_inputs(i))
    model.eval()
    expected = model(_inputs(0)).numpy()
    made = qat.convert(model)
    weight = made[3].weight.numpy()
    assert (weight == np.round(weight)).all()
    assert np.abs(weight).max() <= 128
    np.testing.assert_allclose(made(_inputs(0)).numpy(), expected, rtol=1e-5, atol=1e-6)
    kept = qat.convert(model, remain_weight=True)
    np.testing.assert_array_equal(kept[3].weight.numpy(), model[3].weight.numpy())
    np.testing.assert_allclose(kept(_inputs(0)).numpy(), expected, rtol=1e-5, atol=1e-6)
    paddle.jit.save(made, str(tmp_path / "m"), [paddle.static.InputSpec([None, 1, 4, 4], "float32")])
    np.testing.assert_allclose(paddle.jit.load(str(tmp_path / "m"))(_inputs(0)).numpy(), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(RuntimeError, match="only once"):
        made[3].convert()


class _Channels(AbsmaxObserverLayer):
    """The largest magnitude of each channel of ``axis``."""

    def __init__(self, layer, axis):
        super().__init__(layer, 8)
        self._axis = axis

    def forward(self, input):
        self._scale = input.abs().max([i for i in range(input.ndim) if i != self._axis])
        return input

    def scales(self):
        return self._scale

    def quant_axis(self):
        return self._axis


class _ByChannel(AbsmaxObserver):
    def _instance(self, layer):
        return _Channels(layer, 1 if isinstance(layer, paddle.nn.Linear) else 0)


def _integers(quanter, values):
    """What a converted quanter makes of numbers, by numpy, and what a 1 of it stands for."""
    scales, most = quanter._scales.numpy(), np.float32(127)
    return np.clip(np.rint(values * most / scales), -128, 127).astype("int64"), scales / most


def test_converted_layers_compute_in_bytes(tmp_path):
    """A convolution with circular edges and groups, one of channels last, a linear layer: exactly the sums that numpy
    makes of integers, in eager and compiled code; the file holds bytes and is a quarter as large."""
    first = paddle.nn.Conv2D(8, 12, 3, stride=2, padding=1, groups=2, padding_mode="circular")
    layers = [first, paddle.nn.Conv2D(7, 8, 3, padding=1, data_format="NHWC"), paddle.nn.Linear(40, 256)]
    shapes = [(2, 8, 7, 8), (2, 6, 5, 7), (3, 40)]
    for layer, shape in zip(layers, shapes, strict=True):
        net = paddle.nn.Sequential(layer)
        net.eval()
        ptq = PTQ(QuantConfig(activation=AbsmaxObserver(), weight=_ByChannel()))
        watched = ptq.quantize(net)
        x = np.random.default_rng(0).standard_normal(shape).astype("float32")
        watched(paddle.to_tensor(x))
        made = ptq.convert(watched)
        weight = made[0].weight.numpy()
        assert weight.dtype == np.int8
        whole, step = _integers(made[0].activation_quanter._quanter, x)
        call = made[0]._compute(paddle.to_tensor(whole), paddle.to_tensor(weight.astype("int64")), None)
        channels = (-1, 1, 1) if layer is first else (-1,)
        steps = (step * made[0].weight_quanter._dequanter._scales.numpy() / np.float32(127)).reshape(channels)
        want = call.numpy().astype("float32") * steps + layer.bias.numpy().reshape(channels)
        np.testing.assert_allclose(made(paddle.to_tensor(x)).numpy(), want, rtol=3e-6, atol=1e-6)
        path = str(tmp_path / "m")
        paddle.jit.save(made, path, [paddle.static.InputSpec([None, *shape[1:]], "float32")])
        np.testing.assert_allclose(paddle.jit.load(path)(paddle.to_tensor(x)).numpy(), want, rtol=3e-6, atol=1e-6)
    assert (tmp_path / "m.safetensors").stat().st_size < 40 * 256 * 4 / 3


# ---- of trained models


def test_observers_see_and_change_nothing():
    """The largest value of all batches becomes the scale."""
    net = _net()
    net.eval()
    ptq = PTQ(_everywhere(AbsmaxObserver(quant_bits=8)))
    model = ptq.quantize(net)
    for i in range(3):
        np.testing.assert_array_equal(model(_inputs(i)).numpy(), net(_inputs(i)).numpy())
    largest = max(np.abs(_inputs(i).numpy()).max() for i in range(3))
    assert model[0].activation_quanter.scales().item() == pytest.approx(largest)
    made = ptq.convert(model)
    w, scale = net[0].weight.numpy(), np.abs(net[0].weight.numpy()).max()
    np.testing.assert_array_equal(made[0].weight.numpy(), np.round(w * np.float32(127) / scale))
    np.testing.assert_allclose(made(_inputs(0)).numpy(), net(_inputs(0)).numpy(), atol=0.05)


def test_groups_of_inputs_have_scales_of_their_own():
    """[inputs / 128, outputs] scales, zero columns included."""
    layer = paddle.nn.Linear(256, 3)
    w = np.random.default_rng(0).standard_normal((256, 3)).astype("float32")
    w[:, 1] = 0.0
    layer.weight.set_value(w)
    net = paddle.nn.Sequential(layer)
    net.eval()
    ptq = PTQ(QuantConfig(activation=None, weight=GroupWiseWeightObserver()))
    model = ptq.quantize(net)
    x = paddle.ones([2, 256])
    expected = model(x).numpy()
    scales = np.maximum(np.abs(w.reshape(2, 128, 3)).max(1), 1e-8)
    np.testing.assert_allclose(model[0].weight_quanter.scales().numpy(), scales)
    made = ptq.convert(model)
    np.testing.assert_allclose(made(x).numpy(), expected, atol=0.5)
    spread = np.repeat(scales, 128, 0)
    back = made[0].weight.numpy() * spread / 127
    np.testing.assert_allclose(back, w, atol=spread.max() / 254 + 1e-6)
    with pytest.raises(ValueError, match="multiple of 128"):
        GroupWiseWeightObserver()._instance(layer)(paddle.ones([3, 3]))


# ---- configurations


class _Stubbed(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.quant, self.fc = Stub(), paddle.nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(paddle.nn.functional.relu(self.quant(x)))


def test_stubs_and_layers_are_replaced_by_what_the_config_says():
    """All layers, types, names and single layers; the text is Paddle's."""
    q = FakeQuanterWithAbsMaxObserver()
    found = str(QAT(_everywhere(q)).quantize(_Stubbed()))
    inner = "    (weight_quanter): FakeQuanterWithAbsMaxObserverLayer()\n"
    inner += "    (activation_quanter): FakeQuanterWithAbsMaxObserverLayer()\n"
    stub = "  (quant): QuanterStub(\n    (_observer): FakeQuanterWithAbsMaxObserverLayer()\n  )\n"
    assert found == f"_Stubbed(\n{stub}  (fc): QuantedLinear(\n{inner}  )\n)"
    assert _everywhere(q).global_config.weight is q
    x = paddle.ones([1, 2])
    assert Stub()(x) is x
    net, config = _net(), QuantConfig(activation=None, weight=None)
    config.add_layer_config(net[3], activation=q, weight=q)
    config.add_type_config([paddle.nn.ReLU], activation=q)
    kinds = [type(layer).__name__ for layer in QAT(config).quantize(net).children()]
    assert kinds == ["Conv2D", "ObserveWrapper", "Flatten", "QuantedLinear"]
    assert "Layer prefix config" in str(config)
    shown = "FakeQuanterWithAbsMaxObserver(name=None,moving_rate=0.9,bit_length=8,dtype=float32)"
    assert str(_everywhere(q)) == f"Global config:\nactivation: {shown}\nweight: {shown}\n"
    with pytest.raises(TypeError, match=r"subclasses of paddle\.nn\.Layer"):
        config.add_type_config([int])


def test_own_targets_and_leaves():
    """Layers become what add_qat_layer_mapping says; a leaf is observed as a whole."""

    class Twice(QuantedLinear):
        def forward(self, x):
            return super().forward(x) * 2

    q = FakeQuanterWithAbsMaxObserver()
    config = _everywhere(q)
    config.add_qat_layer_mapping(paddle.nn.Linear, Twice)
    config.add_customized_leaf(_Stubbed)
    assert config.default_qat_layer_mapping[paddle.nn.Linear] is QuantedLinear
    assert config.customized_leaves == [_Stubbed]
    qat = QAT(config)
    model = qat.quantize(_net())
    assert isinstance(model[3], Twice)
    assert isinstance(model[0], QuantedConv2D)
    assert str(qat) == "Sequential()"  # its layers were replaced
    config._specify(_net())
    assert config.details().startswith("Sequential(\n  (0): Conv2D(), activation:")


def test_quanters_of_ones_own_are_declared():
    """The decorator puts a factory beside the class; its arguments reach it after the layer."""

    @quanter("TimesFactory")
    class Times(BaseQuanter):
        def __init__(self, layer, factor=1.0):
            super().__init__()
            self.factor = factor

        def forward(self, input):
            return input * self.factor

        def scales(self):
            return paddle.to_tensor(self.factor)

        def zero_points(self):
            return None

        def quant_axis(self):
            return -1

        def bit_length(self):
            return 8

    factory = globals()["TimesFactory"](factor=3.0)
    assert str(factory) == "TimesFactory(factor=3.0)"
    assert (factory.args, factory.kwargs) == ((), {"factor": 3.0})
    net = paddle.nn.Sequential(paddle.nn.ReLU())
    assert QAT(QuantConfig(activation=factory, weight=None)).quantize(net)(paddle.ones([1])).tolist() == [3.0]


def test_modes_are_checked():
    """QAT trains, PTQ does not."""
    net, config = _net(), _everywhere(FakeQuanterWithAbsMaxObserver())
    with pytest.raises(ValueError, match=r"model\.eval"):
        PTQ(config).quantize(net)
    net.eval()
    with pytest.raises(ValueError, match=r"model\.train"):
        QAT(config).quantize(net)
    assert PTQ(_everywhere(AbsmaxObserver())).quantize(net, inplace=True) is net
