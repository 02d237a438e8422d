"""einops on argosy's tensors: what its documentation shows, against its numpy back end."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

einops = pytest.importorskip("einops")
X = np.random.default_rng(0).standard_normal((2, 6, 4)).astype(np.float32)


@pytest.mark.parametrize(
    ("operation", "pattern", "sizes"),
    [
        ("rearrange", "a b c -> c (a b)", {}),
        ("rearrange", "a (h w) c -> a h w c", {"h": 2}),
        ("repeat", "a b c -> a b c d", {"d": 3}),
        ("repeat", "a b c -> a (b k) c", {"k": 2}),
    ],
)
def test_shapes_change_as_in_numpy(as_paddle, operation, pattern, sizes):
    """rearrange and repeat move elements as they do for numpy."""
    function = getattr(einops, operation)
    made = function(as_paddle.to_tensor(X), pattern, **sizes)
    np.testing.assert_array_equal(made.numpy(), function(X, pattern, **sizes))


@pytest.mark.parametrize("by", ["min", "max", "sum", "mean", "prod"])
def test_reductions_are_numpys(as_paddle, by):
    """reduce over composed axes gives numpy's values, and gradients flow."""
    x = as_paddle.to_tensor(X, stop_gradient=False)
    made = einops.reduce(x, "a (b k) c -> b c", by, k=3)
    np.testing.assert_allclose(made.numpy(), einops.reduce(X, "a (b k) c -> b c", by, k=3), rtol=1e-5)
    made.sum().backward()
    assert x.grad.shape == [2, 6, 4]


def test_einsum_pack_and_unpack(as_paddle):
    """einsum, pack and unpack go there and back."""
    x = as_paddle.to_tensor(X)
    made = einops.einsum(x, x, "a b c, a d c -> a b d")
    np.testing.assert_allclose(made.numpy(), np.einsum("abc,adc->abd", X, X), rtol=1e-4, atol=1e-5)
    packed, shapes = einops.pack([x, x[:, 0]], "a * c")
    assert packed.shape == [2, 7, 4]
    first, second = einops.unpack(packed, shapes, "a * c")
    np.testing.assert_array_equal(first.numpy(), X)
    np.testing.assert_array_equal(second.numpy(), X[:, 0])


def test_layers_train_within_a_model(as_paddle):
    """The layers of einops.layers.paddle are layers, EinMix with parameters of its own; captured, they compute the
    same.
    """
    layers = pytest.importorskip("einops.layers.paddle")
    paddle = as_paddle
    mix = layers.EinMix("n s c -> n s d", weight_shape="c d", bias_shape="d", c=4, d=3)
    model = paddle.nn.Sequential(mix, layers.Rearrange("n s d -> n (s d)"), layers.Reduce("n d -> n", "mean"))
    x = paddle.to_tensor(X)
    expected = model(x)
    expected.sum().backward()
    assert mix.weight.grad.shape == mix.weight.shape
    captured = paddle.jit.to_static(lambda x: model(x), full_graph=True, backend="reference")
    np.testing.assert_allclose(captured(x).numpy(), expected.numpy(), rtol=1e-5)


def test_its_own_suite(tmp_path):
    """The tests of operations, layers and packing that einops brings along, on its Paddle back end."""
    here = Path(__file__).parent
    tests = Path(einops.__file__).parent / "tests"
    if not tests.is_dir():
        pytest.skip("this einops was installed without its tests")
    own = [str(tests / f"test_{name}.py") for name in ("ops", "layers", "packing", "einsum")]
    flags = ["-q", "-p", "argosy.as_paddle", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path)]
    environment = {**os.environ, "EINOPS_TEST_BACKENDS": "numpy,paddle", "PYTHONPATH": str(here)}
    command = [sys.executable, "-m", "pytest", *flags, *own]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-3000:]
    assert " passed" in ended.stdout
