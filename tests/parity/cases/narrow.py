"""Half precision: the dtypes of results, and values to the precision of the dtype."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import tensor as t

F = "nn.functional."
UNARY = (
    "exp", "log", "sqrt", "rsqrt", "tanh", "sin", "abs", "square", "reciprocal", "floor", "sign", "erf", "neg", "log1p",
    "sum", "mean", "max", "min", "argmax", "cumsum", "logsumexp", "prod", "isnan", "std",
    F + "relu", F + "gelu", F + "silu", F + "sigmoid", F + "softmax", F + "log_softmax", F + "softplus",
)  # fmt: skip
BINARY = (
    "add", "subtract", "multiply", "divide", "pow", "maximum", "minimum", "remainder", "equal", "less_than", "atan2",
)  # fmt: skip
METHODS = ("__add__", "__mul__", "__truediv__", "__pow__", "__rsub__", "__lt__")


def cases() -> Iterator[Case]:
    for dtype in ("bfloat16", "float16"):
        for name in UNARY:
            yield call(name, t(3, 4, dtype=dtype, low=0.3, high=2))
        for name in BINARY:
            yield call(name, t(3, 4, dtype=dtype, low=0.5, high=2), t(4, dtype=dtype, low=0.5, high=2))
        for name in METHODS:
            yield call(f"Tensor.{name}", t(4, dtype=dtype, low=0.5, high=2), 2)
            yield call(f"Tensor.{name}", t(4, dtype=dtype, low=0.5, high=2), 1.5)
        for other in ("float32", "float64", "bfloat16", "float16"):
            if other != dtype:
                yield call("add", t(4, dtype=dtype), t(4, dtype=other))
                yield call("add", t(4, dtype=dtype), t(dtype=other))
        yield from _others(dtype)


def _others(dtype: str) -> Iterator[Case]:
    for target in ("float32", "float64", "int32", "bool"):
        yield call("cast", t(4, dtype=dtype), target)
        yield call("cast", t(4, dtype=target, low=0, high=4), dtype)
    yield call("matmul", t(3, 4, dtype=dtype), t(4, 2, dtype=dtype))
    yield call(F + "linear", t(3, 4, dtype=dtype), t(4, 2, dtype=dtype), t(2, dtype=dtype))
    yield call(F + "layer_norm", t(3, 4, dtype=dtype), [4], t(4, dtype=dtype), t(4, dtype=dtype))
    yield call("concat", [t(2, dtype=dtype), t(3, dtype=dtype)])
    yield call("where", t(3, dtype="bool"), t(3, dtype=dtype), t(3, dtype=dtype))
    yield call("clip", t(4, dtype=dtype), -0.5, 0.5)
    yield call("scale", t(4, dtype=dtype), 2.0, 1.0)
    yield call("full", [2], 1.5, dtype)
    yield call("zeros", [2], dtype)
    yield call("ones_like", t(2, dtype=dtype, grad=False))
    yield call(F + "embedding", t(3, dtype="int64", low=0, high=4), t(4, 2, dtype=dtype))
    yield call(F + "cross_entropy", t(3, 4, dtype=dtype), t(3, dtype="int64", low=0, high=4))
    yield call(F + "mse_loss", t(3, dtype=dtype), t(3, dtype=dtype))
    yield call("gather", t(3, 2, dtype=dtype), t(2, dtype="int64", low=0, high=3))
    yield call("Tensor.__getitem__", t(3, 2, dtype=dtype), 1)
    yield call("transpose", t(3, 2, dtype=dtype), [1, 0])
    yield call("topk", t(3, 4, dtype=dtype), 2)
