"""Reductions and cumulative functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parity.case import Case, call
from parity.inputs import given
from parity.inputs import tensor as t

NAN = float("nan")
FLOATING = (
    "sum", "mean", "prod", "max", "min", "amax", "amin", "logsumexp", "var", "std", "nansum", "nanmean",
    "count_nonzero", "median", "nanmedian",
)  # fmt: skip
AXES: tuple[Any, ...] = (None, 0, 1, -1, [0, 2], (1, -1), [0, 1, 2])


def cases() -> Iterator[Case]:
    for name in FLOATING:
        many = name not in ("median", "nanmedian")
        for axis in AXES if many else (None, 0, -1):
            yield call(name, t(2, 3, 4), axis)
        yield call(name, t(2, 3, 4), axis=1, keepdim=True)
        yield call(name, t(2, 3, 4), keepdim=True)
        yield call(name, t(2, 3, dtype="float64"), 1)
        yield call(name, t(), None)
        yield call(name, t(0, 3))
        yield call(name, t(0, 3), 0)
        yield call(name, t(0, 3), 1)
        yield call(name, t(3, 4, layout="T"), 0)
        yield call(name, t(3, 4, layout="step"), 1)
        yield call(name, t(2, 3), 2)
        yield call(name, t(2, 3), -3)
        yield call(name, given([NAN, 1.0, 2.0]))
    yield from _other_dtypes()
    yield from _logical()
    yield from _positions()
    yield from _arguments()
    yield from _norms()
    yield from _cumulative()


def _other_dtypes() -> Iterator[Case]:
    for name in ("sum", "mean", "prod", "max", "min", "amax", "amin", "count_nonzero", "logsumexp", "var", "nansum"):
        for dtype in ("int32", "int64", "bool"):
            yield call(name, t(2, 4, dtype=dtype, low=-3, high=4))
            yield call(name, t(2, 4, dtype=dtype, low=-3, high=4), 1)
    for name in ("sum", "mean", "prod", "count_nonzero"):
        yield call(name, t(2, 3, dtype="complex64"), 1)
    for dtype in ("float64", "int64", "float32"):
        yield call("sum", t(2, 3, dtype="int32"), 1, dtype)
        yield call("sum", t(2, 3), dtype=dtype)
        yield call("prod", t(2, 3), dtype=dtype)
        yield call("nansum", t(2, 3), dtype=dtype)


def _logical() -> Iterator[Case]:
    for name in ("all", "any"):
        for axis in (None, 0, -1, [0, 1]):
            yield call(name, t(2, 3, dtype="bool"), axis)
        yield call(name, t(2, 3, dtype="bool"), 0, True)
        yield call(name, t(2, 3, dtype="int64", low=0, high=2), 1)
        yield call(name, t(2, 3), 1)
        yield call(name, t(0, 3, dtype="bool"))
        yield call(name, t(0, 3, dtype="bool"), 0)
        yield call(name, t(dtype="bool"))


def _positions() -> Iterator[Case]:
    for name in ("argmax", "argmin"):
        for axis in (None, 0, 1, -1):
            yield call(name, t(3, 4), axis)
        yield call(name, t(3, 4), 1, True)
        yield call(name, t(3, 4), keepdim=True)
        yield call(name, t(3, 4), 0, dtype="int32")
        yield call(name, given([1, 3, 3, 1], "int64"))
        yield call(name, t(3, 4, dtype="float64", layout="T"), 0)
        yield call(name, t())
        yield call(name, t(0, 3))
        yield call(name, t(0, 3), 1)
        yield call(name, t(4, dtype="bool"))


def _arguments() -> Iterator[Case]:
    for name in ("max", "min", "amax", "amin"):
        tied = given([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
        yield call(name, tied)
        yield call(name, tied, 1)
        yield call(name, tied, 0)
    for unbiased in (True, False):
        yield call("var", t(2, 3), 1, unbiased)
        yield call("std", t(2, 3), [0, 1], unbiased=unbiased)
        yield call("var", t(1), 0, unbiased)
    yield call("prod", given([[0.0, 2.0], [3.0, 0.0]]), 0)
    yield call("prod", given([0.0, 2.0, 3.0]))
    yield call("logsumexp", t(2, 3, low=500, high=600), 1)
    yield call("count_nonzero", given([[0.0, 1.0], [2.0, 0.0]]), 0, True)
    for shape in ((2, 3), (), (0, 4)):
        yield call("numel", t(*shape))
    for args in ((), (1,), (-1,)):
        yield call("trace", t(3, 4), *args)
    yield call("trace", t(2, 3, 3), 0, 1, 2)
    yield call("trace", t(2, 3, 3), 1, axis1=-1, axis2=-2)
    yield call("trace", t(3, 3, dtype="int64", low=-5, high=5))
    yield call("Tensor.sum", t(2, 3), 0)
    yield call("Tensor.mean", t(2, 3), axis=-1, keepdim=True)
    yield call("Tensor.max", t(2, 3), 1)
    yield call("Tensor.numel", t(2, 3))
    for q in (0.5, 0.25, [0.1, 0.9]):
        yield call("quantile", t(3, 4), q, axis=1)
        yield call("nanquantile", t(3, 4), q, axis=0, keepdim=True)
    yield call("quantile", t(3, 4, dtype="float64"), 0.3)
    yield call("mode", given([[1.0, 2.0, 2.0], [3.0, 3.0, 1.0]]))
    yield call("median", t(4), mode="min")
    yield call("median", t(3, 4), 1, mode="min")
    yield call("median", t(4, dtype="int64"))
    yield call("median", t(3, 4, dtype="float16"), 1)


def _norms() -> Iterator[Case]:
    for p in (1, 2, 3, 0, float("inf"), -float("inf"), 0.5, "fro"):
        yield call("norm", t(3, 4), p)
    for p in (1, 2, float("inf"), 3.5):
        for axis in (0, -1):
            yield call("norm", t(3, 4), p, axis)
    for axis in ([0, 1], [-2, -1], (1, 2)):
        yield call("norm", t(2, 3, 4), "fro", axis)
        yield call("norm", t(2, 3, 4), 2, axis, True)
    yield call("norm", t(3, 4))
    yield call("norm", t(3, 4, dtype="float64"), keepdim=True)
    yield call("norm", t(2, 3, 4), 2, 1, True)
    yield call("norm", t())
    yield call("norm", t(0, 3), 2, 0)
    yield call("norm", t(3, 4), "nuc", [0, 1])
    yield call("dist", t(3, 4), t(3, 4), 2)
    yield call("dist", t(3, 1), t(4), 1)


def _cumulative() -> Iterator[Case]:
    for name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"):
        for axis in (0, 1, -1):
            yield call(name, t(3, 4), axis)
        yield call(name, t(3, 4, dtype="float64"), 1)
        yield call(name, t(3, 4, layout="T"), 0)
        yield call(name, t(2, 3, 4), 1)
        yield call(name, t(), 0)
        yield call(name, t(0, 3), 0)
        yield call(name, t(3, 4), 2)
        for dtype in ("int32", "int64"):
            yield call(name, t(2, 4, dtype=dtype, low=-3, high=4), 1)
    for name in ("cumsum", "logcumsumexp", "cumprod", "cummax"):
        yield call(name, t(3, 4))
    for name in ("cummax", "cummin"):
        yield call(name, given([1.0, float("nan"), 3.0, float("nan"), 0.0]), 0)
        yield call(name, given([float("nan"), 1.0, 3.0, 3.0]), 0)
    for dtype in ("uint8", "int8", "int16"):
        yield call("cumsum", t(2, 3, dtype=dtype, low=0, high=100), 1)
    yield call("cumsum", t(3, dtype="bool"), 0)
    yield call("cumsum", t(3, dtype="int32"), 0, "float64")
    yield call("cumsum", t(3, dtype="complex64"), 0)
    yield call("cumprod", given([2.0, 0.0, 3.0, 0.0, 4.0]), 0)
    yield call("cumprod", t(3), dim=0, dtype="float64")
    yield call("trapezoid", t(3, 4))
    yield call("cumulative_trapezoid", t(3, 4), dx=0.5)
    yield call("diff", t(3, 4))
    yield call("diff", t(3, 4), 2, 0)
