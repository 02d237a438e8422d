"""What ``incubate`` has: functions that are kernels of their own in Paddle (those its CPU has), and its optimizers."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call, layer, script
from parity.inputs import tensor as t

FUNCTIONAL = "incubate.nn.functional."


def cases() -> Iterator[Case]:
    x, weight, bias, residual = (t(*s, grad=False) for s in ((2, 3, 4), (4,), (4,), (2, 3, 4)))
    for axis in (2, -1):
        yield call(FUNCTIONAL + "fused_rms_norm", x, weight, bias, 1e-5, axis, bias, residual)
    yield call(FUNCTIONAL + "fused_rms_norm", x, weight, None, 1e-5, 2, None, residual)
    yield call(FUNCTIONAL + "fused_rms_norm", x, t(12, grad=False), None, 1e-5, 1, None, residual)
    yield call(FUNCTIONAL + "fused_rms_norm", x, weight, None, 1e-5, 3)
    yield call(FUNCTIONAL + "fused_layer_norm", x, weight, bias, 1e-5, 0.5, 2, bias, residual)
    yield call(FUNCTIONAL + "fused_layer_norm", x, weight, bias, 1e-5, 1.0, 2, None, residual)
    yield call(FUNCTIONAL + "fused_linear", t(2, 3), t(3, 4))
    yield call(FUNCTIONAL + "fused_linear", t(2, 3), t(4, 3), None, True)
    yield call(FUNCTIONAL + "fused_matmul_bias", t(3, 2), t(4, 3), None, True, True)
    yield call(FUNCTIONAL + "fused_dropout_add", t(2, 3), t(2, 3), 0.0)
    yield call(FUNCTIONAL + "fused_dropout_add", t(2, 3), t(2, 3), 0.4, False, "downscale_in_infer")
    yield call(FUNCTIONAL + "swiglu", t(2, 6))
    yield call(FUNCTIONAL + "swiglu", t(2, 3), t(2, 3))
    yield layer("incubate.nn.FusedDropoutAdd", t(2, 3), t(2, 3), p=0.5, training=False)
    for k in (1, 3):
        yield script("lookahead", 0.3, k)
    for window in ((0.4, 2, 4), (0.15, 1, 100), (1.0, 3, 3)):
        yield script("model_average", *window)
