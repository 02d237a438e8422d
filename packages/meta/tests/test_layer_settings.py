"""Settings of layers are attributes under Paddle's names: subclasses read them, and what is assigned holds."""

import numpy as np
import pytest

import argosy as paddle
from argosy import nn
from argosy.nn import functional as F


@pytest.mark.parametrize(
    ("layer", "attributes"),
    [
        (lambda: nn.Conv2D(2, 4, 3, stride=2, padding=1, groups=2), {
            "_stride": [2, 2], "_padding": 1, "_dilation": [1, 1], "_groups": 2, "_data_format": "NCHW",
            "_kernel_size": [3, 3], "_padding_mode": "zeros", "_updated_padding": 1,
        }),
        (lambda: nn.Conv1D(2, 2, 3, padding=1, padding_mode="reflect"), {"_padding": 1, "_updated_padding": 0}),
        (lambda: nn.Conv2DTranspose(2, 4, 3, stride=2, output_padding=1), {
            "_stride": [2, 2], "output_padding": 1, "_kernel_size": [3, 3],
        }),
        (lambda: nn.MaxPool2D(2, return_mask=True), {
            "ksize": 2, "stride": None, "padding": 0, "ceil_mode": False, "return_mask": True, "data_format": "NCHW",
        }),
        (lambda: nn.AvgPool2D(2, divisor_override=3), {"ksize": 2, "divisor": 3, "exclusive": True, "name": None}),
        (lambda: nn.AvgPool1D(2), {"kernel_size": 2, "stride": None}),
        (lambda: nn.MaxPool3D(2), {"ksize": 2, "data_format": "NCDHW"}),
        (lambda: nn.AdaptiveAvgPool2D(1), {"_output_size": 1, "_data_format": "NCHW", "_name": None}),
        (lambda: nn.AdaptiveMaxPool2D(3), {"_output_size": 3, "_return_mask": False, "return_indices": False}),
        (lambda: nn.Embedding(5, 3, padding_idx=-1), {"_size": [5, 3], "_padding_idx": 4, "_sparse": False}),
        (lambda: nn.LeakyReLU(0.2), {"_negative_slope": 0.2}),
        (lambda: nn.Softmax(1), {"_axis": 1}),
        (lambda: nn.GELU(True), {"_approximate": True}),
        (lambda: nn.Hardtanh(), {"_min": -1.0, "_max": 1.0}),
        (lambda: nn.Hardshrink(0.3), {"_threshold": 0.3, "lambd": 0.3}),
        (lambda: nn.LocalResponseNorm(3), {"size": 3, "alpha": 0.0001, "data_format": "NCHW"}),
        (lambda: nn.TripletMarginLoss(2.0), {"margin": 2.0, "p": 2.0, "swap": False, "reduction": "mean"}),
        (lambda: nn.SmoothL1Loss(delta=0.5), {"delta": 0.5, "is_huber": True}),
    ],
)  # fmt: skip
def test_settings_can_be_read(layer, attributes):
    made = layer()
    assert {name: getattr(made, name) for name in attributes} == attributes


def test_what_is_assigned_holds():
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal((1, 2, 9, 9)).astype("float32"))
    conv = nn.Conv2D(2, 2, 3)
    conv._stride, conv._padding, conv._dilation = [2, 2], 2, [2, 2]
    expected = F.conv2d(x, conv.weight, conv.bias, stride=2, padding=2, dilation=2)
    np.testing.assert_array_equal(conv(x).numpy(), expected.numpy())
    assert "stride=[2, 2], padding=2, dilation=[2, 2]" in repr(conv)
    larger = nn.Conv2DTranspose(2, 2, 3)
    larger._stride, larger.output_padding = [2, 2], 1
    expected = F.conv2d_transpose(x, larger.weight, larger.bias, stride=2, output_padding=1)
    np.testing.assert_array_equal(larger(x).numpy(), expected.numpy())
    pool = nn.MaxPool2D(2)
    pool.ksize, pool.stride = 3, 1
    np.testing.assert_array_equal(pool(x).numpy(), F.max_pool2d(x, 3, 1).numpy())
    assert repr(pool) == "MaxPool2D(kernel_size=3, stride=1, padding=0)"
    slope = nn.LeakyReLU()
    slope._negative_slope = 0.5
    np.testing.assert_array_equal(slope(x).numpy(), F.leaky_relu(x, 0.5).numpy())
    loss = nn.SmoothL1Loss()
    loss.reduction = "sum"
    np.testing.assert_array_equal(loss(x, x * 2).numpy(), F.smooth_l1_loss(x, x * 2, "sum").numpy())


def test_a_subclass_convolves_with_the_settings_of_its_base():
    class Standardised(nn.Conv2D):
        def forward(self, x):
            w = self.weight
            w = (w - w.mean([1, 2, 3], keepdim=True)) / w.std([1, 2, 3], keepdim=True)
            settings = (self._stride, self._updated_padding, self._dilation, self._groups, self._data_format)
            return F.conv2d(x, w, self.bias, *settings)

    x = paddle.rand([2, 3, 8, 8])
    assert Standardised(3, 4, 3, stride=2, padding=1)(x).shape == [2, 4, 4, 4]


def test_weights_of_losses_are_no_parameters_and_not_saved():
    loss = nn.BCELoss(weight=paddle.to_tensor([1.0, 2.0]))
    assert not loss.state_dict()
    assert not loss.parameters()
    x = paddle.to_tensor([0.25, 0.5])
    np.testing.assert_allclose(float(loss(x, x)), float(F.binary_cross_entropy(x, x, loss.weight)))


def test_sublayers_by_their_path():
    net = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.Linear(2, 3))
    assert net.get_submodule("0.1") is net[0][1]
    assert net.get_sublayer("") is net
    net.set_submodule("0.1", nn.Tanh())
    assert isinstance(net[0][1], nn.Tanh)
    net.register_module("last", nn.ReLU())
    assert net.get_sublayer("last") is net.last
    seen = []
    net.register_forward_hook(lambda layer, given, result: seen.append(result.shape))
    net(paddle.ones([1, 2]))
    assert seen == [[1, 3]]
    with pytest.raises(AttributeError, match=r"Sequential has no sublayer '7' \(looking for '0.7'\)"):
        net.get_submodule("0.7")
    with pytest.raises(AttributeError, match="Sequential has no layer 'new'"):
        net.set_submodule("new", nn.ReLU(), strict=True)
    with pytest.raises(ValueError, match="'' names no layer"):
        net.set_submodule("", nn.ReLU())
    with pytest.raises(TypeError, match=r"add_sublayer\('1'\) takes a Layer, not int"):
        net.set_submodule("0.1", 3)
