"""Functions of one tensor, elementwise."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import given
from parity.inputs import tensor as t

NAN, INF = float("nan"), float("inf")

DOMAINS: dict[str, tuple[float, float]] = {
    "exp": (-3, 3), "expm1": (-3, 3), "log": (0.1, 5), "log1p": (-0.9, 4), "log2": (0.1, 5), "log10": (0.1, 5),
    "sqrt": (0.1, 5), "rsqrt": (0.2, 5), "square": (-3, 3), "reciprocal": (0.3, 4), "neg": (-3, 3), "abs": (-3, 3),
    "sin": (-7, 7), "cos": (-7, 7), "tan": (-1.4, 1.4), "asin": (-0.95, 0.95), "acos": (-0.95, 0.95),
    "atan": (-4, 4), "sinh": (-3, 3), "cosh": (-3, 3), "tanh": (-3, 3), "asinh": (-3, 3), "acosh": (1.1, 5),
    "atanh": (-0.9, 0.9), "erf": (-3, 3), "erfinv": (-0.95, 0.95), "lgamma": (0.2, 6), "digamma": (0.2, 6),
    "sigmoid": (-5, 5), "sign": (-3, 3), "floor": (-4, 4), "ceil": (-4, 4), "trunc": (-4, 4), "frac": (-4, 4),
    "round": (-4, 4), "deg2rad": (-300, 300), "rad2deg": (-7, 7), "sinc": (-3, 3), "stanh": (-3, 3),
    "logit": (0.05, 0.95), "angle": (-3, 3), "isfinite": (-3, 3), "isnan": (-3, 3), "isinf": (-3, 3),
    "isposinf": (-3, 3), "isneginf": (-3, 3), "nan_to_num": (-3, 3), "real": (-3, 3), "imag": (-3, 3), "conj": (-3, 3),
    "i0": (-3, 3), "i0e": (-3, 3), "i1": (-3, 3), "i1e": (-3, 3), "gammaln": (0.2, 6), "signbit": (-3, 3),
    "isreal": (-3, 3),
}  # fmt: skip
"""Where each function is smooth and tame."""

OVER_INTEGERS = (
    "exp", "log", "sqrt", "rsqrt", "square", "reciprocal", "neg", "abs", "sin", "cos", "tanh", "atan", "expm1", "log1p",
    "log2", "sign", "floor", "ceil", "round", "trunc", "isnan", "isfinite", "isinf", "deg2rad", "erf", "sigmoid",
    "asinh", "frac", "conj", "angle", "isneginf", "lgamma",
)  # fmt: skip

OVER_COMPLEX = (
    "exp", "log", "sqrt", "square", "reciprocal", "neg", "abs", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sigmoid",
    "real", "imag", "conj", "angle", "isnan", "isfinite", "sign", "asin", "atan", "log2", "log10", "log1p", "expm1",
    "isreal",
)  # fmt: skip

SPECIAL = (
    "exp", "log", "sqrt", "rsqrt", "reciprocal", "abs", "sign", "floor", "ceil", "round", "trunc", "isnan", "isinf",
    "isfinite", "isposinf", "isneginf", "nan_to_num", "tanh", "sigmoid", "erf", "square", "log1p", "expm1", "neg",
    "atan", "cosh", "signbit", "sinc",
)  # fmt: skip


def cases() -> Iterator[Case]:
    for name, (low, high) in DOMAINS.items():
        for dtype in ("float32", "float64"):
            yield call(name, t(3, 4, low=low, high=high, dtype=dtype))
        for shape in ((), (0, 3), (1,), (2, 3, 2, 2)):
            yield call(name, t(*shape, low=low, high=high))
        for layout in ("T", "step", "offset"):
            yield call(name, t(3, 4, low=low, high=high, layout=layout))
    for name in OVER_INTEGERS:
        for dtype in ("int32", "int64"):
            yield call(name, t(5, dtype=dtype, low=1, high=6))
    for name in OVER_COMPLEX:
        yield call(name, t(2, 3, dtype="complex64"))
    for name in SPECIAL:
        yield call(name, given([NAN, INF, -INF, 0.0, -0.0, 1.5, -2.5, 0.5]))
    yield from _arguments()


def _arguments() -> Iterator[Case]:
    for decimals in (1, 2, -1):
        yield call("round", t(6, low=-30, high=30), decimals=decimals)
    yield call("round", given([0.5, 1.5, 2.5, -0.5, -1.5]))
    yield call("logit", given([-0.5, 0.2, 0.7, 1.5]), eps=0.01)
    yield call("logit", given([-0.5, 0.2, 0.7, 1.5]))
    yield call("stanh", t(4), 0.5, 1.2)
    yield call("stanh", t(4), scale_a=0.5, scale_b=1.2)
    yield call("nan_to_num", given([NAN, INF, -INF, 1.0]), nan=1.0, posinf=7.0, neginf=-7.0)
    yield call("nan_to_num", given([NAN, INF, -INF, 1.0], "float64"))
    yield call("lgamma", given([-0.5, -1.5, 1.0, 2.0, 10.0, 100.0]))
    yield call("digamma", given([-0.5, -1.5, 1.0, 2.0, 10.0]))
    yield call("erfinv", given([-1.0, 1.0, 0.0, 0.99]))
    yield call("angle", given([-1.0, 0.0, 2.0]))
    yield call("complex", t(2, 3), t(2, 3))
    yield call("complex", t(2, 1), t(3))
    yield call("complex", t(2, dtype="float64"), t(2, dtype="float64"))
    yield call("complex", t(), t(2))
    yield call("real", t(2, 3, dtype="complex64", layout="T"))
    for n in (0, 1, 2):
        yield call("polygamma", t(4, low=0.5, high=4, dtype="float64"), n)
    for name in ("sinh", "abs", "tanh", "exp", "sqrt"):
        yield call(f"Tensor.{name}", t(3, low=0.5, high=2))
    in_place = ("exp", "sqrt", "tanh", "abs", "floor", "ceil", "round", "reciprocal", "rsqrt", "sigmoid", "neg", "sin")
    for name in in_place:
        yield call(f"Tensor.{name}_", t(3, low=0.5, high=2))
