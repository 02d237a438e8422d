"""Operators against formulas written in numpy: the decomposition could agree with itself and still be wrong."""

import math

import ml_dtypes
import numpy as np
import pytest

from argosy_hwadapt import device
from argosy_phi_ops.capture.tracer import Tracer
from argosy_phi_ops.compiler import get_compiler
from argosy_phi_ops.declare.composition import find_composition
from argosy_phi_ops.declare.operator import get_operator
from argosy_phi_ops.errors import AxisError, DTypeError, OperatorError, ShapeError
from argosy_pir.passes import PassManager
from argosy_pir.types import TensorType
from argosy_tensorcore.tensor import Tensor

erf = np.vectorize(math.erf, otypes=[float])
lgamma = np.vectorize(math.lgamma, otypes=[float])


def as_tensors(value):
    if isinstance(value, np.ndarray):
        return Tensor(value)
    return [as_tensors(item) for item in value] if isinstance(value, list) else value


def decomposed(name, *args):
    """What the operator's program of primitives gives."""
    with Tracer(name) as tracer:
        given = [tracer.input(TensorType(a.shape, a.dtype.name)) if isinstance(a, np.ndarray) else a for a in args]
        captured = tracer.finish([get_operator(name)(*given)])
    arrays = [Tensor(a).payload for a in args if isinstance(a, np.ndarray)]
    return get_compiler("reference").compile(captured.program, device("cpu")).run(arrays, [])[0].array()


def logistic(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1, dtype=None):
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def axes(axis):
    return tuple(axis) if isinstance(axis, list) else axis


# Every sample of an operator is held against the function here, called with the same arguments.
FORMULAS = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2, "log10": np.log10,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "square": np.square, "reciprocal": np.reciprocal,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "sigmoid": logistic, "erf": erf, "lgamma": lgamma, "abs": np.abs, "neg": np.negative, "sign": np.sign,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "frac": lambda x: x - np.trunc(x),
    "round": lambda x, decimals=0: np.round(x, decimals), "deg2rad": np.deg2rad, "rad2deg": np.rad2deg,
    "sinc": np.sinc, "isfinite": np.isfinite, "isnan": np.isnan, "isinf": np.isinf, "nan_to_num": np.nan_to_num,
    "real": np.real, "imag": np.imag, "conj": np.conj, "angle": np.angle,
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide, "pow": np.power,
    "floor_divide": np.floor_divide, "remainder": np.remainder, "maximum": np.maximum, "minimum": np.minimum,
    "fmax": np.fmax, "fmin": np.fmin, "atan2": np.arctan2, "hypot": np.hypot, "logaddexp": np.logaddexp,
    "copysign": np.copysign, "heaviside": np.heaviside, "lerp": lambda x, y, weight: x + weight * (y - x),
    "clip": lambda x, min=None, max=None: np.clip(x, min, max),
    "equal": np.equal, "not_equal": np.not_equal, "less_than": np.less, "less_equal": np.less_equal,
    "greater_than": np.greater, "greater_equal": np.greater_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor, "logical_not": np.logical_not,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert, "bitwise_left_shift": np.left_shift, "isclose": np.isclose, "allclose": np.allclose,
    "relu": lambda x: np.maximum(x, 0), "relu6": lambda x: np.clip(x, 0, 6), "silu": lambda x: x * logistic(x),
    "gelu": lambda x, approximate=False: x * (1 + np.tanh((x + 0.044715 * x**3) * (2 / np.pi) ** 0.5)) / 2
    if approximate else x * (1 + erf(x / 2**0.5)) / 2,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x), "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)), "softsign": lambda x: x / (1 + abs(x)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6, "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "log_sigmoid": lambda x: np.log(logistic(x)), "tanhshrink": lambda x: x - np.tanh(x),
    "hardshrink": lambda x: np.where(abs(x) > 0.5, x, 0), "softmax": softmax,
    "log_softmax": lambda x, axis=-1: np.log(softmax(x, axis)),
    "argmax": lambda x, axis=None, keepdim=False, dtype=None: np.argmax(x, axis, keepdims=keepdim),
    "argmin": lambda x, axis=None, keepdim=False, dtype=None: np.argmin(x, axis, keepdims=keepdim),
    "cumsum": np.cumsum, "cumprod": np.cumprod, "transpose": np.transpose, "moveaxis": np.moveaxis,
    "swapaxes": lambda x, perm, axis1=None: x.transpose(perm) if axis1 is None else np.swapaxes(x, perm, axis1),
    "tile": np.tile, "flip": np.flip,
    "roll": np.roll, "repeat_interleave": np.repeat, "where": np.where, "tril": np.tril, "triu": np.triu,
    "diagonal": np.diagonal, "concat": lambda x, axis=0: np.concatenate(x, axis), "stack": np.stack,
    "trace": lambda x, offset=0, axis1=0, axis2=1: np.trace(x, offset, axis1, axis2),
    "matmul": lambda x, y, transpose_x=False, transpose_y=False: np.matmul(
        x.swapaxes(-1, -2) if transpose_x else x, y.swapaxes(-1, -2) if transpose_y else y),
    "bmm": np.matmul, "mm": np.matmul, "mv": np.matmul, "inner": np.inner, "outer": np.outer, "kron": np.kron,
    "tensordot": np.tensordot, "cross": lambda x, y, axis=-1: np.cross(x, y, axis=axis),
    "einsum": lambda equation, operands: np.einsum(equation, *operands), "det": np.linalg.det, "inv": np.linalg.inv,
    "slogdet": lambda x: np.stack(np.linalg.slogdet(x)), "matrix_power": np.linalg.matrix_power, "pinv": np.linalg.pinv,
    "linear": lambda x, w, b=0: x @ w + b,
    "gather": lambda x, i, axis=0: np.take(x, i, axis), "index_select": lambda x, i, axis=0: np.take(x, i, axis),
    "gather_nd": lambda x, i: x[tuple(np.moveaxis(i, -1, 0))],
    "sort": lambda x, axis=-1, descending=False: -np.sort(-x, axis) if descending else np.sort(x, axis),
    "eye": lambda n, m=None, dtype=None: np.eye(n, m), "arange": np.arange,
    "linspace": lambda start, stop, num, dtype=None: np.linspace(start, stop, num),
    "count_nonzero": lambda x, axis=None, keepdim=False: np.count_nonzero(
        x, axes(axis), keepdims=keepdim),
}  # fmt: skip
FORMULAS |= {
    name: lambda x, axis=None, keepdim=False, dtype=None, f=function: f(x, axis=axes(axis), keepdims=keepdim)
    for name, function in {
        "sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min, "amax": np.max, "amin": np.min,
        "all": np.all, "any": np.any, "nansum": np.nansum, "nanmean": np.nanmean,
    }.items()
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_operator_equals_its_formula(name):
    op = get_operator(name)
    for sample in op.sampler(np.random.default_rng(1)):
        result = op(*map(as_tensors, sample.args), **sample.kwargs).numpy()
        if name == "mean" and result.dtype.kind == "i":
            continue  # integers stay integers
        if name in ("max", "min", "amax", "amin") and not result.size:
            continue
        with np.errstate(all="ignore"):
            expected = FORMULAS[name](*sample.args, **sample.kwargs)
        assert result.shape == np.shape(expected)
        tolerance = 1e-11 if result.dtype in (np.float64, np.complex128) else 2e-6
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


def call(name, *args, **kwargs):
    return get_operator(name)(*map(as_tensors, args), **kwargs).numpy()


def test_cross_entropy_of_hard_labels():
    rng = np.random.default_rng(0)
    logits, label, weight = rng.standard_normal((6, 4)), np.array([0, 3, 1, 2, 3, 1]), rng.uniform(1, 2, 4)
    picked = -np.log(softmax(logits))[np.arange(6), label]
    assert call("cross_entropy", logits, label) == pytest.approx(picked.mean())
    np.testing.assert_allclose(call("cross_entropy", logits, label[:, None], reduction="none"), picked[:, None])
    kept = label != 3
    assert call("cross_entropy", logits, label, ignore_index=3) == pytest.approx(picked[kept].mean())
    weighted = (picked * weight[label]).sum() / weight[label].sum()
    assert call("cross_entropy", logits, label, weight) == pytest.approx(weighted)
    smooth = 0.9 * np.eye(4)[label] + 0.1 / 4
    expected = -(smooth * np.log(softmax(logits))).sum(1).mean()
    assert call("cross_entropy", logits, label, label_smoothing=0.1) == pytest.approx(expected)
    assert call("cross_entropy", logits, smooth, soft_label=True) == pytest.approx(expected)


def test_a_mean_over_ignored_labels_only_is_zero():
    assert call("cross_entropy", np.ones((2, 3)), np.array([1, 1]), ignore_index=1) == 0


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(DTypeError, match="integers"):
        call("cross_entropy", np.ones((2, 3)), np.ones(2))
    with pytest.raises(ShapeError, match="cross_entropy"):
        call("cross_entropy", np.ones((2, 3)), np.ones(3, np.int64))


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_softmax_of_scores_times_values(causal):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 5, 3, 4)) for _ in range(3))
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / 2
    if causal:
        scores = np.where(np.tril(np.ones((5, 5), bool)), scores, -np.inf)
    expected = np.einsum("bhqk,bkhd->bqhd", softmax(scores), v)
    np.testing.assert_allclose(call("scaled_dot_product_attention", q, k, v, is_causal=causal), expected, atol=1e-12)


def test_normalisations_standardise():
    x = np.random.default_rng(0).standard_normal((4, 6, 5)) * 3 + 1
    for name, arguments, over in (
        ("layer_norm", ([6, 5],), (1, 2)),
        ("group_norm", (2,), None),
        ("instance_norm", (), 2),
    ):
        result = call(name, x, *arguments, **({"eps": 0.0} if name == "instance_norm" else {"epsilon": 0.0}))
        parts = result.reshape(4, 2, -1) if over is None else result
        np.testing.assert_allclose(parts.mean(over or 2), 0, atol=1e-12)
        np.testing.assert_allclose(parts.var(over or 2), 1, atol=1e-12)
    root = np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(call("rms_norm", x, 5), x / root, atol=1e-12)


def test_batch_norm_moves_its_statistics_towards_the_batch():
    x = np.random.default_rng(0).standard_normal((8, 3, 2))
    zeros, ones = np.zeros(3), np.ones(3)
    result, mean, variance = get_operator("batch_norm")(*map(Tensor, (x, zeros, ones)), training=True)
    np.testing.assert_allclose(result.numpy().mean((0, 2)), 0, atol=1e-12)
    np.testing.assert_allclose(mean.numpy(), 0.1 * x.mean((0, 2)), atol=1e-12)
    np.testing.assert_allclose(variance.numpy(), 0.9 + 0.1 * x.var((0, 2)), atol=1e-12)


def test_transposed_convolution_is_the_adjoint_of_convolution():
    rng = np.random.default_rng(0)
    w = rng.standard_normal((4, 3, 3))  # convolution: 3 channels to 4
    x, y = rng.standard_normal((2, 3, 9)), rng.standard_normal((2, 4, 5))
    forward = call("conv1d", x, w, stride=2, padding=1)
    back = call("conv1d_transpose", y, w, stride=2, padding=1)
    assert (forward * y).sum() == pytest.approx((x * back).sum())


def test_pooling_takes_maxima_and_means_of_windows():
    x = np.arange(24.0).reshape(1, 1, 4, 6)
    windows = x.reshape(1, 1, 2, 2, 3, 2)
    np.testing.assert_array_equal(call("max_pool2d", x, 2), windows.max((3, 5)))
    np.testing.assert_array_equal(call("avg_pool2d", x, 2), windows.mean((3, 5)))
    np.testing.assert_array_equal(call("adaptive_avg_pool2d", x, [2, 3]), windows.mean((3, 5)))
    corner = call("avg_pool2d", x, 2, 2, 1)[0, 0, 0, 0], call("avg_pool2d", x, 2, 2, 1, exclusive=False)[0, 0, 0, 0]
    assert corner == (x[0, 0, 0, 0], x[0, 0, 0, 0] / 4)


@pytest.mark.parametrize(("size", "stride", "padding"), [(8, 1, 3), (8, 2, 4), (8, 5, 2), (31, 31, 0)])
def test_windows_larger_than_the_axis_cost_what_the_axis_has(size, stride, padding):
    """Each place of a window that lies in padding for every window is combined once, not tens of thousands of times."""
    x = -1.0 - np.random.default_rng(0).random((1, 1, 4, 3, 5))
    around = np.pad(x, [(0, 0)] * 2 + [(padding, padding + size)] * 3, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(around, (size,) * 3, (2, 3, 4))
    windows = windows[(..., *(slice(None, None, stride),) * 3, *(slice(None),) * 3)]
    best, mean = call("max_pool3d", x, size, stride, padding), call("avg_pool3d", x, size, stride, padding)
    windows = windows[tuple(map(slice, best.shape))]
    np.testing.assert_array_equal(best, np.nanmax(windows, (5, 6, 7)))
    np.testing.assert_allclose(mean, np.nanmean(windows, (5, 6, 7)), rtol=1e-14)
    with Tracer("f") as tracer:
        input = tracer.input(TensorType(x.shape, "float64"), "x")
        program = tracer.finish([get_operator("max_pool3d")(input, size, stride, padding)]).program
    PassManager("decompose").run(program)
    assert sum(op.name == "prim.slice" for op in program.walk()) <= (512 if size == 8 else 5 * 4 * 6)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 2**33), (-(2**62), 2**62), (-(2**63), 2**63), (2**62, 2**62 + 3), (5 - 2**40, 6), (0, 2**32)]
)
def test_integers_of_64_bits_are_drawn_evenly(low, high):
    """Ranges beyond 32 bits have all of their integers, eagerly and as primitives: each eighth about as often."""
    drawn = call("randint", low, high, [4000])
    assert min(drawn.tolist()) >= low
    assert max(drawn.tolist()) < high
    eighths = [(x - low) * 8 // (high - low) for x in drawn.tolist()]
    counts = np.bincount(eighths, minlength=8)
    assert (counts[counts > 0] > 400).all()
    assert (counts > 0).all() or high - low < 8
    if high - low > 2**32:
        assert len({x % 1024 for x in drawn.tolist()}) > 900


def test_an_integer_beyond_64_bits_is_refused():
    for low, high in ((0, 2**63 + 1), (-(2**63) - 1, 0), (3, 3)):
        with pytest.raises(ShapeError, match="64-bit ones only"):
            call("randint", low, high, [2])


@pytest.mark.parametrize(
    ("dtype", "most"),
    [("int64", 2**63 - 1), ("int32", 2**31 - 1), ("uint8", 255), ("float32", 2**24), ("float64", 2**53)],
)
def test_random_fills_as_paddle_does(dtype, most):
    """Up to what the dtype holds; below one number that is given; between two."""
    fill = find_composition("random_")
    for args, low, high in (((), 0, most), ((50,), 0, 50), ((10, 100), 10, 100)):
        x = Tensor(np.zeros(3000, dtype))
        fill(x, *args)
        values = x.numpy().astype(np.float64)
        assert low <= values.min() <= low + (high - low) / 20
        assert high - (high - low) / 20 <= values.max() <= high


def test_random_numbers_have_the_right_distribution_and_differ_from_draw_to_draw():
    draws = {name: call(name, [20000], "float64") for name in ("rand", "randn")}
    assert draws["rand"].min() >= 0
    assert draws["rand"].max() < 1
    assert draws["rand"].mean() == pytest.approx(0.5, abs=0.01)
    assert draws["randn"].mean() == pytest.approx(0, abs=0.03)
    assert draws["randn"].std() == pytest.approx(1, abs=0.03)
    assert not np.array_equal(draws["rand"], call("rand", [20000], "float64"))
    integers = call("randint", -2, 3, [5000])
    np.testing.assert_array_equal(np.unique(integers), [-2, -1, 0, 1, 2])
    np.testing.assert_array_equal(np.sort(call("randperm", 50)), np.arange(50))


def test_dropout_keeps_the_mean_and_multinomial_the_frequencies():
    kept = call("dropout", np.ones(20000), 0.25)
    np.testing.assert_allclose(np.unique(kept), [0, 1 / 0.75])
    assert kept.mean() == pytest.approx(1, abs=0.03)
    weights = np.array([1.0, 0.0, 3.0])
    drawn = call("multinomial", weights, 8000, replacement=True)
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 8000, weights / 4, atol=0.03)
    assert set(call("multinomial", weights, 2)) == {0, 2}


def test_wrong_arguments_are_named():
    x = np.ones((2, 3))
    with pytest.raises(AxisError, match="log_softmax: axis 2"):
        call("log_softmax", x, 2)
    with pytest.raises(ShapeError, match="does not divide"):
        call("reshape", x, [4, -1])
    with pytest.raises(ShapeError, match="linear"):
        get_operator("linear").expand([TensorType((2, 3), "float64")] * 2, {"segments": (1, 1, -1)})
    with pytest.raises(ShapeError, match="no elements"):
        call("max", np.zeros((0, 2)), 0)


def test_matmul_of_bfloat16_is_bfloat16():
    """The product of bfloat16 matrices is summed in float32 and rounded to bfloat16, as its body says."""
    x = Tensor([[1.0, 2.0**-9]], dtype="bfloat16")
    product = get_operator("matmul")(x, x, transpose_y=True)
    assert product.dtype.name == "bfloat16"
    assert product.tolist() == [[1.0]]


@pytest.mark.parametrize("approximate", [True, False])
def test_gelu_of_narrow_floats_is_computed_in_float32_and_rounded_once(approximate):
    """It is half a rounding step away from the number, not several: one for each operation."""
    x = np.linspace(-2, 6, 1001).astype(ml_dtypes.bfloat16)
    wide = x.astype(np.float64)
    inner = np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)) if approximate else erf(wide / math.sqrt(2))
    want = wide * (1 + inner) / 2
    found = get_operator("gelu")(Tensor(x), approximate=approximate).numpy().view(ml_dtypes.bfloat16)
    step = 2.0 ** (np.frexp(want)[1] - 8)
    assert (np.abs(found.astype(np.float64) - want) <= 0.51 * step).all()


@pytest.mark.parametrize(
    ("data", "bins", "low", "high", "counts"),
    [
        (np.array([1, 1.4, 0.2, 1.9], np.float32), 4, 1.0, 1.0, [1, 1, 1, 1]),
        (np.array([1, 1, 1], np.float32), 4, 0, 0, [0, 0, 3, 0]),
        (np.array([np.nan, 1, 2], np.float32), 4, 0.0, 3.0, [0, 1, 1, 0]),
        (np.arange(1, 11) / 10, 10, 0.0, 1.0, [0, 1, 1, 1, 1, 1, 1, 1, 1, 2]),
        (np.array([1, 2, 3, 7]), 4, 0.5, 6.5, [1, 1, 1, 0]),
        (np.array([[1, 2], [3, 7]], np.int32), 4, 0, 0, [2, 1, 0, 1]),
        (np.zeros(0, np.float32), 4, 0, 0, [0, 0, 0, 0]),
    ],
)
def test_histogram_counts_as_paddle(data, bins, low, high, counts):
    """What the wheel gives: equal bounds are those of the data, integers cut them off, one division gives the part."""
    result = get_operator("histogram")(Tensor(data), bins, low, high).numpy()
    assert result.dtype == np.int64
    assert result.tolist() == counts
    if data.size:
        assert decomposed("histogram", data, bins, low, high).tolist() == counts


def test_histogram_refuses_data_without_a_range_when_it_is_hot_too():
    histogram, x, bad = get_operator("histogram"), Tensor(np.arange(5.0)), Tensor(np.array([1, 2, np.nan, 4, 5]))
    for _ in range(3000):
        histogram(x, 4)
    with pytest.raises(OperatorError, match="range should be finite"):
        histogram(bad, 4)
    assert histogram(bad, 4, 0.0, 4.0).numpy().tolist() == [0, 1, 1, 1]


def test_histogram_adds_up_weights_and_densities_alike_without_looking_at_values():
    rng = np.random.default_rng(3)
    data, weights = rng.standard_normal(50), rng.random(50)
    for density in (False, True):
        eager = get_operator("histogram")(Tensor(data), 6, -1.5, 1.0, Tensor(weights), density).numpy()
        assert eager.dtype == np.float32
        np.testing.assert_allclose(decomposed("histogram", data, 6, -1.5, 1.0, weights, density), eager, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_gcd_and_lcm_have_enough_steps_for_their_dtype(dtype):
    """Neighbours in Fibonacci's sequence need the most steps."""
    largest = np.iinfo(dtype).max
    numbers = [1, 1]
    while numbers[-1] + numbers[-2] <= largest:
        numbers.append(numbers[-1] + numbers[-2])
    x = np.array([numbers[-1], largest, 0, 0, 12], dtype)
    y = np.array([numbers[-2], 3, 7, 0, 18], dtype)
    assert decomposed("gcd", x, y).tolist() == np.gcd(x, y).tolist()
    small = (x % 11, y % 11)
    assert decomposed("lcm", *small).tolist() == np.lcm(*small).tolist()
    if largest % 2 and dtype != "uint8":
        assert decomposed("gcd", -x, y).tolist() == np.gcd(-x, y).tolist()


def test_histogram_refuses_ranges_that_are_none():
    histogram, x = get_operator("histogram"), Tensor(np.array([np.nan, 1.0]))
    with pytest.raises(OperatorError, match="range should be finite, got from min=nan"):
        histogram(x, 4)
    with pytest.raises(OperatorError, match=r"'min' should be at most 'max', got min=3\.0 and max=1\.0"):
        histogram(x, 4, 3.0, 1.0)
    with pytest.raises(OperatorError, match="'bins' should be at least 1, got 0"):
        histogram(x, 0, 0.0, 1.0)


def test_cholesky_reads_the_triangle_that_is_wanted():
    x = np.array([[4.0, 2.0], [9.0, 5.0]])
    np.testing.assert_allclose(get_operator("cholesky")(Tensor(x), upper=True).numpy(), [[2.0, 1.0], [0.0, 2.0]])
    lower = get_operator("cholesky")(Tensor(x.T.copy()))
    np.testing.assert_allclose(lower.numpy(), [[2.0, 0.0], [1.0, 2.0]])


def test_the_largest_of_no_lengths_is_zero():
    assert get_operator("vector_norm")(Tensor(np.zeros((0,))), math.inf).item() == 0.0
    rank = find_composition("matrix_rank")
    assert rank is not None
    assert rank(Tensor(np.zeros((2, 0, 0)))).numpy().tolist() == [0, 0]


@pytest.mark.parametrize("p", [None, -2, "fro", "nuc", 1, math.inf])
def test_the_condition_number_of_nothing_is_zero(p):
    cond = find_composition("cond")
    assert cond is not None
    assert cond(Tensor(np.zeros((2, 0, 0))), p).numpy().tolist() == [0.0, 0.0]


def test_matrix_exp_of_what_is_not_finite_is_nan_for_that_matrix_alone():
    matrix_exp = find_composition("matrix_exp")
    assert matrix_exp is not None
    x = np.zeros((3, 2, 2))
    x[0, 0, 0], x[2, 1, 0] = np.nan, np.inf
    found = matrix_exp(Tensor(x)).numpy()
    assert np.isnan(found[[0, 2]]).all()
    np.testing.assert_allclose(found[1], np.eye(2))


def test_the_lower_median_of_integers_is_one_of_them():
    x = Tensor(np.array([[1, 5, 2, 4], [7, 3, 9, 1]]))
    values, index = find_composition("nanmedian")(x, 1, mode="min")
    assert values.dtype.name == "int64"
    assert (values.tolist(), index.tolist()) == ([2, 3], [2, 1])
    assert find_composition("nanmedian")(x, mode="min").item() == 3


def test_a_matrix_is_taken_for_the_list_of_its_rows():
    x = np.array([[1, 2], [3, 4]])
    np.testing.assert_array_equal(find_composition("block_diag")(Tensor(x)).numpy(), [[1, 2, 0, 0], [0, 0, 3, 4]])


def test_rolling_along_no_axis_is_rolling_flat():
    x = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(get_operator("roll")(Tensor(x), 1, []).numpy(), np.roll(x, 1))


@pytest.mark.parametrize(
    ("of", "to", "expected"),
    [
        ([0], [0, -1], [0, 1]),
        ([2, 0], [0, -1], [0, 2]),
        ([2, 0, 3], [-1, 0], [6, 0]),
        ([0, 4], [2, 0, -1], [2, 0, 2]),
        ([0, 3], [0, -1], [0, 3]),
        ([0, 3], [-1], [0]),
    ],
)
def test_the_gap_beside_a_size_of_nothing_takes_the_other_sizes(of, to, expected):
    assert list(get_operator("reshape")(Tensor(np.zeros(of)), to).shape) == expected


def test_elements_of_a_vector_are_renormalised():
    x = Tensor(np.array([3.0, -4.0, 0.5]))
    np.testing.assert_allclose(get_operator("renorm")(x, 2.0, 0, 1.0).numpy(), [1.0, -1.0, 0.5])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: get_operator("erf")(x), lambda x: get_operator("erfinv")(x), lambda x: get_operator("lgamma")(x),
        lambda x: get_operator("digamma")(x), lambda x: get_operator("histogram")(x),
        lambda x: find_composition("nanmedian")(x), lambda x: get_operator("weight_quantize")(x),
        lambda x: get_operator("weight_only_linear")(x, Tensor(np.ones((4, 64), "int8")), None, Tensor(np.ones(4))),
        lambda x: get_operator("llm_int8_linear")(x, Tensor(np.ones((4, 64), "int8")), None, Tensor(np.ones(4))),
    ],
)  # fmt: skip
def test_what_is_of_real_numbers_refuses_complex_ones(call):
    """Rather than to drop their imaginary parts, which numpy does where it converts."""
    for _ in range(2):  # the second call finds what the first one left
        with pytest.raises(DTypeError, match="complex64"):
            call(Tensor(np.full((64, 64), 1 + 2j, "complex64")))


def test_scales_and_offsets_of_other_shapes_are_named():
    x, weight, scale = (Tensor(np.ones(shape, kind)) for shape, kind in (((2, 64), "f4"), ((4, 64), "i1"), (4, "f4")))
    linear = get_operator("weight_only_linear")
    with pytest.raises(ShapeError, match=r"weight_scale should be \[2, 4\] .* got float32 \[4\]"):
        linear(x, weight, None, scale, group_size=32)
    with pytest.raises(ShapeError, match=r"weight_offset should be \[1, 4\] .* got float32 \[3\]"):
        linear(x, weight, None, scale, weight_offset=Tensor(np.ones(3, "f4")))
    rows, index, matrices = (
        Tensor(np.ones((1, 2, 64), "f4")),
        Tensor(np.zeros((1, 2), "i8")),
        Tensor(np.ones((3, 64, 4), "i1")),
    )
    scales, offset = Tensor(np.ones((3, 2, 4), "f4")), Tensor(np.ones((3, 1, 4), "f4"))
    with pytest.raises(ShapeError, match="the shape of the scale"):
        get_operator("gather_mm")(rows, index, matrices, None, scales, offset)
    with pytest.raises(OperatorError, match="scale is missing"):
        get_operator("gather_mm")(rows, index, matrices, None, None, offset)
    with pytest.raises(OperatorError, match=r"x int8 .* is multiplied with numbers that have a scale"):
        get_operator("gather_mm")(Tensor(np.ones((1, 2, 64), "i1")), index, matrices)
