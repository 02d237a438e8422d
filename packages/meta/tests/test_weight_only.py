"""Linear maps with quantised weights: `argosy.nn.quant`."""

import numpy as np
import pytest

import argosy as paddle
from argosy.nn.quant import llm_int8_linear, weight_dequantize, weight_only_linear, weight_quantize

RNG = np.random.default_rng(0)
ALGORITHMS = [("weight_only_int8", "int8", 127), ("weight_only_int4", "int4", 7)]


def tensor(*shape):
    return paddle.to_tensor(RNG.standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize("group_size", [-1, 64, 128])
@pytest.mark.parametrize(("algo", "dtype", "largest"), ALGORITHMS)
def test_a_weight_comes_back_within_half_a_step(algo, dtype, largest, group_size):
    """Steps are the largest magnitude of an output's inputs, or of a group of them, over the largest integer."""
    x = tensor(256, 12)
    weight, scale = weight_quantize(x, algo, group_size=group_size)
    assert list(weight.shape) == [12 if dtype == "int8" else 6, 256]
    assert list(scale.shape) == ([12] if group_size == -1 else [256 // group_size, 12])
    back = weight_dequantize(weight, scale, algo, group_size=group_size).numpy()
    groups = x.numpy().reshape(1 if group_size == -1 else 256 // group_size, -1, 12)
    step = np.abs(groups).max(1, keepdims=True) / largest
    np.testing.assert_allclose(scale.numpy().reshape(step.shape), step, rtol=1e-6)
    assert (np.abs(groups - back.reshape(groups.shape)) <= step * 0.5001).all()


@pytest.mark.parametrize("group_size", [-1, 64])
@pytest.mark.parametrize(("algo", "dtype", "largest"), ALGORITHMS)
@pytest.mark.parametrize("shape", [(1, 128), (2, 5, 128)])
def test_weight_only_linear_multiplies_by_the_dequantised_weight(algo, dtype, largest, group_size, shape):
    """Eagerly and captured, for one row and for several."""
    weight, scale = weight_quantize(tensor(128, 20), algo, group_size=group_size)
    x, bias = tensor(*shape), tensor(20)
    want = x.numpy() @ weight_dequantize(weight, scale, algo, group_size=group_size).numpy() + bias.numpy()

    def linear(x, weight, bias, scale):
        return weight_only_linear(x, weight, bias, scale, dtype, group_size=group_size)

    for function in (linear, paddle.jit.to_static(linear)):
        np.testing.assert_allclose(function(x, weight, bias, scale).numpy(), want, rtol=1e-4, atol=1e-4)


def test_outliers_of_llm_int8_are_multiplied_as_floats():
    """With one feature beyond the threshold the error stays that of the others' rounding."""
    x, w = tensor(4, 96), tensor(96, 10)
    values = x.numpy() * 0.5
    values[1, 7] = 1000.0
    weight, scale = weight_quantize(w, "llm.int8")
    exact = values @ weight_dequantize(weight, scale, "llm.int8").numpy()
    got = llm_int8_linear(paddle.to_tensor(values), weight, None, scale).numpy()
    assert np.abs(got - exact).max() < 0.2
    crude = llm_int8_linear(paddle.to_tensor(values), weight, None, scale, threshold=1e9).numpy()
    assert np.abs(crude - exact).max() > 1.0


def test_what_is_wrong_is_named():
    x = tensor(96, 10)
    with pytest.raises(ValueError, match="'int3'"):
        weight_quantize(x, "int3")
    with pytest.raises(ValueError, match="96 inputs are not a multiple of the group size 64"):
        weight_quantize(x, group_size=64)
    weight, scale = weight_quantize(x)
    with pytest.raises(ValueError, match="weight_scale is missing"):
        weight_only_linear(tensor(2, 96), weight)
    with pytest.raises(ValueError, match="has not the features"):
        weight_only_linear(tensor(2, 95), weight, None, scale)
