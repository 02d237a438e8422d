"""Convolution, pooling and batch normalisation layers, and a small network of them trained compiled."""

import math

import numpy as np
import pytest

import argosy as paddle

nn = paddle.nn


def _x(*shape):
    return paddle.to_tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize(
    ("image", "window", "expected"),
    [
        ([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 2, 2], [0, 0, 2, 3]], (2, 2, 0),
         [[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]]),
        ([[2, 2, 2, 1], [2, 2, 2, 1], [1, 2, 2, 2], [1, 1, 1, 1]], (3, 2, 1),
         [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("compiled", [False, True])
def test_of_equal_maxima_the_first_has_the_gradient(image, window, expected, compiled):
    """As the wheel has it (its results)."""
    x = paddle.to_tensor(np.array([[image]], np.float32), stop_gradient=False)

    def gradient(x):
        return paddle.grad([nn.functional.max_pool2d(x, *window).sum()], [x])[0]

    step = paddle.jit.to_static(gradient, full_graph=True) if compiled else gradient
    np.testing.assert_array_equal(step(x).numpy()[0, 0], expected)


def test_a_maximum_of_a_window_with_nan_is_nan():
    x = paddle.to_tensor(np.array([[[[1, np.nan, 0, -np.inf], [np.nan, 1, -np.inf, -np.inf]]]], np.float32))
    np.testing.assert_array_equal(nn.functional.max_pool2d(x, 2).numpy()[0, 0], [[np.nan, 0]])
    np.testing.assert_array_equal(nn.functional.max_pool2d(x[:, :, :, 3:], [2, 1]).numpy()[0, 0], [[-np.inf]])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize(
    ("image", "size", "expected"),
    [
        ([[1, 1, 0, 1], [1, 1, 2, 2], [0, 0, 2, 2]], 2, [[1, 0, 0, 0], [3, 0, 6, 0], [0, 0, 0, 0]]),
        ([[0, 1], [1, 0]], 1, [[0, 1], [0, 0]]),
        ([[1] * 3] * 3, 2, [[1, 2, 0], [3, 4, 0], [0, 0, 0]]),
    ],
)
def test_of_equal_maxima_of_adaptive_windows_the_first_has_the_gradient(image, size, expected, mask, compiled):
    """The first in row-major order, as the wheel has it (its results); the mask names the same."""
    x = paddle.to_tensor(np.array([[image]], np.float32), stop_gradient=False)

    def gradient(x):
        found = nn.functional.adaptive_max_pool2d(x, size, mask)
        best = found[0] if mask else found
        weights = paddle.arange(1, size * size + 1).astype("float32").reshape([size, size])
        return paddle.grad([(best * weights).sum()], [x])[0], found[1] if mask else best

    step = paddle.jit.to_static(gradient, full_graph=True) if compiled else gradient
    slope, places = step(x)
    np.testing.assert_array_equal(slope.numpy()[0, 0], expected)
    if mask:
        assert set(places.numpy().ravel().tolist()) == set(np.flatnonzero(expected).tolist())


def test_the_maximum_of_an_adaptive_window_with_nan_is_nan():
    """Its place is that of the first NaN, and so is the gradient."""
    x = paddle.to_tensor(np.array([[[1, np.nan, 0, 2, np.nan]]], np.float32), stop_gradient=False)
    best, places = nn.functional.adaptive_max_pool1d(x, 2, True)
    np.testing.assert_array_equal(best.numpy()[0, 0], [np.nan, np.nan])
    assert places.numpy().ravel().tolist() == [1, 4]
    best.sum().backward()
    assert x.grad.numpy().ravel().tolist() == [0, 1, 0, 0, 1]


def test_batch_norm_standardises_and_keeps_statistics():
    """Training uses the batch and moves the running statistics (old weighs 0.9, variance biased); eval uses those."""
    layer = nn.BatchNorm2D(3)
    x = _x(4, 3, 5, 5)
    mean, var = x.numpy().mean((0, 2, 3)), x.numpy().var((0, 2, 3))
    y = layer(x).numpy()
    np.testing.assert_allclose(y.mean((0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(layer._mean.numpy(), 0.1 * mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(layer._variance.numpy(), 0.9 + 0.1 * var, rtol=1e-4)
    layer.eval()
    before = layer._mean.numpy()
    expected = (x.numpy() - before[:, None, None]) / np.sqrt(layer._variance.numpy()[:, None, None] + 1e-5)
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(layer._mean.numpy(), before)


def test_names_are_paddles():
    """Layers are named after their class in snake case; running statistics are parameters w_1 and w_2."""
    layer = nn.BatchNorm1D(2)
    assert layer.full_name().startswith("batch_norm1d_")
    assert [p.name.rpartition(".")[2] for p in layer.parameters()] == ["w_0", "b_0", "w_1", "w_2"]
    assert layer._mean.stop_gradient
    assert list(layer.state_dict()) == ["weight", "bias", "_mean", "_variance"]


def test_convolutions_have_paddles_shapes_and_initial_spread():
    """Weight [out, in / groups, *kernel], normal with variance 2 / (in * kernel); bad sizes are named."""
    layer = nn.Conv2D(4, 64, 3, stride=2, padding=1, groups=2)
    assert layer.weight.shape == [64, 2, 3, 3]
    assert layer(_x(2, 4, 8, 8)).shape == [2, 64, 4, 4]
    assert layer.weight.numpy().std() == pytest.approx(math.sqrt(2 / (4 * 9)), rel=0.1)
    assert nn.Conv1D(2, 3, 3, bias_attr=False)(_x(1, 2, 8)).shape == [1, 3, 6]
    with pytest.raises(ValueError, match="3 groups"):
        nn.Conv2D(4, 6, 3, groups=3)
    with pytest.raises(ValueError, match="needs 2 numbers"):
        nn.Conv2D(4, 6, [3])


@pytest.mark.parametrize("backend", ["reference", "CINN"])
def test_a_small_network_trains_compiled_as_eager(backend):
    """Convolution, batch norm, pooling and a head: the captured step gives eager's losses and running statistics."""

    def make():
        paddle.seed(3)
        model = nn.Sequential(
            nn.Conv2D(1, 4, 3, padding=1), nn.BatchNorm2D(4), nn.ReLU(), nn.MaxPool2D(2), nn.AdaptiveAvgPool2D(2),
            nn.Flatten(), nn.Linear(16, 3),
        )  # fmt: skip
        optimizer = paddle.optimizer.Momentum(0.05, parameters=model.parameters())

        def step(x, y):
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return model, step

    x, y = _x(6, 1, 8, 8), paddle.to_tensor(np.arange(6) % 3)
    eager_model, eager = make()
    model, step = make()
    step = paddle.jit.to_static(step, full_graph=True, backend=backend)
    for _ in range(3):
        assert float(step(x, y)) == pytest.approx(float(eager(x, y)), rel=1e-4)
    np.testing.assert_allclose(model[1]._variance.numpy(), eager_model[1]._variance.numpy(), rtol=1e-4)


SETTINGS = {
    "padding": (-1, [-1, 1], [1, 2, 3], "similar", [[0, 0], [0, 0], [1]], [[1, 1], 1]),
    "data_format": ("NCL", "CHWN"),
    "stride": ([1, 2, 3],),
    "dilation": ([1, 2, 3],),
}


@pytest.mark.parametrize("layer", ["Conv2D", "Conv2DTranspose"])
@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_fit_no_input_are_refused_when_a_convolution_is_made(layer, name):
    """The error names the layer and the argument; so do those of embeddings without rows or columns."""
    for wrong in SETTINGS[name]:
        with pytest.raises(ValueError, match=rf"{layer}\(\): argument '{name}' should .*, got "):
            getattr(paddle.nn, layer)(3, 4, 3, **{name: wrong})
    for right in (0, 1, [1, 2], [1, 2, 3, 4], [[0, 0], [0, 0], [1, 1], [2, 1]], "same", "VALID"):
        getattr(paddle.nn, layer)(3, 4, 3, padding=right)


@pytest.mark.parametrize(
    ("sizes", "name"), [((0, 4), "num_embeddings"), ((-2, 4), "num_embeddings"), ((3, 0), "embedding_dim")]
)
def test_embeddings_without_rows_or_columns_are_refused(sizes, name):
    """As in Paddle."""
    with pytest.raises(ValueError, match=rf"Embedding\(\): argument '{name}' should be positive"):
        paddle.nn.Embedding(*sizes)


@pytest.mark.parametrize(("sizes", "window", "padding", "expected"), [
    ([3, 3], [4, 4], 0, [0, 0]), ([3, 5], [4, 4], 0, [0, 2]), ([0, 3], [1, 1], 0, [0, 3]), ([2, 3], [5, 2], 1, [0, 4]),
])  # fmt: skip
@pytest.mark.parametrize("captured", [False, True])
def test_an_axis_one_short_of_a_window_gives_none(sizes, window, padding, expected, captured):
    """As in paddlepaddle 3.3.1; gradients are zero where nothing is left."""
    x = paddle.ones([2, 1, *sizes])
    weight, bias = paddle.ones([3, 1, *window]), paddle.ones([3])
    x.stop_gradient = weight.stop_gradient = False

    def run(x, weight, bias):
        y = paddle.nn.functional.conv2d(x, weight, bias, padding=padding)
        return y, *paddle.grad(y.sum(), [x, weight])

    y, *gradients = (paddle.jit.to_static(run, full_graph=True) if captured else run)(x, weight, bias)
    assert y.shape == [2, 3, *expected]
    assert [g.shape for g in gradients] == [x.shape, weight.shape]
    assert all(not g.numpy().any() for g in gradients)
    with pytest.raises(ValueError, match="does not fit a padded axis"):
        paddle.nn.functional.conv2d(x, paddle.ones([3, 1, sizes[0] + 2 * padding + 2, 1]), padding=padding)
