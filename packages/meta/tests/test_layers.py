"""Layers whose results are random, or kept between calls: what must hold of them beyond the recorded values."""

from __future__ import annotations

import numpy as np
import pytest

import argosy as paddle
from argosy import nn


def test_channel_dropout_drops_whole_channels_and_scales_the_rest() -> None:
    """Dropout2D and Dropout3D give channels that are all zero or all 1 / (1 - p)."""
    paddle.seed(1)
    for layer, shape in ((nn.Dropout2D(0.5), [8, 16, 3, 3]), (nn.Dropout3D(0.5), [8, 16, 2, 3, 3])):
        channels = layer(paddle.ones(shape)).numpy().reshape(128, -1)
        assert (channels == channels[:, :1]).all()
        assert set(np.unique(channels)) == {0.0, 2.0}


@pytest.mark.parametrize("kind", [nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_alpha_dropout_keeps_mean_and_variance(kind: type) -> None:
    """A standard normal input has mean 0 and variance 1 afterwards, and other values than before."""
    paddle.seed(2)
    x = paddle.randn([200, 200])
    y = kind(0.3)(x).numpy()
    assert abs(y.mean()) < 0.03
    assert abs(y.var() - 1) < 0.05
    assert (y != x.numpy()).any()


def test_rrelu_draws_slopes_within_its_bounds_while_training() -> None:
    """Negative inputs are multiplied by different numbers in [lower, upper], positive ones by 1."""
    paddle.seed(3)
    y = nn.RReLU(0.1, 0.4)(paddle.full([1000], -1.0)).numpy()
    assert (y <= -0.1).all()
    assert (y >= -0.4).all()
    assert y.std() > 0.05
    assert float(nn.RReLU(0.1, 0.4)(paddle.ones([1]))) == 1.0


def test_gumbel_softmax_samples_by_its_logits() -> None:
    """Hard samples are one-hot, come with the softmax's frequencies, and pass the soft sample's gradient."""
    paddle.seed(4)
    logits = paddle.to_tensor(np.log([[0.2, 0.3, 0.5]] * 4000), dtype="float32", stop_gradient=False)
    y = nn.functional.gumbel_softmax(logits, hard=True)
    assert np.allclose(np.sort(y.numpy(), axis=1), [[0, 0, 1]], atol=1e-6)
    assert np.allclose(y.numpy().mean(0), [0.2, 0.3, 0.5], atol=0.03)
    (y * paddle.to_tensor([1.0, 2.0, 3.0])).sum().backward()
    assert np.abs(logits.grad.numpy()).sum() > 0


def test_spectral_norm_converges_to_the_largest_singular_value() -> None:
    """After enough iterations the matrix has largest singular value 1; the vectors are kept between calls."""
    paddle.seed(5)
    weight = paddle.randn([4, 3, 2])
    layer = nn.SpectralNorm([4, 3, 2], dim=1, power_iters=2)
    for _ in range(30):
        normed = layer(weight)
    matrix = normed.numpy().transpose(1, 0, 2).reshape(3, 8)
    assert np.isclose(np.linalg.svd(matrix, compute_uv=False)[0], 1.0, atol=1e-4)


def test_fold_undoes_unfold_up_to_how_often_a_pixel_is_covered() -> None:
    """Windows of ones count how many cover each pixel; folding an unfolded image multiplies by those counts."""
    x = paddle.randn([2, 3, 5, 7])
    windows = {"kernel_sizes": [3, 2], "strides": [2, 3], "paddings": [1, 0, 1, 2], "dilations": 1}
    counts = nn.Fold([5, 7], **windows)(nn.Unfold(**windows)(paddle.ones([2, 3, 5, 7])))
    folded = nn.Fold([5, 7], **windows)(nn.Unfold(**windows)(x))
    assert np.allclose(folded.numpy(), (x * counts).numpy(), atol=1e-5)


def test_wrong_arguments_are_refused_with_their_names() -> None:
    """Channels that do not split into groups, columns of another number, paddings of another length."""
    with pytest.raises(ValueError, match="4 channels do not split into 3 groups"):
        nn.GroupNorm(3, 4)
    with pytest.raises(ValueError, match=r"fold: columns are \[N, C \* 4, 9\]"):
        nn.Fold([4, 4], 2)(paddle.ones([1, 4, 8]))
    with pytest.raises(ValueError, match="padding is one number or 4"):
        nn.Pad2D([1, 2])
    with pytest.raises(ValueError, match="maxout: 5 channels"):
        nn.Maxout(2)(paddle.ones([1, 5]))


def test_decoding_step_by_step_with_caches_equals_decoding_at_once() -> None:
    """A decoder fed one position at a time gives what it gives for all positions under a causal mask."""
    paddle.seed(6)
    block = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0)
    decoder = nn.TransformerDecoder(block, 2)
    memory, target = paddle.randn([2, 4, 8]), paddle.randn([2, 3, 8])
    whole = decoder(target, memory, nn.Transformer.generate_square_subsequent_mask(3))
    caches = decoder.gen_cache(memory)
    for i in range(3):
        step, caches = decoder(target[:, i : i + 1], memory, None, None, caches)
        assert np.allclose(step.numpy()[:, 0], whole.numpy()[:, i], atol=1e-5)


def test_stacked_layers_start_with_parameters_of_their_own() -> None:
    """The layers of an encoder have equal shapes and different weights."""
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)
    first, second = (layer.linear1.weight.numpy() for layer in encoder.layers)
    assert first.shape == second.shape
    assert (first != second).any()


def test_dropout_in_evaluation_is_a_copy():
    x = paddle.ones([3])
    y = nn.functional.dropout(x, 0.5, training=False)
    y += 1.0
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert nn.functional.dropout(x, 0.0) is x


def test_windows_of_padding_same_are_not_dilated() -> None:
    """Paddle takes the dilation as 1 there; a recorded sum of squares of paddlepaddle 3.3.1 says so, too."""
    x = paddle.to_tensor(np.random.default_rng(21).standard_normal((1, 2, 9, 9)).astype("float32"))
    w = paddle.to_tensor(np.random.default_rng(11).standard_normal((3, 2, 3, 3)).astype("float32"))
    F = paddle.nn.functional
    dilated = F.conv2d(x, w, stride=2, padding="same", dilation=2)
    np.testing.assert_allclose(float((dilated**2).sum()), 562.5685, rtol=1e-6)
    plain = F.conv2d(x, w, stride=2, padding="SAME")
    np.testing.assert_array_equal(dilated.numpy(), plain.numpy())
    turned = w.transpose([1, 0, 2, 3])
    np.testing.assert_array_equal(
        F.conv2d_transpose(x, turned, stride=2, padding="same", dilation=2).numpy(),
        F.conv2d_transpose(x, turned, stride=2, padding="same").numpy(),
    )


@pytest.mark.parametrize("layer", [paddle.nn.BatchNorm2D, paddle.nn.InstanceNorm2D])
def test_an_unknown_layout_is_named(layer):
    with pytest.raises(ValueError, match=r"data_format should be one of .*NHWC.*, got 'X'"):
        layer(3, data_format="X")(paddle.ones([1, 3, 2, 2]))
