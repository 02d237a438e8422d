"""Operators over images and axes whose sizes a spec leaves open: one program gives what eager code gives for each."""

import re

import numpy as np
import pytest

import argosy as paddle
from argosy.nn import functional as F

SIZES = [(5, 4), (8, 9), (3, 3), (1, 7)]

IMAGES = {
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "nearest half": lambda x: F.interpolate(x, scale_factor=[1.5, 0.5]),
    "nearest corners": lambda x: F.interpolate(x, size=[6, 5], align_corners=True),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2.5, mode="bilinear"),
    "bilinear size": lambda x: F.interpolate(x, size=[7, 3], mode="bilinear", align_corners=True),
    "bilinear indices": lambda x: F.interpolate(x, size=[7, 1], mode="bilinear", align_mode=1),
    "bicubic": lambda x: F.interpolate(x, size=[6, 11], mode="bicubic"),
    "area": lambda x: F.interpolate(x, size=[2, 4], mode="area"),
    "like": lambda x: F.interpolate(x[:, :, ::2, ::2], size=x.shape[2:], mode="bilinear"),
    "channels last": lambda x: F.interpolate(x.transpose([0, 2, 3, 1]), scale_factor=2, data_format="NHWC"),
    "max ceil": lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True),
    "max ceil padded": lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    "mean ceil": lambda x: F.avg_pool2d(x, 2, 2, ceil_mode=True),
    "mean ceil padded": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, exclusive=False),
    "max same": lambda x: F.max_pool2d(x, 2, 2, "SAME"),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, [2, 3]),
    "conv same": lambda x: F.conv2d(x, paddle.ones([3, 2, 3, 3]), stride=2, padding="SAME"),
    "conv same even": lambda x: F.conv2d(x, paddle.ones([3, 2, 2, 4]), padding="SAME"),
    "diagonal": lambda x: paddle.diagonal(x, 0, 2, 3),
    "diagonal below": lambda x: paddle.diagonal(x, -1, 2, 3),
    "backwards": lambda x: x[:, :, :, ::-2],
    "backwards from": lambda x: x[:, :, :, 2::-1],
    "backwards to": lambda x: x[:, :, :, -1:-3:-1],
    "backwards short": lambda x: x[:, :, :, 100:0:-2],
}


def image(height, width):
    values = np.random.default_rng(height).standard_normal((2, 2, height, width))
    return paddle.to_tensor(values.astype(np.float32), stop_gradient=False)


@pytest.mark.parametrize("name", IMAGES)
def test_images_of_any_size(name):
    function = IMAGES[name]
    spec = [paddle.static.InputSpec([None, 2, None, None], "float32")]
    static = paddle.jit.to_static(function, input_spec=spec, full_graph=True)
    for height, width in SIZES:
        results = []
        for f in (static, function):
            x = image(height, width)
            y = f(x)
            (y * y).sum().backward()
            results.append((y.numpy(), x.grad.numpy()))
        assert results[0][0].shape == results[1][0].shape
        for got, expected in zip(*results, strict=True):
            np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)
    assert len(static.compiled) <= 2


@pytest.mark.parametrize(
    ("function", "missing"),
    [
        (
            lambda x: F.interpolate(x, size=[2, 2], mode="bilinear", antialias=True),
            "antialias along an axis of symbolic",
        ),
        (lambda x: F.interpolate(x, scale_factor=2**0.5), "scale_factor 1.414"),
        (lambda x: F.adaptive_max_pool2d(x, 2), "several outputs along an axis of symbolic size"),
        (lambda x: paddle.stack([row * len(x) for row in x.unbind(2)]), "no number of slices"),
        (lambda x: x * float(x.shape[2]), "real number"),
    ],
)
def test_what_has_no_formula_for_open_sizes_is_compiled_for_each(function, missing):
    """A warning names it, once."""
    spec = [paddle.static.InputSpec([None, 2, None, None], "float32")]
    static = paddle.jit.to_static(function, input_spec=spec, full_graph=True)
    with pytest.warns(UserWarning, match=missing):
        got = static(image(5, 5))
    np.testing.assert_allclose(got.numpy(), function(image(5, 5)).numpy(), rtol=1e-5, atol=1e-6)
    for n in (4, 5, 4):
        np.testing.assert_allclose(static(image(n, n)).numpy(), function(image(n, n)).numpy(), rtol=1e-5, atol=1e-6)
    assert len(static.compiled) == 2


@pytest.mark.parametrize(
    ("function", "none"),
    [
        (lambda x: x[:, 0:1].squeeze(1), [2, 0, 3]),
        (lambda x: x[:, :1].squeeze(), [2, 0, 3]),
        (lambda x: x[1:2].squeeze([0, 2]), [1, 2, 3]),
    ],
)
def test_an_axis_of_at_most_one_is_squeezed(function, none):
    """What is cut to one element is one, whatever the open size was; cut to none it is as eagerly."""
    spec = [paddle.static.InputSpec([None, None, 3], "float32")]
    static = paddle.jit.to_static(function, full_graph=True, input_spec=spec)
    for n in (4, 1, 2):
        results = []
        for f in (static, function):
            x = paddle.rand([2, n, 3])
            x.set_value(np.arange(6.0 * n, dtype="float32").reshape(2, n, 3))
            x.stop_gradient = False
            y = f(x)
            (y * y).sum().backward()
            results.append((y.numpy(), x.grad.numpy()))
        for got, expected in zip(*results, strict=True):
            np.testing.assert_array_equal(got, expected)
    assert static(paddle.rand(none)).shape == function(paddle.rand(none)).shape


@pytest.mark.parametrize(
    ("function", "fits", "missing"),
    [
        (lambda x: x[:, :, 2], 3, r"prim\.slice.*outside an axis of 2"),
        (lambda x: x[:, :, -3], 3, r"prim\.slice.*outside an axis of 2"),
        (lambda x: x[:, :, 2:3][:, :, 0], 3, r"prim\.slice.*outside an axis of 0"),
        (lambda x: F.conv2d(x, paddle.ones([1, 2, 4, 1])), 3, r"prim\.conv.*not negative, got -1"),
    ],
    ids=["index", "from the end", "part", "window"],
)
def test_what_lies_beyond_an_open_size_is_refused(function, fits, missing, tmp_path):
    """Captured code refuses it as eager code does. Exported code for all sizes would read what is not there; nothing is
    read, and the operation and its line are named."""
    spec = [paddle.static.InputSpec([None, 2, None, None], "float32")]
    static = paddle.jit.to_static(function, input_spec=spec, full_graph=True)
    paddle.jit.save(function, tmp_path / "exported", input_spec=spec)
    exported = paddle.jit.load(tmp_path / "exported")
    for n in (fits + 1, fits):
        for captured in (static, exported):
            np.testing.assert_allclose(captured(image(n, n)).numpy(), function(image(n, n)).numpy(), rtol=1e-6)
    with pytest.raises(ValueError, match=missing) as refused:
        exported(image(2, 2))
    assert "no meaning at the sizes" in str(refused.value)
    assert "test_jit_open_sizes.py" in str(refused.value)
    with pytest.raises(ValueError) as eagerly:  # noqa: PT011
        function(image(2, 2))
    with pytest.raises(ValueError) as captured:  # noqa: PT011
        static(image(2, 2))
    assert type(captured.value) is type(eagerly.value)


@pytest.mark.parametrize(
    "function", [lambda x: x.squeeze(), lambda x: x.squeeze(0) * 2, lambda x: x[1:].squeeze([0, 1])]
)
def test_an_exported_squeeze_refuses_the_size_at_which_an_open_axis_would_go(function, tmp_path):
    """Eagerly, and captured, the axis goes. An exported program has as many axes for all sizes: it names the operator
    and the line."""
    spec = [paddle.static.InputSpec([None, 1, 3], "float32")]
    static = paddle.jit.to_static(function, input_spec=spec, full_graph=True)
    paddle.jit.save(function, tmp_path / "exported", input_spec=spec)
    exported = paddle.jit.load(tmp_path / "exported")
    for n in (3, 4, 3):
        x = paddle.rand([n, 1, 3])
        for captured in (static, exported):
            np.testing.assert_allclose(captured(x).numpy(), function(x).numpy())
    refused = []
    for n in (1, 2):
        x = paddle.rand([n, 1, 3])
        np.testing.assert_allclose(static(x).numpy(), function(x).numpy())
        try:
            np.testing.assert_allclose(exported(x).numpy(), function(x).numpy())
        except ValueError as error:
            refused.append(str(error))
    assert len(refused) == 1
    assert re.search(r"squeeze, .* is 0 in this call; it has to be one or more, at .*test_jit_open_sizes", refused[0])


@pytest.mark.parametrize("function", [lambda x, y: x * y, lambda x, y: x + y, lambda x, y: x & y])
def test_booleans_multiply_and_add_as_they_do_eagerly(function):
    x, y = paddle.to_tensor([True, True, False, False]), paddle.to_tensor([True, False, True, False])
    made = paddle.jit.to_static(function, full_graph=True)(x, y)
    assert made.dtype == paddle.bool
    assert made.tolist() == function(x, y).tolist()


ONE_AXIS = {
    "inner part": lambda x: x[5:-3],
    "rest": lambda x: x[1:],
    "extremum of a part": lambda x: x[5:-3].amax(),
    "quantile": lambda x: paddle.quantile(x, 0.5),
    "median": lambda x: paddle.median(x),
    "irfft": lambda x: paddle.fft.irfft(x),
    "argmax": lambda x: paddle.argmax(x),
    "argmin": lambda x: paddle.argmin(x, 0),
    "amax": lambda x: paddle.amax(x),
    "min": lambda x: paddle.min(x, 0),
}


def answer(function, x):
    """What a function gives, or the class with which it refuses."""
    try:
        return function(x)
    except Exception as error:  # noqa: BLE001  (whichever it is)
        return type(error)


@pytest.mark.parametrize("backend", ["CINN", "reference"])
@pytest.mark.parametrize("name", ONE_AXIS)
def test_captured_code_answers_and_refuses_as_eager_code_at_any_size(name, backend):
    function = ONE_AXIS[name]
    static = paddle.jit.to_static(function, input_spec=[paddle.static.InputSpec([None])], backend=backend)
    for n in (9, 0, 1, 2, 7, 8, 11):
        x = paddle.arange(float(n))
        got, expected = answer(static, x), answer(function, x)
        if isinstance(expected, type):
            assert got is expected
        else:
            np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_a_size_that_an_operator_needs_is_checked_at_the_call():
    """Calls of that size have one program, whatever the other open sizes are; another size is refused as eagerly."""

    def function(x):
        return x.reshape([x.shape[0], 3, 3])

    static = paddle.jit.to_static(function, input_spec=[paddle.static.InputSpec([None, None])])
    for n in (5, 4, 7):
        assert static(paddle.ones([n, 9])).shape == [n, 3, 3]
    assert len(static.compiled) == 1
    with pytest.raises(ValueError, match=r"\[4, 8\].* has 32 elements, \[4, 3, 3\] has 36"):
        static(paddle.ones([4, 8]))
    assert static(paddle.ones([0, 9])).shape == [0, 3, 3]
    assert static(paddle.ones([6, 9])).shape == [6, 3, 3]
    assert len(static.compiled) == 2


def test_choices_between_inputs_of_open_sizes_have_these_in_common(tmp_path):
    """Both tensors that `where` chooses from are inputs; those that never fit are refused as eagerly."""
    specs = [paddle.static.InputSpec([None, None], "bool"), paddle.static.InputSpec([None, None])]
    static = paddle.jit.to_static(lambda which, x: paddle.where(which, x, -x), input_spec=specs, full_graph=True)
    paddle.jit.save(static, tmp_path / "choice")
    which, x = paddle.to_tensor([[True, False, True]]), paddle.to_tensor([[1.0, 2.0, 3.0]])
    assert paddle.jit.load(tmp_path / "choice")(which, x).tolist() == [[1.0, -2.0, 3.0]]
    captured = paddle.jit.to_static(lambda x, y: paddle.where(x > 0, x, y), full_graph=True)
    with pytest.raises(ValueError, match=r"where: .* do not broadcast together \[given .*, y=float32 \[3, 5\]\]"):
        captured(paddle.ones([3, 4]), paddle.ones([3, 5]))
