"""Activation functions of ``nn.functional``."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import given
from parity.inputs import tensor as t

F = "nn.functional."
NAMES = (
    "relu", "relu6", "gelu", "silu", "swish", "leaky_relu", "elu", "selu", "celu", "hardtanh", "hardsigmoid",
    "hardswish", "softplus", "softsign", "mish", "log_sigmoid", "tanhshrink", "hardshrink", "softshrink",
    "thresholded_relu", "sigmoid", "tanh", "softmax", "log_softmax",
)  # fmt: skip

ARGUMENTS = (
    ("gelu", {"approximate": True}), ("gelu", {"approximate": "tanh"}), ("leaky_relu", {"negative_slope": 0.2}),
    ("elu", {"alpha": 0.5}), ("selu", {"scale": 1.5, "alpha": 2.0}), ("celu", {"alpha": 0.5}),
    ("hardtanh", {"min": -0.5, "max": 0.7}), ("hardsigmoid", {"slope": 0.2, "offset": 0.4}),
    ("softplus", {"beta": 2.0, "threshold": 3.0}), ("hardshrink", {"threshold": 1.0}),
    ("softshrink", {"threshold": 1.0}), ("thresholded_relu", {"threshold": 0.5}),
    ("thresholded_relu", {"threshold": 0.5, "value": -1.0}), ("glu", {}), ("glu", {"axis": 0}),
)  # fmt: skip


def cases() -> Iterator[Case]:
    for name in NAMES:
        for dtype in ("float32", "float64"):
            yield call(F + name, t(3, 4, low=-4, high=4, dtype=dtype))
        for shape in ((), (0, 3), (2, 3, 2, 2)):
            yield call(F + name, t(*shape, low=-4, high=4))
        yield call(F + name, t(3, 4, low=-4, high=4, layout="T"))
        yield call(F + name, given([-30.0, -0.0, 0.0, 30.0], grad=False))
        yield call(F + name, t(4, dtype="int32", low=-3, high=4))
    for name, kwargs in ARGUMENTS:
        yield call(F + name, t(4, 6, low=-3, high=3), **kwargs)
    yield from _softmax()
    yield from _weighted()
    for name in ("relu", "softmax", "tanh", "elu", "leaky_relu", "hardtanh", "thresholded_relu"):
        yield call(F + name + "_", t(3, 4, grad=False))
    yield call(F + "thresholded_relu", given([float("nan"), 0.0, 2.0], grad=False))


def _softmax() -> Iterator[Case]:
    for name in ("softmax", "log_softmax"):
        for axis in (0, 1, -2):
            yield call(F + name, t(2, 3, 4), axis=axis)
        yield call(F + name, t(2, 3), dtype="float64")
        yield call(F + name, t(2, 3), axis=-1, dtype="float64")
        yield call(F + name, t(2, 3, low=-500, high=500))
        yield call(F + name, t(2, 3, dtype="int32"), dtype="float32")
    for shape in ((3, 1), (1,)):
        yield call(F + "softmax", t(*shape))
    yield call(F + "gumbel_softmax", t(0, 3))


def _weighted() -> Iterator[Case]:
    yield call(F + "prelu", t(2, 3, 4), t(1, low=0.1, high=0.5))
    yield call(F + "prelu", t(2, 3, 4), t(3, low=0.1, high=0.5))
    yield call(F + "prelu", t(2, 4, 3), t(3, low=0.1, high=0.5), data_format="NLC")
    yield call(F + "prelu", t(2, 3, 4, 2, dtype="float64"), t(3, low=0.1, high=0.5, dtype="float64"))
    yield call(F + "swiglu", t(2, 3), t(2, 3))
    yield call(F + "swiglu", t(2, 6))
    yield call(F + "maxout", t(2, 4, 3, 3), 2)
    yield call(F + "maxout", t(2, 3, 3, 4), 2, -1)
    yield call(F + "rrelu", t(2, 3), 0.1, 0.3, training=False)
