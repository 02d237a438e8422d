"""Tensors from sizes and numbers."""

from __future__ import annotations

from collections.abc import Iterator

from parity.case import Case, call
from parity.inputs import given
from parity.inputs import tensor as t

DTYPES = ("float32", "float64", "int32", "int64", "bool", "complex64", "uint8")


def cases() -> Iterator[Case]:
    for name in ("zeros", "ones"):
        for dtype in DTYPES:
            yield call(name, [2, 3], dtype=dtype)
        for shape in ([], [0, 3], (2,), 3, [2, 3]):
            yield call(name, shape)
        yield call(name, given([2, 3], "int64"))
        yield call(name, [given(2, "int64"), 3])
    for name in ("zeros_like", "ones_like"):
        for dtype in DTYPES:
            yield call(name, t(2, 3, dtype=dtype))
        yield call(name, t(2, 3), dtype="int64")
        yield call(name, t(2, 3), "float64")
        yield call(name, t())
        yield call(name, t(0, 3))
    yield from _full()
    yield from _ranges()
    yield from _patterns()
    yield from _to_tensor()


def _full() -> Iterator[Case]:
    for number in (2, 2.5, True, 1 + 2j):
        yield call("full", [2, 2], number)
        yield call("full_like", t(2, dtype="float32"), number)
        yield call("full_like", t(2, dtype="int64"), number)
        for dtype in ("float32", "float64", "int64", "bool", "complex64"):
            yield call("full", [2], number, dtype)
    yield call("full", [], 3)
    yield call("full", [0, 2], 3.0)
    yield call("full", [2, 2], given(3.0, grad=False))
    yield call("full", (2,), float("inf"))
    yield call("full_like", t(2, 3), 1.5, dtype="float64")
    yield call("full_like", t(), 2)


def _ranges() -> Iterator[Case]:
    for args in ((5,), (1, 7), (1, 7, 2), (7, 1, -2), (0, 1, 0.3), (2.5,), (3, 3), (5, 1), (0.0, 3.0), (-3, 3)):
        yield call("arange", *args)
    for dtype in ("int32", "float32", "float64"):
        yield call("arange", 1, 6, 2, dtype)
    yield call("arange", 1.5, 4.5, 1, "int64")
    yield call("arange", 0, 5, 0)
    yield call("arange", given(1, "int64"), given(5, "int64"))
    for args in ((0, 1, 5), (1, 0, 4), (0, 10, 1), (2, 2, 3), (0.5, 3.5, 7), (0, 5, 0)):
        yield call("linspace", *args)
        yield call("logspace", *args)
    for dtype in ("float64", "int32", "int64"):
        yield call("linspace", 0, 10, 5, dtype)
        yield call("linspace", 0, 9, 4, dtype)
        yield call("logspace", 0, 3, 4, 2.0, dtype)
    yield call("logspace", 0, 3, 4, base=2.0)


def _patterns() -> Iterator[Case]:
    for dtype in ("float32", "float64", "int32", "int64", "complex64"):
        yield call("eye", 3, dtype=dtype)
    yield call("eye", 2, 4)
    yield call("eye", 4, 2)
    yield call("eye", 0)
    for name in ("tril_indices", "triu_indices"):
        for offset in (0, 1, -1):
            yield call(name, 3, 4, offset)
        yield call(name, 4, 3, 0, "int32")
    yield call("triu_indices", 3)
    yield call("meshgrid", t(2), t(3))
    yield call("meshgrid", [t(2), t(3), t(2)])
    yield call("meshgrid", t(2, dtype="int64"), t(1, dtype="int64"))
    yield call("meshgrid", t(), t(3))
    yield call("vander", t(3), 3)
    yield call("tril", t(3, 3))
    yield call("polar", t(3, low=0.5), t(3))
    yield call("nn.functional.one_hot", t(4, dtype="int64", low=0, high=3), 3)
    yield call("nn.functional.one_hot", t(2, 2, dtype="int32", low=0, high=4), 5)
    yield call("nn.functional.one_hot", t(dtype="int64", low=0, high=3), 3)
    yield call("nn.functional.one_hot", given([1, 5], "int64"), 3)
    yield call("nn.functional.one_hot", t(0, dtype="int64"), 3)
    yield call("nn.functional.one_hot", given([0, 4, 2], "int64"))


def _to_tensor() -> Iterator[Case]:
    for data in (1, 1.5, True, 2 + 1j, [1, 2], [1.0, 2], [[True], [False]], [], [[]], (1, 2.5), [1 + 1j, 2]):
        yield call("to_tensor", data)
        for dtype in ("float32", "float64", "int32", "bool"):
            yield call("to_tensor", data, dtype=dtype)
    yield call("to_tensor", [[1, 2], [3]])
    yield call("to_tensor", "abc")
    yield call("to_tensor", [given(1.0, grad=False), given(2.0, grad=False)])
    yield call("is_tensor", t(2))
    yield call("is_tensor", 3)
